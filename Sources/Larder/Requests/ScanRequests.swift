import Wire

/// The entries that a page or all request covers.
struct ScanRange: Sendable {
  var prefix = ""
  var after: String?
  var reverse = false
  var keysOnly = false

  func measure(headerSize: Int) -> RequestMeasure {
    let prefixSize = prefix.utf8.count
    let cursorSize = after?.utf8.count ?? 0
    return RequestMeasure(bodySize: headerSize + prefixSize + cursorSize, maxKeySize: max(1, prefixSize, cursorSize))
  }

  func encode(page: (limit: UInt32, offset: UInt64)?, into output: inout ByteBuffer) {
    RawSpan.with(prefix) { prefix in
      if let after {
        RawSpan.with(after) { after in
          output.appendScan(page: page, prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly)
        }
      } else {
        output.appendScan(page: page, prefix: prefix, after: nil, reverse: reverse, keysOnly: keysOnly)
      }
    }
  }
}

struct PageRequest: ServerRequest {
  static let operation = Wire.Operation.page
  static let form = ReplyForm.stream
  private let range: ScanRange
  private let limit: UInt32
  private let offset: UInt64

  init(range: ScanRange, limit: UInt32, offset: UInt64) {
    self.range = range
    self.limit = limit
    self.offset = offset
  }

  var measure: RequestMeasure { range.measure(headerSize: 20) }
  func encode(into output: inout ByteBuffer) { range.encode(page: (limit, offset), into: &output) }
}

struct WatchStoreRequest: ServerRequest {
  static let operation = Wire.Operation.watch
  static let form = ReplyForm.stream
  private let from: UInt64
  private let prefix: String
  private let keysOnly: Bool

  init(from: UInt64, prefix: String, keysOnly: Bool) {
    self.from = from
    self.prefix = prefix
    self.keysOnly = keysOnly
  }

  var measure: RequestMeasure {
    RequestMeasure(bodySize: 16 + prefix.utf8.count, maxKeySize: max(1, prefix.utf8.count))
  }

  func encode(into output: inout ByteBuffer) {
    RawSpan.with(prefix) { output.appendWatch(from: from, prefix: $0, keysOnly: keysOnly) }
  }
}

/// A watch of one incarnation of a store. The first frame of the reply has the incarnation.
struct WatchIncarnationRequest: ServerRequest {
  static let operation = Wire.Operation.watch
  static let form = ReplyForm.stream
  static let requiredFeatures = Features.incarnations
  private let from: UInt64
  private let incarnation: UInt64
  private let prefix: String
  private let keysOnly: Bool

  /// - Parameter incarnation: 0 for any incarnation.
  init(from: UInt64, incarnation: UInt64, prefix: String, keysOnly: Bool) {
    self.from = from
    self.incarnation = incarnation
    self.prefix = prefix
    self.keysOnly = keysOnly
  }

  var measure: RequestMeasure {
    RequestMeasure(bodySize: 24 + prefix.utf8.count, maxKeySize: max(1, prefix.utf8.count))
  }

  func encode(into output: inout ByteBuffer) {
    RawSpan.with(prefix) {
      output.appendWatch(from: from, incarnation: incarnation, prefix: $0, keysOnly: keysOnly)
    }
  }
}

struct AllRequest: ServerRequest {
  static let operation = Wire.Operation.all
  static let form = ReplyForm.stream
  private let range: ScanRange

  init(range: ScanRange) {
    self.range = range
  }

  var measure: RequestMeasure { range.measure(headerSize: 8) }
  func encode(into output: inout ByteBuffer) { range.encode(page: nil, into: &output) }
}
