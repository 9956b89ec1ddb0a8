import Wire

/// An upload has no effect before its put, so its other requests may be sent again; on another connection, where the
/// upload is unknown, they fail.
struct UploadBeginRequest: ServerRequest {
  static let operation = Wire.Operation.uploadBegin
  static let form = ReplyForm.number
  private let key: String

  /// - Parameter key: Not sent, but checked, because it is too late for that at the end.
  init(key: String) {
    self.key = key
  }

  var measure: RequestMeasure {
    var measure = RequestMeasure()
    measure.add(key: key)
    return measure
  }

  func encode(into output: inout ByteBuffer) {}
}

struct UploadPartRequest: ServerRequest {
  static let operation = Wire.Operation.uploadPart
  static let form = ReplyForm.empty
  private let number: UInt64
  private let offset: Int
  private let bytes: [UInt8]

  init(_ number: UInt64, offset: Int, bytes: [UInt8]) {
    self.number = number
    self.offset = offset
    self.bytes = bytes
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: 16 + bytes.count, maxValueSize: offset + bytes.count) }
  func encode(into output: inout ByteBuffer) {
    unsafe output.appendUploadPart(number, offset: UInt64(offset), bytes: bytes.span.bytes)
  }
}

struct UploadPutRequest: ServerRequest {
  static let operation = Wire.Operation.uploadPut
  static let form = ReplyForm.revision
  private let number: UInt64
  private let byteCount: Int
  private let key: String
  private let condition: WriteCondition
  private let expiry: UInt64

  /// - Parameters:
  ///   - byteCount: The size of the whole value.
  ///   - write: What to write, without its value.
  init(_ number: UInt64, byteCount: Int, _ write: Write) throws(LarderError) {
    self.number = number
    self.byteCount = byteCount
    key = write.key
    condition = write.condition
    expiry = try write.expiryMilliseconds()
  }

  var measure: RequestMeasure {
    var measure = RequestMeasure(bodySize: 40)
    measure.add(key: key)
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    let (isAbsent, revision) = condition.fields
    RawSpan.with(key) { key in
      output.appendUploadPut(
        number, size: UInt64(byteCount), kind: .single, expiry: expiry, ifAbsent: isAbsent, ifRevision: revision,
        key: key)
    }
  }
}

struct UploadDiscardRequest: ServerRequest {
  static let operation = Wire.Operation.uploadDiscard
  static let form = ReplyForm.empty
  private let number: UInt64

  init(_ number: UInt64) {
    self.number = number
  }

  var measure: RequestMeasure { RequestMeasure(bodySize: 8) }
  func encode(into output: inout ByteBuffer) { output.append(number) }
}
