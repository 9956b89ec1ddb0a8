import Documents
import Testing

@testable import LarderServer

/// A response as a client of HTTP reads it.
struct HTTPAnswer {
  let status: Int
  let fields: [String: String]
  let body: [UInt8]

  var text: String { String(decoding: body, as: UTF8.self) }
  var json: JSONValue { get throws { try JSONValue(parsing: text) } }
  /// The code of a problem.
  var code: String? { (try? json)?["code"]?.string }
}

extension JSONValue {
  fileprivate var string: String? { if case .string(let text) = self { text } else { nil } }
}

extension TestClient {
  /// Sends a request, and returns the response.
  /// - Parameters:
  ///   - fields: Besides `Host` and `Content-Length`, and `X-Larder` and the type of JSON where they are needed.
  ///   - body: nil for none.
  func request(
    _ method: String, _ path: String, _ fields: [String: String] = [:], _ body: [UInt8]? = nil
  ) throws -> HTTPAnswer {
    try send(Self.encodedRequest(method, path, fields, body))
    return try answer(hasBody: method != "HEAD")
  }

  func request(_ method: String, _ path: String, json: String) throws -> HTTPAnswer {
    try request(method, path, ["Content-Type": "application/json"], Array(json.utf8))
  }

  static func encodedRequest(
    _ method: String, _ path: String, _ fields: [String: String] = [:], _ body: [UInt8]? = nil
  ) -> [UInt8] {
    var all = ["Host": "localhost"].merging(fields) { $1 }
    if method != "GET", method != "HEAD", all["X-Larder"] == nil { all["X-Larder"] = "1" }
    if let body { all["Content-Length"] = "\(body.count)" }
    let lines = all.filter { !$0.value.isEmpty }.map { "\($0.key): \($0.value)\r\n" }
    return Array("\(method) \(path) HTTP/1.1\r\n\(lines.joined())\r\n".utf8) + (body ?? [])
  }

  /// Returns the next response.
  func answer(hasBody: Bool = true) throws -> HTTPAnswer {
    let first = try headLine().split(separator: " ")
    #expect(first.first == "HTTP/1.1")
    var fields: [String: String] = [:]
    while case let line = try headLine(), !line.isEmpty {
      let colon = try #require(line.firstIndex(of: ":"))
      let name = line[..<colon].lowercased()
      #expect(fields[name] == nil, "\(name) is repeated")
      fields[name] = String(line[line.index(after: colon)...].drop { $0 == " " })
    }
    let status = try #require(Int(first[1]))
    guard hasBody, status != 204, status != 304 else { return HTTPAnswer(status: status, fields: fields, body: []) }
    if fields["transfer-encoding"] == "chunked" {
      var body: [UInt8] = []
      while case let size = try #require(Int(try headLine(), radix: 16)), size > 0 {
        body += try receive(byteCount: size)
        #expect(try headLine().isEmpty)
      }
      #expect(try headLine().isEmpty)
      return HTTPAnswer(status: status, fields: fields, body: body)
    }
    let length = try #require(fields["content-length"].flatMap { Int($0) })
    return HTTPAnswer(status: status, fields: fields, body: try receive(byteCount: length))
  }

  /// Returns the next chunk of a response, whose head has been read.
  func chunk() throws -> String {
    let size = try #require(Int(try headLine(), radix: 16))
    let text = String(decoding: try receive(byteCount: size), as: UTF8.self)
    #expect(try headLine().isEmpty)
    return text
  }

  /// Reads the head of a response, and returns its first line.
  func head() throws -> String {
    let first = try headLine()
    while try !headLine().isEmpty {}
    return first
  }

  private func headLine() throws -> String {
    var line: [UInt8] = []
    while !line.suffix(2).elementsEqual([13, 10]) { line += try receive(byteCount: 1) }
    return String(decoding: line.dropLast(2), as: UTF8.self)
  }
}
