import Wire

/// The methods that resources have, and any other one.
enum HTTPMethod: UInt8, Sendable {
  case get, head, put, post, delete, other

  var isSafe: Bool { self == .get || self == .head }

  init(_ word: RawSpan) {
    if word.isText("GET") {
      self = .get
    } else if word.isText("PUT") {
      self = .put
    } else if word.isText("POST") {
      self = .post
    } else if word.isText("DELETE") {
      self = .delete
    } else if word.isText("HEAD") {
      self = .head
    } else {
      self = .other
    }
  }
}

/// The fields of a request's head that mean something. Of others, only the form is checked.
enum HTTPField: UInt8, CaseIterable, Sendable {
  case host, contentLength, contentType, authorization, ifMatch, ifNoneMatch, range, accept, expiresIn, larder, origin
  case fetchSite, connection, transferEncoding, expect, acceptEncoding, ifRange, ifUnmodifiedSince, contentRange
  case contentEncoding

  fileprivate var name: StaticString {
    switch self {
    case .host: "host"
    case .contentLength: "content-length"
    case .contentType: "content-type"
    case .authorization: "authorization"
    case .ifMatch: "if-match"
    case .ifNoneMatch: "if-none-match"
    case .range: "range"
    case .accept: "accept"
    case .expiresIn: "larder-expires-in"
    case .larder: "x-larder"
    case .origin: "origin"
    case .fetchSite: "sec-fetch-site"
    case .connection: "connection"
    case .transferEncoding: "transfer-encoding"
    case .expect: "expect"
    case .acceptEncoding: "accept-encoding"
    case .ifRange: "if-range"
    case .ifUnmodifiedSince: "if-unmodified-since"
    case .contentRange: "content-range"
    case .contentEncoding: "content-encoding"
    }
  }
}

/// A request of HTTP/1.1 in the input of a connection. Ranges are those of its own bytes.
///
/// Whatever two implementations might read differently is refused, so that no proxy can be made to see other requests
/// than the server does: RFC 9112 §3, §6 and §11.2. An empty line before a request is ignored: §2.2.
struct HTTPRequest: EncodedRequest {
  private struct Slice: BitwiseCopyable {
    var start: UInt16 = 0
    var count: UInt16 = 0

    init() {}

    init(_ range: Range<Int>) { (start, count) = (UInt16(range.lowerBound), UInt16(range.count)) }

    var range: Range<Int> { Int(start)..<Int(start) + Int(count) }
  }

  /// The maximum size of a head, in bytes. A key of 4,096 bytes takes 12,288 if all of them are percent-encoded.
  static let maxHeadSize = 16 << 10

  let method: HTTPMethod
  let route: HTTPRoute
  /// Whether it is one of HTTP/1.0, which some who check the server's health speak.
  let isOld: Bool
  /// Whether the connection ends after the response.
  let isLast: Bool
  let size: Int
  private let headSize: Int
  /// Whether a list is to be lines of JSON instead of an array.
  let wantsLines: Bool
  /// Where the value of each `HTTPField` is.
  private let fields: InlineArray<20, Slice>

  var body: Range<Int> { headSize..<size }

  /// The value of a field; nil if the head doesn't have it.
  subscript(field: HTTPField) -> Range<Int>? {
    let slice = fields[Int(field.rawValue)]
    return slice.start == 0 ? nil : slice.range
  }

  // MARK: An encoded request

  var tag: UInt32 { HTTPReplyForm(self).tag }
  /// The number of its operation; 0, which is none, for what Larder's own protocol doesn't have.
  var operation: UInt8 { route.operation(method)?.rawValue ?? 0 }
  /// The store of the latest request is the only one that is open.
  var store: UInt16 { isOnEntries ? 1 : 0 }
  var isRegular: Bool { true }

  /// Whether it is executed under the lock of a store.
  var isOnEntries: Bool { route.isOnEntries }

  func body(at offset: Int) -> Range<Int> { offset..<offset + size }

  // MARK: Scanning

  static func scan(_ bytes: RawSpan, at offset: Int, maxSize: Int) -> RequestScan<HTTPRequest> {
    let input = bytes.extracting(offset...)
    guard let headSize = headSize(of: input) else {
      guard input.byteCount <= maxHeadSize else {
        return refusal("the head of a request has at most \(maxHeadSize) bytes")
      }
      return .partial(size: 0)
    }
    guard headSize <= maxHeadSize else { return refusal("the head of a request has at most \(maxHeadSize) bytes") }
    do throws(CommandFailure) {
      let request = try HTTPRequest(input.extracting(..<headSize))
      guard request.size <= maxSize else {
        return .invalid(CommandFailure(.frameLength, "a request has at most \(maxSize) bytes (limits.frame-bytes)"))
      }
      return request.size <= input.byteCount ? .request(request) : .partial(size: request.size)
    } catch { return .invalid(error) }
  }

