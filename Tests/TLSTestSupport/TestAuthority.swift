import COpenSSL
import TLS

/// A certificate authority for tests. It issues valid certificates, and certificates with exactly one flaw.
///
/// Safe because nothing changes after `init`.
@safe
package final class TestAuthority: @unchecked Sendable {
  package enum KeyKind: Sendable {
    case p256, ed25519
    case rsa(bits: UInt32)
  }

  /// What a certificate says. The defaults make one that is right for a server and a client on this machine.
  package struct Profile: Sendable {
    package var subject = "larder test"
    package var names = ["DNS:localhost", "IP:127.0.0.1"]
    /// Seconds from now.
    package var validFrom = -3_600
    package var validFor = 86_400
    package var purposes = "serverAuth,clientAuth"
    package var isAuthority = false
    package var key = KeyKind.p256
    package var nameConstraints: String?
    package var usesSHA1 = false

    package init(_ subject: String = "larder test", _ change: (inout Profile) -> Void = { _ in }) {
      self.subject = subject
      change(&self)
    }
  }

  /// A certificate and its key in PEM form.
  package struct Files: Sendable {
    package let certificate: [UInt8]
    package let key: [UInt8]

    /// The identity of a program that has them.
    /// - Parameter issuers: The certificates of the issuers, in PEM form.
    package func identity(issuers: [UInt8] = []) throws -> TLSIdentity {
      try TLSIdentity(chain: certificate + issuers, key: key, names: ("the certificate", "the key"))
    }
  }

  package let files: Files
  private let certificate: OpaquePointer
  private let key: OpaquePointer

  /// Makes an authority of its own, or one below another.
  package init(
    _ name: String = "larder test authority", below parent: TestAuthority? = nil,
    _ change: (inout Profile) -> Void = { _ in }
  ) {
    let profile = Profile(name) {
      $0.names = []
      $0.purposes = ""
      $0.isAuthority = true
      change(&$0)
    }
    let key = unsafe Self.makeKey(profile.key)
    unsafe self.key = unsafe key
    unsafe certificate = unsafe Self.make(profile, key: key, issuer: parent.map { unsafe ($0.certificate, $0.key) })
    files = unsafe Files(certificate: Self.pem(certificate), key: Self.pem(ofKey: key))
  }

  deinit {
    unsafe X509_free(certificate)
    unsafe EVP_PKEY_free(key)
  }

  /// The trust of programs that know only this authority.
  package func trust(revocations: [UInt8]? = nil) throws -> TLSTrust {
    TLSTrust(
      .authorities(try Certificate.readAll(files.certificate, from: "the authority")),
      revocations: try revocations.map { try RevocationList.readAll($0, from: "the list") } ?? [])
  }

  /// Issues a certificate.
  package func issue(_ profile: Profile = Profile()) -> Files {
    let key = unsafe Self.makeKey(profile.key)
    defer { unsafe EVP_PKEY_free(key) }
    let issued = unsafe Self.make(profile, key: key, issuer: (certificate, self.key))
    defer { unsafe X509_free(issued) }
    return unsafe Files(certificate: Self.pem(issued), key: Self.pem(ofKey: key))
  }

  /// Issues a certificate that no authority has signed.
  package static func selfSigned(_ profile: Profile = Profile()) -> Files {
    let key = unsafe makeKey(profile.key)
    defer { unsafe EVP_PKEY_free(key) }
    let issued = unsafe make(profile, key: key, issuer: nil)
    defer { unsafe X509_free(issued) }
    return unsafe Files(certificate: pem(issued), key: pem(ofKey: key))
  }

  /// Issues a list of revoked certificates, in PEM form.
  /// - Parameter validFor: Seconds from now until it expires.
  package func revoke(_ revoked: [Files], validFor: Int = 86_400) -> [UInt8] {
    let list = unsafe X509_CRL_new()
    defer { unsafe X509_CRL_free(list) }
    unsafe X509_CRL_set_version(list, 1)
    unsafe X509_CRL_set_issuer_name(list, X509_get_subject_name(certificate))
    unsafe withTime(-7_200) { unsafe X509_CRL_set1_lastUpdate(list, $0) }
    unsafe withTime(validFor) { unsafe X509_CRL_set1_nextUpdate(list, $0) }
    for files in revoked {
      let pointer = unsafe Self.certificate(files.certificate)
      defer { unsafe X509_free(pointer) }
      let entry = unsafe X509_REVOKED_new()
      unsafe X509_REVOKED_set_serialNumber(entry, X509_get_serialNumber(pointer))
      unsafe withTime(-3_600) { unsafe X509_REVOKED_set_revocationDate(entry, $0) }
      unsafe X509_CRL_add0_revoked(list, entry)
    }
    unsafe X509_CRL_sign(list, key, EVP_sha256())
    return unsafe Self.text { unsafe PEM_write_bio_X509_CRL($0, list) }
  }

  // MARK: Making certificates

  private static func makeKey(_ kind: KeyKind) -> OpaquePointer {
    let key =
      switch kind {
      case .p256: unsafe COpenSSL_EVP_EC_gen("P-256")
      case .ed25519: unsafe COpenSSL_EVP_ED25519_gen()
      case .rsa(let bits): unsafe COpenSSL_EVP_RSA_gen(bits)
      }
    guard let key = unsafe key else { preconditionFailure("OpenSSL can't make a key") }
    return unsafe key
  }

  private static func make(
    _ profile: Profile, key: OpaquePointer, issuer: (certificate: OpaquePointer, key: OpaquePointer)?
  ) -> OpaquePointer {
    guard let certificate = unsafe X509_new() else { preconditionFailure("no memory") }
    unsafe X509_set_version(certificate, 2)
    unsafe ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), .random(in: 1...(1 << 62)))
    let name = unsafe X509_get_subject_name(certificate)
    unsafe X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, profile.subject, -1, -1, 0)
    unsafe X509_set_issuer_name(certificate, issuer.map { unsafe X509_get_subject_name($0.certificate) } ?? name)
    unsafe withTime(profile.validFrom) { unsafe X509_set1_notBefore(certificate, $0) }
    unsafe withTime(profile.validFor) { unsafe X509_set1_notAfter(certificate, $0) }
    unsafe X509_set_pubkey(certificate, key)
    unsafe add(NID_basic_constraints, profile.isAuthority ? "critical,CA:TRUE" : "critical,CA:FALSE", to: certificate)
    unsafe add(
      NID_key_usage, profile.isAuthority ? "critical,keyCertSign,cRLSign" : "critical,digitalSignature",
      to: certificate)
    if !profile.names.isEmpty {
      unsafe add(NID_subject_alt_name, profile.names.joined(separator: ","), to: certificate)
    }
    if !profile.purposes.isEmpty { unsafe add(NID_ext_key_usage, profile.purposes, to: certificate) }
    if let constraints = profile.nameConstraints {
      unsafe add(NID_name_constraints, constraints, to: certificate)
    }
    let signer = unsafe issuer?.key ?? key
    // Ed25519 has a digest of its own.
    let digest = unsafe EVP_PKEY_get_id(signer) == EVP_PKEY_ED25519 ? nil : profile.usesSHA1 ? EVP_sha1() : EVP_sha256()
    let size = unsafe X509_sign(certificate, signer, digest)
    precondition(size > 0, "OpenSSL can't sign the certificate")
    return unsafe certificate
  }

  private static func add(_ kind: Int32, _ value: String, to certificate: OpaquePointer) {
    guard let addition = unsafe X509V3_EXT_conf_nid(nil, nil, kind, value) else {
      preconditionFailure("'\(value)' is not what OpenSSL understands")
    }
    unsafe X509_add_ext(certificate, addition, -1)
    unsafe X509_EXTENSION_free(addition)
  }

  // MARK: PEM

  private static func certificate(_ pem: [UInt8]) -> OpaquePointer? {
    let bio = unsafe BIO_new_mem_buf(pem, Int32(pem.count))
    defer { unsafe BIO_free(bio) }
    return unsafe PEM_read_bio_X509(bio, nil, nil, nil)
  }

  private static func pem(_ certificate: OpaquePointer) -> [UInt8] {
    unsafe text { unsafe PEM_write_bio_X509($0, certificate) }
  }

  private static func pem(ofKey key: OpaquePointer) -> [UInt8] {
    unsafe text { unsafe PEM_write_bio_PrivateKey($0, key, nil, nil, 0, nil, nil) }
  }

  private static func text(_ write: (OpaquePointer?) -> Int32) -> [UInt8] {
    let bio = unsafe BIO_new(BIO_s_mem())
    defer { unsafe BIO_free(bio) }
    _ = unsafe write(bio)
    var bytes = [UInt8](repeating: 0, count: 16 << 10)
    let count = unsafe BIO_read(bio, &bytes, Int32(bytes.count))
    return Array(bytes.prefix(Int(count)))
  }
}

/// Calls `body` with a time.
/// - Parameter offset: Seconds from now.
private func withTime(_ offset: Int, _ body: (UnsafeMutablePointer<ASN1_TIME>?) -> Int32) {
  let time = unsafe X509_gmtime_adj(nil, offset)
  _ = unsafe body(time)
  unsafe ASN1_TIME_free(time)
}
