import Wire

struct GetRangeRequest: ServerRequest {
  static let operation = Wire.Operation.getRange
  static let form = ReplyForm.body
  private let key: String
  private let offset: UInt64
  private let count: UInt32
  private let revision: UInt64?

  /// - Parameters:
  ///   - count: The maximum number of bytes to return.
  ///   - revision: The revision that the entry must have; nil for any.
  init(key: String, offset: UInt64, count: UInt32, ifRevision revision: UInt64?) {
    self.key = key
    self.offset = offset
    self.count = count
    self.revision = revision
  }

  var measure: RequestMeasure {
    var measure = RequestMeasure(bodySize: 24)
    measure.add(key: key)
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    RawSpan.with(key) { output.appendRange(offset: offset, count: count, ifRevision: revision, key: $0) }
  }
}
