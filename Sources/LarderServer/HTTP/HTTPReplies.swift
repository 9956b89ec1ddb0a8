import Basics
import Documents
import Platform
import Storage
import Wire

/// What the reply to a request looks like, in the request's tag: all that a codec knows of a request when it replies.
struct HTTPReplyForm {
  /// What the outcome of a command becomes.
  enum Kind: UInt8 {
    /// What follows from the outcome alone.
    case plain
    /// The revision of a write.
    case write
    /// No content, or that nothing was there.
    case deletion
    case count
    /// The revision of several operations, and the number of entries that were deleted.
    case revision, deletedCount
    /// A list of entries, of documents, or of rows.
    case entries, documents, rows
    /// The plan of a find.
    case explanation
    /// How a store was made.
    case creation
  }

  let kind: Kind
  /// Whether the reply has no body.
  let isHead: Bool
  /// Whether the elements of a list are lines, not an array.
  let hasLines: Bool

  init(_ request: HTTPRequest) {
    isHead = request.method == .head
    hasLines = request.wantsLines || request.route.resource == .changes
    kind =
      switch (request.route.resource, request.method) {
      case (.entry, .put): .write
      case (.entry, .delete), (.store, .delete), (.index, .delete): .deletion
      case (.count, _): .count
      case (.apply, _): .revision
      case (.deletion, _): .deletedCount
      case (.entries, _): .entries
      case (.find, _): .documents
      case (.explain, _): .explanation
      case (.aggregate, _): .rows
      case (.store, .put): .creation
      default: .plain
      }
  }

  init(tag: UInt32) {
    kind = Kind(rawValue: UInt8(truncatingIfNeeded: tag)) ?? .plain
    isHead = tag & 1 << 8 != 0
    hasLines = tag & 1 << 9 != 0
  }

  var tag: UInt32 { UInt32(kind.rawValue) | (isHead ? 1 << 8 : 0) | (hasLines ? 1 << 9 : 0) | 1 << 10 }

  /// The name of the array of a list.
  var listName: StaticString {
    switch kind {
    case .documents, .explanation: "documents"
    case .rows: "rows"
    default: "entries"
    }
  }
}

/// The statuses of responses.
enum HTTPStatus: Int {
  case ok = 200
  case created = 201
  case noContent = 204
  case partialContent = 206
  case notModified = 304
  case badRequest = 400
  case unauthorized = 401
  case forbidden = 403
  case notFound = 404
  case methodNotAllowed = 405
  case timeout = 408
  case conflict = 409
  case gone = 410
  case preconditionFailed = 412
  case contentTooLarge = 413
  case unsupportedMediaType = 415
  case rangeNotSatisfiable = 416
  case misdirected = 421
  case unprocessable = 422
  case tooManyRequests = 429
  case internalError = 500
  case notImplemented = 501
  case unavailable = 503
  case insufficientStorage = 507

  /// What a status is called.
  var reason: StaticString {
    switch self {
    case .ok: "OK"
    case .created: "Created"
    case .noContent: "No Content"
    case .partialContent: "Partial Content"
    case .notModified: "Not Modified"
    case .badRequest: "Bad Request"
    case .unauthorized: "Unauthorized"
    case .forbidden: "Forbidden"
    case .notFound: "Not Found"
    case .methodNotAllowed: "Method Not Allowed"
    case .timeout: "Request Timeout"
    case .conflict: "Conflict"
    case .gone: "Gone"
    case .preconditionFailed: "Precondition Failed"
    case .contentTooLarge: "Content Too Large"
    case .unsupportedMediaType: "Unsupported Media Type"
    case .rangeNotSatisfiable: "Range Not Satisfiable"
    case .misdirected: "Misdirected Request"
    case .unprocessable: "Unprocessable Content"
    case .tooManyRequests: "Too Many Requests"
    case .internalError: "Internal Server Error"
    case .notImplemented: "Not Implemented"
    case .unavailable: "Service Unavailable"
    case .insufficientStorage: "Insufficient Storage"
    }
  }