  /// Returns the request whose head is complete at the beginning of input, and valid; nil if there is none.
  static func head(of input: RawSpan) -> HTTPRequest? {
    guard let size = headSize(of: input) else { return nil }
    return try? HTTPRequest(input.extracting(..<size))
  }

  private static func refusal(_ message: String) -> RequestScan<HTTPRequest> {
    .invalid(CommandFailure(.malformed, message))
  }

  /// The size of the head with the empty line, in bytes; nil if it isn't complete.
  private static func headSize(of input: RawSpan) -> Int? {
    var position = 0
    let end = min(input.byteCount, maxHeadSize + 4)
    while position + 3 < end {
      if input.byte(position) == 13, input.byte(position + 1) == 10, input.byte(position + 2) == 13,
        input.byte(position + 3) == 10
      {
        return position + 4
      }
      position += 1
    }
    return nil
  }

  private static func malformed(_ message: String) -> CommandFailure { CommandFailure(.malformed, message) }

  /// - Parameter head: With the empty line.
  private init(_ head: RawSpan) throws(CommandFailure) {
    headSize = head.byteCount
    var position = head.byte(0) == 13 && head.byte(1) == 10 ? 2 : 0
    let line = try Self.nextLine(of: head, at: &position)
    let (method, target, isOld) = try Self.parse(line, of: head)
    route = HTTPRoute(target.path, of: head)
    guard !isOld || route.isPage else { throw Self.malformed("this server speaks HTTP/1.1") }
    (self.method, self.isOld) = (method, isOld)
    var isLast = isOld
    var fields = InlineArray<20, Slice>(repeating: Slice())
    while true {
      let line = try Self.nextLine(of: head, at: &position)
      if line.isEmpty { break }
      let (name, value) = try Self.parse(field: line, of: head)
      guard let field = HTTPField.allCases.first(where: { head.extracting(name).isText($0.name, ignoringCase: true) })
      else { continue }
      // It may be repeated, which no other field is.
      if field == .connection {
        if head.extracting(value).listContains("close") { isLast = true }
        continue
      }
      let index = Int(field.rawValue)
      guard fields[index].start == 0 else {
        throw Self.malformed("the field '\(field.name)' must not be repeated")
      }
      fields[index] = Slice(value)
    }
    guard position == head.byteCount else { throw Self.malformed("a line must end with CR LF") }
    self.isLast = isLast
    guard isOld || fields[Int(HTTPField.host.rawValue)].start != 0 else {
      throw Self.malformed("the field 'Host' is missing")
    }
    // The target's own host counts instead of the field: RFC 9112 §3.2.2.
    if let host = target.host { fields[Int(HTTPField.host.rawValue)] = Slice(host) }
    self.fields = fields
    guard fields[Int(HTTPField.transferEncoding.rawValue)].start == 0 else {
      throw Self.malformed("send the body with Content-Length: Transfer-Encoding is not supported")
    }
    var length = 0
    let slice = fields[Int(HTTPField.contentLength.rawValue)]
    if slice.start != 0 {
      guard let number = head.extracting(slice.range).decimalNumber, number >= 0, slice.count < 16 else {
        throw Self.malformed("Content-Length must be a number of bytes")
      }
      length = number
    }
    size = headSize + length
    let accept = fields[Int(HTTPField.accept.rawValue)]
    wantsLines = head.extracting(accept.range).isText("application/x-ndjson")
  }

  /// Returns the range of the line at a position, without its end, and moves the position behind it.
  private static func nextLine(of head: RawSpan, at position: inout Int) throws(CommandFailure) -> Range<Int> {
    let start = position
    while position < head.byteCount {
      let byte = head.byte(position)
      if byte == 13 {
        guard position + 1 < head.byteCount, head.byte(position + 1) == 10 else { break }
        position += 2
        return start..<position - 2
      }
      guard byte >= 0x20 && byte != 0x7F || byte == 9 else { break }
      position += 1
    }
    throw malformed("the head of a request has lines of visible characters that end with CR LF")
  }

