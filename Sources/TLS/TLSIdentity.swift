import COpenSSL
import Platform

/// A certificate with the chain of its issuers, and its private key.
///
/// Safe because OpenSSL's key doesn't change.
@safe
package final class TLSIdentity: @unchecked Sendable {
  package let certificate: Certificate
  /// The certificates of its issuers, up to but not including one that the peer knows.
  let issuers: [Certificate]
  let key: OpaquePointer

  /// Reads a certificate chain and a private key, and checks that they belong together.
  /// - Parameters:
  ///   - chain: Certificates in PEM form: the owner's first, then those of its issuers.
  ///   - key: An unencrypted private key in PEM form.
  ///   - names: What the two are, for errors: the paths of their files.
  package init(chain: [UInt8], key keyText: [UInt8], names: (chain: String, key: String)) throws(TLSError) {
    let certificates = try Certificate.readAll(chain, from: names.chain)
    let key = unsafe try Self.readKey(keyText, from: names.key)
    certificate = certificates[0]
    issuers = Array(certificates.dropFirst())
    unsafe self.key = unsafe key
    guard unsafe X509_check_private_key(certificates[0].pointer, key) == 1 else {
      throw TLSError("\(names.key) is not the key of the first certificate in \(names.chain)")
    }
    var issued = certificates[0]
    for issuer in issuers {
      guard unsafe X509_check_issued(issuer.pointer, issued.pointer) == X509_V_OK else {
        throw TLSError(
          "\(names.chain): after the certificate of \(issued.subject), the one of its issuer must follow, but "
            + "\(issuer.subject) did not issue it")
      }
      issued = issuer
    }
  }

  deinit { unsafe EVP_PKEY_free(key) }

  private static func readKey(_ text: [UInt8], from name: String) throws(TLSError) -> OpaquePointer {
    let bio = PEMSource(text)
    ERR_clear_error()
    var isEncrypted = false
    let key = unsafe withUnsafeMutablePointer(to: &isEncrypted) { flag in
      unsafe PEM_read_bio_PrivateKey(
        bio.pointer, nil,
        { _, _, _, flag in
          unsafe flag?.assumingMemoryBound(to: Bool.self).pointee = true
          return -1
        }, flag)
    }
    if isEncrypted {
      ERR_clear_error()
      throw TLSError("\(name): the key is encrypted; remove its password: openssl pkey -in FILE -out FILE")
    }
    guard let key = unsafe key else {
      ERR_clear_error()
      throw String(decoding: text, as: UTF8.self).contains("PRIVATE KEY-----")
        ? TLSError("\(name): the private key is malformed")
        : TLSError("\(name): there is no private key in PEM form (-----BEGIN PRIVATE KEY-----)")
    }
    return unsafe key
  }

  /// Checks the dates of its certificates.
  /// - Parameter now: In seconds since 1970.
  package func validate(at now: Int64) throws(TLSError) {
    for certificate in [certificate] + issuers {
      if now < certificate.validFrom { throw TLSError("the certificate of \(certificate.subject) is not valid yet") }
      if now >= certificate.expiry { throw TLSError("the certificate of \(certificate.subject) has expired") }
    }
  }

  /// When the first of its certificates expires, in seconds since 1970.
  package var expiry: Int64 { ([certificate] + issuers).map(\.expiry).min() ?? .min }
}
