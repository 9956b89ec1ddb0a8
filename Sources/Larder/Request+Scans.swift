import Wire

/// Which entries a page, or a walk through all, goes over.
struct ScanRange: Sendable {
  var prefix = ""
  var after: String?
  var reverse = false
  var keysOnly = false

  func measure(fixed: Int) -> RequestMeasure {
    let prefixSize = prefix.utf8.count
    let cursorSize = after?.utf8.count ?? 0
    return RequestMeasure(body: fixed + prefixSize + cursorSize, longestKey: max(1, prefixSize, cursorSize))
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

struct PageRequest: Request {
  static let operation = Wire.Operation.page
  static let form = ReplyForm.answer
  static let isRead = true
  let range: ScanRange
  let limit: UInt32
  let offset: UInt64

  var measure: RequestMeasure { range.measure(fixed: 20) }
  func encode(into output: inout ByteBuffer) { range.encode(page: (limit, offset), into: &output) }
}

struct WatchStoreRequest: Request {
  static let operation = Wire.Operation.watch
  static let form = ReplyForm.answer
  static let isRead = true
  let from: UInt64
  let prefix: String
  let keysOnly: Bool

  var measure: RequestMeasure { RequestMeasure(body: 16 + prefix.utf8.count, longestKey: max(1, prefix.utf8.count)) }

  func encode(into output: inout ByteBuffer) {
    RawSpan.with(prefix) { output.appendWatch(from: from, prefix: $0, keysOnly: keysOnly) }
  }
}

struct AllRequest: Request {
  static let operation = Wire.Operation.all
  static let form = ReplyForm.answer
  static let isRead = true
  let range: ScanRange

  var measure: RequestMeasure { range.measure(fixed: 8) }
  func encode(into output: inout ByteBuffer) { range.encode(page: nil, into: &output) }
}
