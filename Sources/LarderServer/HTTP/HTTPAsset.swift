import Wire

/// A file that the server shows to every browser, such as a part of a console.
package struct HTTPAsset: Sendable {
  /// What browsers may do with the pages of the console: they load nothing from elsewhere, no other page shows them, and no
  /// text becomes part of them as anything but text.
  private static let securityPolicy: StaticString = """
    default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; frame-ancestors 'none'; \
    base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'
    """

  /// The path without the first slash.
  package let path: String
  private let type: StaticString
  private let content: [UInt8]
  private let compressedContent: [UInt8]
  /// What changes with the content: visible characters without quotes.
  private let version: String

  /// - Parameters:
  ///   - path: The path without the first slash.
  ///   - type: The media type.
  ///   - compressedContent: The content in the format of gzip.
  ///   - version: What changes with the content: visible characters without quotes.
  package init(path: String, type: StaticString, content: [UInt8], compressedContent: [UInt8], version: String) {
    (self.path, self.type, self.version) = (path, type, version)
    (self.content, self.compressedContent) = (content, compressedContent)
  }

  /// Appends the response to a request for the asset.
  /// - Parameter isSecure: Whether the client has the name of the server alone in its address, and a connection with TLS.
  func appendResponse(
    to request: HTTPRequest, _ bytes: RawSpan, isSecure: Bool, into output: inout ByteBuffer
  ) throws(CommandFailure) {
    let isCompressed = request.accepts("gzip", bytes)
    let tag = isCompressed ? "\(version)-gzip" : version
    var isKnown = false
    if let field = request[.ifNoneMatch] {
      isKnown = try HTTPEntityTags.contain(bytes.extracting(field), weakly: true, isAny: true) { $0.toString() == tag }
    }
    output.append(text: isKnown ? "HTTP/1.1 304 Not Modified\r\n" : "HTTP/1.1 200 OK\r\n")
    output.append(
      text: """
        X-Content-Type-Options: nosniff\r\nCache-Control: no-cache\r\nVary: Accept-Encoding\r\n\
        Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n\
        Referrer-Policy: no-referrer\r\nContent-Security-Policy: \

        """)
    output.append(text: Self.securityPolicy)
    output.append(text: "\r\n")
    output.appendDate()
    if isSecure { output.append(text: "Strict-Transport-Security: max-age=31536000\r\n") }
    output.appendField("ETag", "\"\(tag)\"")
    if isKnown { return output.endHead() }
    output.append(text: "Content-Type: ")
    output.append(text: type)
    output.append(text: "\r\n")
    if isCompressed { output.append(text: "Content-Encoding: gzip\r\n") }
    let body = isCompressed ? compressedContent : content
    output.appendField("Content-Length", body.count)
    output.endHead()
    if request.method == .get { output.append(body) }
  }
}

extension HTTPRequest {
  /// Whether the client understands a content coding, and does not say how much it wants it.
  fileprivate func accepts(_ coding: String, _ bytes: RawSpan) -> Bool {
    guard let field = self[.acceptEncoding] else { return false }
    return bytes.extracting(field).toString().lowercased().split(separator: ",").contains { element in
      element.drop { $0 == " " }.prefix { $0 != " " } == coding
    }
  }
}
