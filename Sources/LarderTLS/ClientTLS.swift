/// How a client makes encrypted connections to addresses such as `tls:db.example:7464`: which servers it trusts, and which
/// certificate it shows them.
///
/// The server's certificate must be valid and for the server's name, always. The files are read again for each new
/// connection, so that they can be replaced while the client runs; if the new ones can't be used, the client keeps the
/// ones that it has read before.
public struct ClientTLS: Sendable {
  /// Whose certificates are trusted.
  public enum Trust: Sendable {
    /// The authorities that the system trusts.
    case system
    /// The authorities whose certificates are in a file, in PEM form, and no others.
    case authorities(file: String)
    /// Certificates with one of these public keys, regardless of their issuers: SHA-256 digests, in hexadecimal digits,
    /// of the keys in DER form (`SubjectPublicKeyInfo`).
    case pinnedKeys([String])
  }

  /// A certificate and its private key.
  public struct Certificate: Sendable {
    /// The path of the certificate in PEM form, followed by those of its issuers.
    public var file: String
    /// The path of its private key in PEM form, without a password.
    public var keyFile: String

    public init(file: String, keyFile: String) {
      (self.file, self.keyFile) = (file, keyFile)
    }
  }

  public var trust: Trust
  /// The certificate that the client shows to servers that ask for one; nil for none.
  public var certificate: Certificate?
  /// The name that the server's certificate must be for; nil for the host of the address.
  public var serverName: String?

  public init(trust: Trust = .system, certificate: Certificate? = nil, serverName: String? = nil) {
    (self.trust, self.certificate, self.serverName) = (trust, certificate, serverName)
  }

  /// Trusts the authorities that the system trusts, and shows no certificate.
  public static let system = ClientTLS()
}
