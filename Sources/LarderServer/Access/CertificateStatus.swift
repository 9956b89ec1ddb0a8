import Platform

/// What the server has to know of certificates while connections are open, besides what their handshakes have checked.
package struct CertificateStatus: Equatable, Sendable {
  /// A certificate that its issuer has revoked.
  package struct Revoked: Hashable, Sendable {
    private let issuer: String
    private let serial: String

    /// - Parameters:
    ///   - issuer: The name of the authority, as in `PeerCertificate`.
    ///   - serial: The certificate's serial number, in lowercase hexadecimal digits.
    package init(issuer: String, serial: String) {
      (self.issuer, self.serial) = (issuer, serial)
    }
  }

  /// When the first of the server's certificates and revocation lists expires, in seconds since 1970; nil without TLS.
  package var expiry: Int64?
  package var revoked: Set<Revoked> = []

  package init(expiry: Int64? = nil, revoked: Set<Revoked> = []) {
    (self.expiry, self.revoked) = (expiry, revoked)
  }

  func isRevoked(_ certificate: PeerCertificate) -> Bool {
    revoked.contains(Revoked(issuer: certificate.issuer, serial: certificate.serial))
  }

  /// The number of seconds until the first one expires, at least 0; nil without TLS.
  /// - Parameter now: In seconds since 1970.
  func secondsToExpiry(at now: Int64) -> UInt64? { expiry.map { UInt64(max(0, $0 - now)) } }

  /// The number of days before the expiry from which on the server warns.
  package static let daysOfWarning: UInt64 = 30
}
