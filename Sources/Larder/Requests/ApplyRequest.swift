import Documents
import Wire

/// A request to execute the operations of a batch in one step.
struct ApplyRequest: ServerRequest {
  static let operation = Wire.Operation.apply
  static let form = ReplyForm.revision
  static let isDivisible = false

  private struct Record {
    let kind: ApplyRecord.Kind
    let key: String
    /// The bytes of a single value, a list in its wire format, or the JSON of an update.
    var value: [UInt8] = []
    var condition = WriteCondition.always
    /// When a written entry expires, in milliseconds from now; 0 for never.
    var expiry: UInt64 = 0
    var creates = false
  }

  private let records: [Record]
  /// More updates than the server makes at once. It may take longer for fewer, in large documents, but not much.
  private static let manyUpdates = 64

  /// - Throws: `illegalArgument` for an expiry of less than a millisecond.
  init(_ batch: WriteBatch) throws(LarderError) {
    var records: [Record] = []
    records.reserveCapacity(batch.count)
    for operation in batch.operations { records.append(try Self.record(of: operation)) }
    self.records = records
  }

  private static func record(of operation: WriteBatch.Step) throws(LarderError) -> Record {
    switch operation {
    case .put(let write):
      let (kind, value) = write.value.encoded
      return Record(
        kind: kind == .list ? .putList : .putSingle, key: write.key, value: value, condition: write.condition,
        expiry: try write.expiryMilliseconds())
    case .delete(let key, let condition): return Record(kind: .delete, key: key, condition: condition)
    case .update(let key, let update, let condition, let creates):
      return Record(
        kind: .update, key: key, value: update.json.encoded(), condition: condition, creates: creates)
    case .check(let key, let condition): return Record(kind: .check, key: key, condition: condition)
    }
  }

  var mayTakeLong: Bool { records.count { $0.kind == .update } > Self.manyUpdates }

  var measure: RequestMeasure {
    var measure = RequestMeasure(bodySize: 4, itemCount: records.count)
    for record in records {
      measure.add(key: record.key)
      measure.bodySize += 24 + record.value.count
      measure.maxValueSize = max(measure.maxValueSize, record.value.count)
    }
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    output.append(UInt32(records.count))
    for record in records {
      let (isAbsent, revision): (Bool, UInt64?) =
        switch record.condition {
        case .always: (false, nil)
        case .absent: (true, nil)
        case .revision(let revision): (false, revision)
        }
      RawSpan.with(record.key) { key in
        unsafe output.appendApply(
          record.kind, expiry: record.expiry, ifAbsent: isAbsent, ifRevision: revision, creates: record.creates,
          key: key, value: record.value.span.bytes)
      }
    }
  }
}
