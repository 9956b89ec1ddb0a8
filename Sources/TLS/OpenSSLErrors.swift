import COpenSSL

/// What OpenSSL says about a call that has failed: an error with a library and a reason.
struct OpenSSLFailure {
  private let code: UInt

  /// The latest error of the calling thread. Empties the thread's queue of errors, so that nothing is left to blame another
  /// connection with.
  static func take() -> OpenSSLFailure {
    let code = ERR_peek_last_error()
    ERR_clear_error()
    return OpenSSLFailure(code: code)
  }

  /// The number of the alert by which the peer has ended the connection; nil if it is something else.
  var alert: Int32? {
    let reason = ERR_GET_REASON(code)
    guard ERR_GET_LIB(code) == ERR_LIB_SSL, reason >= SSL_AD_REASON_OFFSET else { return nil }
    return reason - SSL_AD_REASON_OFFSET
  }

  /// Whether the stream has ended without the peer's announcement.
  var isTruncation: Bool {
    ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING
  }

  func isReason(_ reason: Int32) -> Bool { ERR_GET_LIB(code) == ERR_LIB_SSL && ERR_GET_REASON(code) == reason }

  /// OpenSSL's own words.
  var text: String {
    guard code != 0 else { return "unknown error" }
    guard let reason = unsafe ERR_reason_error_string(code) else { return "error \(String(code, radix: 16))" }
    return unsafe String(cString: reason)
  }
}

/// An alert of TLS: RFC 8446, section 6.
struct TLSAlert {
  let number: Int32

  /// What the peer means by it; nil for those that say nothing about certificates or protocols.
  var refusal: String? {
    switch number {
    case 42, 43: "it can't use our certificate"
    case 44: "our certificate is revoked"
    case 45: "our certificate has expired, or isn't valid yet"
    case 46, 51: "it doesn't accept our certificate"
    case 48: "it doesn't know the authority that issued our certificate"
    case 49: "it denies access"
    case 70: "it doesn't support TLS 1.3"
    case 71: "it considers our keys or ciphers too weak"
    case 112: "it doesn't know the server's name"
    case 116: "it requires a client certificate"
    case 120: "it doesn't serve this protocol"
    default: nil
    }
  }

  var name: String {
    unsafe String(cString: SSL_alert_desc_string_long(number))
  }
}