  init(_ code: ErrorCode) {
    self =
      switch code {
      case .notFound, .storeUnknown, .indexUnknown, .uploadUnknown: .notFound
      case .storeExists, .indexExists: .conflict
      case .conditionFailed: .preconditionFailed
      case .valueTooLarge, .frameLength: .contentTooLarge
      case .notPermitted: .forbidden
      case .tooManyRequests, .tooManyStores, .tooManyIndexes: .tooManyRequests
      case .storeFull: .insufficientStorage
      case .shuttingDown, .tooManyConnections, .notLeader, .storeReadOnly, .answerExpired: .unavailable
      case .timedOut: .timeout
      case .queryStopped: .unprocessable
      case .notImplemented, .queryNotSupported: .notImplemented
      case .changesLost: .gone
      case .unknown, .failed, .valueDamaged, .storeDamaged, .cancelled: .internalError
      default: .badRequest
      }
  }
}

/// Responses, whose heads are written in pieces because they are on the way of every request.
extension ByteBuffer {
  mutating func append(text: StaticString) {
    unsafe append(UnsafeRawBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  /// Appends the beginning of a response: its status, and what keeps browsers from taking it for a page.
  mutating func beginResponse(_ status: HTTPStatus, type: StaticString? = nil) {
    append(text: "HTTP/1.1 ")
    appendDigits(status.rawValue)
    append(text: " ")
    append(text: status.reason)
    append(
      text: """
        \r\nX-Content-Type-Options: nosniff\r\nCache-Control: no-store\r\nCross-Origin-Resource-Policy: same-origin\r\n\
        Content-Security-Policy: default-src 'none'; frame-ancestors 'none'\r\n
        """)
    appendDate()
    guard let type else { return }
    append(text: "Content-Type: ")
    append(text: type)
    append(text: "\r\n")
  }

  /// Appends when the response was made.
  mutating func appendDate() {
    append(text: "Date: ")
    append(HTTPDate(secondsSince1970: wallSeconds()))
    append(text: "\r\n")
  }

  mutating func append(_ date: HTTPDate) {
    append(text: date.dayOfWeek)
    append(text: ", ")
    appendTwoDigits(date.day)
    append(text: date.month)
    appendDigits(date.year)
    append(text: " ")
    appendTwoDigits(date.hour)
    append(text: ":")
    appendTwoDigits(date.minute)
    append(text: ":")
    appendTwoDigits(date.second)
    append(text: " GMT")
  }

  private mutating func appendTwoDigits(_ number: Int) {
    if number < 10 { append(text: "0") }
    appendDigits(number)
  }

  mutating func appendField(_ name: StaticString, _ value: String) {
    append(text: name)
    append(text: ": ")
    append(value)
    append(text: "\r\n")
  }

  mutating func appendField(_ name: StaticString, _ value: Int) {
    append(text: name)
    append(text: ": ")
    appendDigits(value)
    append(text: "\r\n")
  }

  /// Appends the revision of an entry.
  mutating func appendETag(_ revision: UInt64) {
    append(text: "ETag: \"")
    appendDigits(Int(clamping: revision))
    append(text: "\"\r\n")
  }

  mutating func endHead() { append(text: "\r\n") }

  /// Appends a whole response with a body of JSON.
  mutating func appendResponse(_ status: HTTPStatus = .ok, json body: [UInt8], isHead: Bool = false) {
    appendResponse(status, body, type: "application/json", isHead: isHead)
  }

  /// Appends a whole response.
  /// - Parameter isLast: Whether the connection ends with it.
  mutating func appendResponse(
    _ status: HTTPStatus, _ body: [UInt8], type: StaticString, isHead: Bool, isLast: Bool = false,
    field: (name: StaticString, value: String)? = nil
  ) {
    beginResponse(status, type: type)
    if let field { appendField(field.name, field.value) }
    if isLast { append(text: "Connection: close\r\n") }
    appendField("Content-Length", body.count)
    endHead()
    if !isHead { append(body) }
  }

  /// Appends a response about a failure: RFC 9457.
  mutating func appendProblem(
    _ failure: CommandFailure, _ status: HTTPStatus, isHead: Bool = false, isLast: Bool = false,
    field: (name: StaticString, value: String)? = nil
  ) {
    appendResponse(
      status, failure.problem(status), type: "application/problem+json", isHead: isHead, isLast: isLast, field: field)
  }
}

extension CommandFailure {
  /// The maximum size of a problem's detail, in characters. A longer one is truncated.
  private static let maxDetailSize = 1_024

  /// The failure as a problem of RFC 9457, with the code and the outcome of the protocol.
  func problem(_ status: HTTPStatus) -> [UInt8] {
    let detail = message.isEmpty ? "\(code)" : String(message.prefix(Self.maxDetailSize))
    return JSONValue.object([
      "title": .string("\(status.reason)"), "status": .integer(Int64(status.rawValue)), "code": .string("\(code)"),
      "detail": .string(detail), "outcome": .string("\(outcome)"),
    ]).encoded()
  }
}

// MARK: Entries

/// What entries look like in lists.
enum HTTPEntry {
  /// The size of a value, in bytes, up to which it is in a list.
  static let maxListedSize = 4_096

  /// Returns an entry as JSON.
  static func json(_ entry: EntryView, hasValue: Bool, now: UInt64) -> [UInt8] {
    var text = Array("{".utf8)
    unsafe append("key", entry.key, to: &text)
    text += ",\"revision\":\"\(entry.revision)\",\"size\":\(entry.valueByteCount)".utf8
    if entry.expiry != 0 { text += ",\"expiresInMilliseconds\":\(entry.expiry &- now)".utf8 }
    if case .list = entry.kind { text += ",\"isList\":true".utf8 }
    if hasValue, entry.valueByteCount <= maxListedSize, let value = unsafe entry.value {
      text.append(UInt8(ascii: ","))
      unsafe append("value", value, to: &text)
    }
    text.append(UInt8(ascii: "}"))
    return text
  }

  /// Returns a change as JSON.
  static func json(_ change: ChangeView, hasValue: Bool, lifetime: UInt64) -> [UInt8] {
    let name =
      switch change.kind {
      case .single, .list: "put"
      case .delete: "delete"
      case .deleteAll: "deleteAll"
      case .expiry: "expiry"
      }
    var text = Array("{\"change\":\"\(name)\",\"revision\":\"\(change.revision)\"".utf8)
    if change.kind != .deleteAll {
      text.append(UInt8(ascii: ","))
      unsafe append("key", change.key, to: &text)
    }
    if case .list = change.kind { text += ",\"isList\":true".utf8 }
    if lifetime != 0 { text += ",\"expiresInMilliseconds\":\(lifetime)".utf8 }
    if name == "put" {
      text += ",\"size\":\(unsafe change.value.count)".utf8
      if hasValue, unsafe change.value.count <= maxListedSize {
        text.append(UInt8(ascii: ","))
        unsafe append("value", change.value, to: &text)
      }
    }
    text.append(UInt8(ascii: "}"))
    return text
  }

  /// Appends bytes as a member: a string if they are UTF-8, otherwise with `Base64` behind its name and in Base64.
  static func append(_ name: StaticString, _ bytes: UnsafeRawBufferPointer, to text: inout [UInt8]) {
    text.append(UInt8(ascii: "\""))
    unsafe text.append(contentsOf: UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    let span = unsafe Span(_unsafeElements: bytes.assumingMemoryBound(to: UInt8.self))
    guard unsafe String(validating: bytes, as: UTF8.self) != nil else {
      text += "Base64\":\"".utf8
      Base64.append(span, to: &text)
      text.append(UInt8(ascii: "\""))
      return
    }
    text += "\":".utf8
    JSONString.append(quoting: span, to: &text)
  }
}
