/// The files of encrypted connections, and what clients must show.
package struct TLSSettings: Equatable, Sendable {
  /// Whether clients show certificates.
  package enum ClientCertificates: String, CaseIterable, Sendable {
    case optional, required
  }

  /// The paths of the server's certificates with their chains.
  package var certificates: [String] = []
  /// The paths of their private keys, in the same order.
  package var keys: [String] = []
  /// The path of the certificates of the authorities whose certificates clients may show; nil if none may.
  package var clientAuthorities: String?
  package var clientCertificates = ClientCertificates.optional
  /// The path of the lists of revoked client certificates; nil for none.
  package var revocations: String?
}
