import COpenSSL

/// The certificates of others that are accepted.
package struct TLSTrust: Sendable {
  package enum Anchors: Sendable {
    /// The authorities that the system trusts.
    case system
    case authorities([Certificate])
    /// Certificates whose public keys have one of these SHA-256 digests, regardless of their issuers.
    case keys([[UInt8]])
  }

  let anchors: Anchors
  let revocations: [RevocationList]

  package init(_ anchors: Anchors, revocations: [RevocationList] = []) {
    (self.anchors, self.revocations) = (anchors, revocations)
  }

  func apply(to context: OpaquePointer) throws(TLSError) {
    switch anchors {
    case .system:
      guard unsafe SSL_CTX_set_default_verify_paths(context) == 1 else {
        throw TLSError("can't find the system's certificates")
      }
    case .authorities(let certificates):
      let store = unsafe SSL_CTX_get_cert_store(context)
      for certificate in certificates {
        guard unsafe X509_STORE_add_cert(store, certificate.pointer) == 1 else {
          throw TLSError("can't use the certificate of \(certificate.subject) as an authority")
        }
      }
    case .keys: break
    }
    guard !revocations.isEmpty else { return }
    let store = unsafe SSL_CTX_get_cert_store(context)
    for list in revocations { unsafe X509_STORE_add_crl(store, list.pointer) }
    unsafe X509_STORE_set_flags(store, UInt(X509_V_FLAG_CRL_CHECK))
  }
}

/// A list of certificates that their issuer has revoked.
///
/// Safe because OpenSSL's list doesn't change.
@safe
package final class RevocationList: @unchecked Sendable {
  let pointer: OpaquePointer

  private init(owning pointer: OpaquePointer) { unsafe self.pointer = unsafe pointer }

  deinit { unsafe X509_CRL_free(pointer) }

  /// Reads all revocation lists of a text in PEM form.
  /// - Parameter source: What the text is, for errors: the path of its file.
  package static func readAll(_ pem: [UInt8], from source: String) throws(TLSError) -> [RevocationList] {
    unsafe try PEMSource.readAll(pem, from: source, "revocation list", label: "X509 CRL") { bio in
      unsafe PEM_read_bio_X509_CRL(bio, nil, nil, nil).map { unsafe RevocationList(owning: $0) }
    }
  }

  /// The name of the authority that has issued it.
  package var issuer: String { unsafe Certificate.text(of: X509_CRL_get_issuer(pointer)) }

  /// The serial numbers of the revoked certificates, in lowercase hexadecimal digits.
  package var serials: [String] {
    unsafe (0..<max(0, COpenSSL_sk_X509_REVOKED_num(pointer))).map { index in
      unsafe Certificate.text(ofSerial: COpenSSL_X509_REVOKED_serial(pointer, index))
    }
  }

  /// When it expires, in seconds since 1970: then no certificate of its issuer is accepted any more.
  package var expiry: Int64 { unsafe Certificate.seconds(X509_CRL_get0_nextUpdate(pointer)) ?? .max }
}
