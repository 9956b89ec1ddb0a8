import COpenSSL
import Glibc

/// An X.509 certificate.
///
/// Safe because OpenSSL's certificate doesn't change, and its counter of references is atomic.
@safe
package final class Certificate: @unchecked Sendable {
  let pointer: OpaquePointer

  /// - Parameter pointer: A certificate that the new object owns.
  init(owning pointer: OpaquePointer) { unsafe self.pointer = unsafe pointer }

  deinit { unsafe X509_free(pointer) }

  // MARK: Reading

  /// Reads all certificates of a text in PEM form.
  /// - Parameter source: What the text is, for errors: the path of its file.
  /// - Throws: An error if there is none, or one is malformed.
  package static func readAll(_ pem: [UInt8], from source: String) throws(TLSError) -> [Certificate] {
    unsafe try PEMSource.readAll(pem, from: source, "certificate", label: "CERTIFICATE") { bio in
      unsafe PEM_read_bio_X509(bio, nil, nil, nil).map { unsafe Certificate(owning: $0) }
    }
  }

  // MARK: What it says

  /// The name of its owner, such as `CN=db.example,O=Example`.
  package var subject: String { unsafe Self.text(of: X509_get_subject_name(pointer)) }

  /// The name of the authority that has issued it.
  package var issuer: String { unsafe Self.text(of: X509_get_issuer_name(pointer)) }

  /// Its serial number, in lowercase hexadecimal digits.
  package var serial: String { unsafe Self.text(ofSerial: X509_get0_serialNumber(pointer)) }

  static func text(ofSerial serial: UnsafePointer<ASN1_INTEGER>?) -> String {
    guard let number = unsafe ASN1_INTEGER_to_BN(serial, nil) else { return "" }
    defer { unsafe BN_free(number) }
    guard let digits = unsafe BN_bn2hex(number) else { return "" }
    defer { unsafe CRYPTO_free(digits, #file, #line) }
    return unsafe String(cString: digits).lowercased()
  }

  /// The name by which access rules call its owner: the first URI of its alternative names, else the first DNS name, else
  /// the common name of its subject; nil without any of them.
  package var principal: String? { alternativeNames(GEN_URI).first ?? dnsNames.first ?? commonName }

  /// The DNS names that it is for.
  package var dnsNames: [String] { alternativeNames(GEN_DNS) }

  private var commonName: String? {
    let name = unsafe X509_get_subject_name(pointer)
    let index = unsafe X509_NAME_get_index_by_NID(name, NID_commonName, -1)
    guard index >= 0, let entry = unsafe X509_NAME_get_entry(name, index) else { return nil }
    var text: UnsafeMutablePointer<UInt8>?
    let count = unsafe ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(entry))
    guard count > 0, let text = unsafe text else { return nil }
    defer { unsafe CRYPTO_free(text, #file, #line) }
    return unsafe Self.name(UnsafeBufferPointer(start: text, count: Int(count)))
  }

  private func alternativeNames(_ type: Int32) -> [String] {
    guard let names = unsafe X509_get_ext_d2i(pointer, NID_subject_alt_name, nil, nil) else { return [] }
    let list = OpaquePointer(names)
    defer { unsafe GENERAL_NAMES_free(list) }
    return unsafe (0..<COpenSSL_sk_GENERAL_NAME_num(list)).compactMap { index in
      guard let text = unsafe COpenSSL_GENERAL_NAME_text(COpenSSL_sk_GENERAL_NAME_value(list, index), type),
        let bytes = unsafe ASN1_STRING_get0_data(text)
      else { return nil }
      return unsafe Self.name(UnsafeBufferPointer(start: bytes, count: Int(ASN1_STRING_length(text))))
    }
  }

  /// Returns a name unless it has characters that could make it look like another one.
  private static func name(_ bytes: UnsafeBufferPointer<UInt8>) -> String? {
    guard !bytes.isEmpty, unsafe bytes.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else { return nil }
    return unsafe String(validating: bytes, as: UTF8.self)
  }

  /// When it begins to be valid, in seconds since 1970.
  package var validFrom: Int64 { unsafe Self.seconds(X509_get0_notBefore(pointer)) ?? .max }

  /// When it expires, in seconds since 1970.
  package var expiry: Int64 { unsafe Self.seconds(X509_get0_notAfter(pointer)) ?? .min }

  /// Whether it is for a DNS name, as RFC 6125 says.
  func isFor(_ host: String) -> Bool {
    unsafe X509_check_host(pointer, host, host.utf8.count, COpenSSL_host_flags, nil) == 1
  }

  /// The SHA-256 digest of its public key, with the key's algorithm: what is pinned.
  package var keyDigest: [UInt8] {
    var encoded: UnsafeMutablePointer<UInt8>?
    let count = unsafe i2d_X509_PUBKEY(X509_get_X509_PUBKEY(pointer), &encoded)
    guard count > 0, let encoded = unsafe encoded else { return [] }
    defer { unsafe CRYPTO_free(encoded, #file, #line) }
    var digest = [UInt8](repeating: 0, count: Int(SHA256_DIGEST_LENGTH))
    _ = unsafe SHA256(encoded, Int(count), &digest)
    return digest
  }

  // MARK: Conversions

  static func seconds(_ time: UnsafePointer<ASN1_TIME>?) -> Int64? {
    var parts = unsafe tm()
    guard unsafe ASN1_TIME_to_tm(time, &parts) == 1 else { return nil }
    return unsafe Int64(timegm(&parts))
  }

  static func text(of name: OpaquePointer?) -> String {
    guard let bio = unsafe BIO_new(BIO_s_mem()) else { return "" }
    defer { unsafe BIO_free(bio) }
    _ = unsafe COpenSSL_X509_NAME_print(bio, name)
    var bytes = [UInt8](repeating: 0, count: 1_024)
    let count = unsafe BIO_read(bio, &bytes, Int32(bytes.count))
    return String(decoding: bytes.prefix(Int(max(0, count))), as: UTF8.self)
  }
}

/// A text in PEM form that OpenSSL reads.
@safe
struct PEMSource: ~Copyable {
  let pointer: OpaquePointer?
  /// OpenSSL reads the bytes where they are.
  private let bytes: UnsafeMutableBufferPointer<UInt8>

  init(_ text: [UInt8]) {
    unsafe bytes = .allocate(capacity: max(1, text.count))
    _ = unsafe bytes.initialize(from: text)
    unsafe pointer = unsafe BIO_new_mem_buf(bytes.baseAddress, Int32(clamping: text.count))
  }

  deinit {
    unsafe BIO_free(pointer)
    // It may be a private key.
    unsafe OPENSSL_cleanse(bytes.baseAddress, bytes.count)
    unsafe bytes.deallocate()
  }

  /// Reads everything of one kind in a text.
  /// - Parameters:
  ///   - source: What the text is, for errors: the path of its file.
  ///   - kind: What is read, for errors.
  ///   - label: What PEM calls it.
  ///   - next: Reads the next one; nil if there is none, or it is malformed.
  /// - Throws: An error if there is none, or one is malformed.
  static func readAll<Item>(
    _ pem: [UInt8], from source: String, _ kind: String, label: String, next: (OpaquePointer?) -> Item?
  ) throws(TLSError) -> [Item] {
    let bio = PEMSource(pem)
    var items: [Item] = []
    ERR_clear_error()
    while let item = unsafe next(bio.pointer) { items.append(item) }
    guard hasEnded() else { throw TLSError("\(source): a \(kind) is malformed") }
    guard !items.isEmpty else {
      throw TLSError("\(source): there is no \(kind) in PEM form (-----BEGIN \(label)-----)")
    }
    return items
  }

  /// Whether the last read has failed because there was nothing more to read.
  private static func hasEnded() -> Bool {
    let code = ERR_peek_last_error()
    ERR_clear_error()
    return code == 0 || (ERR_GET_LIB(code) == ERR_LIB_PEM && ERR_GET_REASON(code) == PEM_R_NO_START_LINE)
  }
}
