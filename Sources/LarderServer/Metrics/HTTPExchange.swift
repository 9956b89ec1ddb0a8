/// One HTTP request for a page, and its response: bytes in, bytes out. Only GET and HEAD, without a body, and one
/// request per connection.
struct HTTPExchange {
  /// The maximum size of a request's head, in bytes.
  static let maxHeadSize = 8_192

  private var head: [UInt8] = []

  enum Step: Equatable {
    case incomplete
    /// A request for this path, without its query.
    case get(String)
    /// A request for the head of the response to `get`.
    case head(String)
    case refused(Status)
  }

  enum Status: String {
    case ok = "200 OK"
    case badRequest = "400 Bad Request"
    case notFound = "404 Not Found"
    case notAllowed = "405 Method Not Allowed"
    case tooLong = "431 Request Header Fields Too Large"
    case unavailable = "503 Service Unavailable"
    case versionNotSupported = "505 HTTP Version Not Supported"
  }

  /// Appends received bytes, and parses the head once it is complete.
  mutating func receive(_ bytes: some Collection<UInt8>) -> Step {
    head += bytes
    guard let end = Self.end(of: head) else { return head.count > Self.maxHeadSize ? .refused(.tooLong) : .incomplete }
    guard end <= Self.maxHeadSize else { return .refused(.tooLong) }
    return Self.parse(head[..<end])
  }

  /// Where the empty line begins.
  private static func end(of head: [UInt8]) -> Int? {
    guard head.count >= 4 else { return nil }
    return (0...head.count - 4).first { head[$0..<$0 + 4].elementsEqual([13, 10, 13, 10]) }
  }

  private static func parse(_ head: ArraySlice<UInt8>) -> Step {
    guard head.allSatisfy({ $0 < 0x7F && ($0 >= 0x20 || $0 == 13 || $0 == 10 || $0 == 9) }) else {
      return .refused(.badRequest)
    }
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
    let words = lines[0].split(separator: " ", omittingEmptySubsequences: false)
    guard words.count == 3, words[1].hasPrefix("/"), words[2].hasPrefix("HTTP/") else { return .refused(.badRequest) }
    guard words[2] == "HTTP/1.1" || words[2] == "HTTP/1.0" else { return .refused(.versionNotSupported) }
    for line in lines.dropFirst() {
      // Folded lines, spaces before the colon and bodies are not accepted.
      guard let colon = line.firstIndex(of: ":"), case let name = line[..<colon].lowercased(), !name.isEmpty,
        name.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
      else { return .refused(.badRequest) }
      let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      if name == "transfer-encoding" || (name == "content-length" && value != "0") { return .refused(.badRequest) }
    }
    let path = String(words[1].prefix { $0 != "?" })
    return
      switch words[0]
    {
    case "GET": .get(path)
    case "HEAD": .head(path)
    default: .refused(.notAllowed)
    }
  }
}

/// A response, which ends the connection.
struct HTTPResponse {
  private let status: HTTPExchange.Status
  private let type: String
  private let body: [UInt8]

  init(_ status: HTTPExchange.Status, type: String = "text/plain; charset=utf-8", _ body: [UInt8]) {
    (self.status, self.type, self.body) = (status, type, body)
  }

  /// Creates a response whose body is a line of text.
  init(_ status: HTTPExchange.Status, line: String) {
    self.init(status, Array("\(line)\n".utf8))
  }

  /// The whole response.
  var bytes: [UInt8] { head + body }

  /// The response without its body.
  var head: [UInt8] {
    let allow = status == .notAllowed ? "Allow: GET, HEAD\r\n" : ""
    let head = """
      HTTP/1.1 \(status.rawValue)\r\nContent-Type: \(type)\r\nContent-Length: \(body.count)\r\n\(allow)Connection: close\r\n\r\n
      """
    return Array(head.utf8)
  }
}