  /// Where a request goes.
  private struct Target {
    /// In an absolute target, the host and the port; nil in any other.
    var host: Range<Int>?
    /// The path and the query; the path is empty if an absolute target has none.
    var path: Range<Int>

    init(_ target: Range<Int>, of head: RawSpan) throws(CommandFailure) {
      path = target
      guard !target.isEmpty, !target.contains(where: { head.byte($0) == UInt8(ascii: "#") }) else {
        throw malformed("the target of a request is a path, in which '#' is %23")
      }
      if head.byte(target.lowerBound) == UInt8(ascii: "/") { return }
      let scheme = target.prefix { head.byte($0) != UInt8(ascii: ":") }
      let start = scheme.endIndex + 3
      guard start < target.upperBound, head.extracting(scheme.endIndex..<start).isText("://"),
        head.extracting(scheme).isText("http", ignoringCase: true)
          || head.extracting(scheme).isText("https", ignoringCase: true)
      else { throw malformed("the target of a request must begin with '/', 'http://' or 'https://'") }
      let end = (start..<target.upperBound).first { "/?".utf8.contains(head.byte($0)) } ?? target.upperBound
      guard start < end, !(start..<end).contains(where: { head.byte($0) == UInt8(ascii: "@") }) else {
        throw malformed("the target of a request has a host, and no user")
      }
      (host, path) = (start..<end, end..<target.upperBound)
    }
  }

  private static func parse(
    _ line: Range<Int>, of head: RawSpan
  ) throws(CommandFailure) -> (HTTPMethod, Target, isOld: Bool) {
    let spaces = line.filter { head.byte($0) == 0x20 }
    guard spaces.count == 2 else { throw malformed("a request begins with a method, a path and HTTP/1.1") }
    let word = line.lowerBound..<spaces[0]
    guard !word.isEmpty, word.allSatisfy({ isTokenByte(head.byte($0)) }) else {
      throw malformed("a request begins with a method, a path and HTTP/1.1")
    }
    let target = try Target(spaces[0] + 1..<spaces[1], of: head)
    let version = head.extracting(spaces[1] + 1..<line.upperBound)
    let isOld = version.isText("HTTP/1.0")
    guard isOld || version.isText("HTTP/1.1") else { throw malformed("this server speaks HTTP/1.1") }
    return (HTTPMethod(head.extracting(word)), target, isOld)
  }

  /// Returns the ranges of a field's name and value.
  private static func parse(
    field line: Range<Int>, of head: RawSpan
  ) throws(CommandFailure) -> (name: Range<Int>, value: Range<Int>) {
    guard let colon = line.first(where: { head.byte($0) == UInt8(ascii: ":") }), colon > line.lowerBound,
      (line.lowerBound..<colon).allSatisfy({ isTokenByte(head.byte($0)) })
    else { throw malformed("a field of a head has a name without spaces, and a colon") }
    var (start, end) = (colon + 1, line.upperBound)
    while start < end, head.byte(start) == 0x20 || head.byte(start) == 9 { start += 1 }
    while start < end, head.byte(end - 1) == 0x20 || head.byte(end - 1) == 9 { end -= 1 }
    return (line.lowerBound..<colon, start..<end)
  }

  private static func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
  }
}

extension RawSpan {
  /// Whether a list whose elements commas separate has a word, in any case.
  /// - Parameter word: Lowercase letters.
  fileprivate func listContains(_ word: StaticString) -> Bool {
    var start = 0
    while start < byteCount {
      let end = (start..<byteCount).first { byte($0) == UInt8(ascii: ",") } ?? byteCount
      var element = start..<end
      while let first = element.first, " \t".utf8.contains(byte(first)) { element.removeFirst() }
      while let last = element.last, " \t".utf8.contains(byte(last)) { element.removeLast() }
      if extracting(element).isText(word, ignoringCase: true) { return true }
      start = end + 1
    }
    return false
  }

  func byte(_ index: Int) -> UInt8 { unsafe unsafeLoad(fromByteOffset: index, as: UInt8.self) }

  /// Whether the bytes are a text of ASCII characters.
  /// - Parameter ignoringCase: The text has lowercase letters then.
  func isText(_ text: StaticString, ignoringCase: Bool = false) -> Bool {
    guard byteCount == text.utf8CodeUnitCount else { return false }
    for index in 0..<byteCount {
      let byte = byte(index)
      let isUppercase = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte)
      let other = unsafe text.utf8Start[index]
      guard byte == other || ignoringCase && isUppercase && byte | 0x20 == other else { return false }
    }
    return true
  }
}
