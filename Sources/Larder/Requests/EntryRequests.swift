import Basics
import Wire

struct GetRequest: ServerRequest {
  static let operation = Wire.Operation.get
  static let form = ReplyForm.entry
  private let key: String

  init(key: String) {
    self.key = key
  }

  var measure: RequestMeasure {
    let size = key.utf8.count
    return RequestMeasure(bodySize: size, minKeySize: size, maxKeySize: size)
  }

  func encode(into output: inout ByteBuffer) { output.append(key) }
}

struct PutRequest: ServerRequest {
  static let operation = Wire.Operation.put
  static let form = ReplyForm.revision
  fileprivate let key: String
  private let kind: ValueKind
  /// The bytes of a single value, or a list in its wire format.
  fileprivate let value: [UInt8]
  private let condition: WriteCondition
  /// When the entry expires, in milliseconds from now; 0 for never.
  private let expiry: UInt64

  init(_ write: Write) throws(LarderError) {
    key = write.key
    condition = write.condition
    (kind, value) = write.value.encoded
    expiry = try write.expiryMilliseconds()
  }

  var measure: RequestMeasure {
    let size = key.utf8.count
    return RequestMeasure(
      bodySize: 24 &+ size &+ value.count, minKeySize: size, maxKeySize: size, maxValueSize: value.count)
  }

  func encode(into output: inout ByteBuffer) {
    let (isAbsent, revision) = condition.fields
    RawSpan.with(key) { key in
      unsafe output.appendWrite(
        kind: kind, expiry: expiry, ifAbsent: isAbsent, ifRevision: revision, key: key, value: value.span.bytes)
    }
  }
}

extension WriteCondition {
  /// The condition as the fields of a write record.
  var fields: (isAbsent: Bool, revision: UInt64?) {
    switch self {
    case .always: (false, nil)
    case .absent: (true, nil)
    case .revision(let revision): (false, revision)
    }
  }
}

extension EntryValue {
  /// The kind of the value, and the bytes of a single value or a list in its wire format.
  var encoded: (kind: ValueKind, bytes: [UInt8]) {
    switch self {
    case .single(let bytes): (.single, bytes)
    case .list(let elements): (.list, ListValue.encode(elements))
    }
  }
}

extension Write {
  /// Returns when the entry expires, in milliseconds from now; 0 for never.
  /// - Throws: `illegalArgument` for less than a millisecond.
  func expiryMilliseconds() throws(LarderError) -> UInt64 {
    guard let expiresIn else { return 0 }
    let milliseconds = expiresIn.wholeMilliseconds
    guard milliseconds > 0 else {
      throw LarderError(.illegalArgument, outcome: .rejected, "the expiry is \(expiresIn); it must be at least 1 ms")
    }
    return milliseconds
  }
}

struct PutManyRequest: ServerRequest {
  static let operation = Wire.Operation.putMany
  static let form = ReplyForm.revision
  private let puts: [PutRequest]

  init(puts: [PutRequest]) {
    self.puts = puts
  }

  var measure: RequestMeasure {
    var measure = RequestMeasure(bodySize: 4, itemCount: puts.count)
    for put in puts {
      measure.add(key: put.key)
      measure.bodySize += 24 + put.value.count
      measure.maxValueSize = max(measure.maxValueSize, put.value.count)
    }
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    output.append(UInt32(puts.count))
    for put in puts { put.encode(into: &output) }
  }
}

struct DeleteRequest: ServerRequest {
  static let operation = Wire.Operation.delete
  static let form = ReplyForm.number
  private let key: String
  private let revision: UInt64?

  init(key: String, revision: UInt64?) {
    self.key = key
    self.revision = revision
  }

  var measure: RequestMeasure {
    var measure = RequestMeasure(bodySize: 9)
    measure.add(key: key)
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    output.append(revision == nil ? 0 : RecordFlags.ifRevision)
    if let revision { output.append(revision) }
    output.append(key)
  }
}

/// The keys of a get-many or delete-many request.
struct KeyListBody: Sendable {
  private let keys: [String]

  init(keys: [String]) {
    self.keys = keys
  }

  var measure: RequestMeasure {
    var measure = RequestMeasure(bodySize: 4 + 2 * keys.count, itemCount: keys.count)
    for key in keys { measure.add(key: key) }
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    output.append(UInt32(keys.count))
    for key in keys { RawSpan.with(key) { output.appendListedKey($0) } }
  }
}

struct GetManyRequest: ServerRequest {
  static let operation = Wire.Operation.getMany
  static let form = ReplyForm.stream
  private let keys: KeyListBody

  init(keys: KeyListBody) {
    self.keys = keys
  }

  var measure: RequestMeasure { keys.measure }
  func encode(into output: inout ByteBuffer) { keys.encode(into: &output) }
}

struct DeleteManyRequest: ServerRequest {
  static let operation = Wire.Operation.deleteMany
  static let form = ReplyForm.number
  private let keys: KeyListBody

  init(keys: KeyListBody) {
    self.keys = keys
  }

  var measure: RequestMeasure { keys.measure }
  func encode(into output: inout ByteBuffer) { keys.encode(into: &output) }
}

struct DeleteAllRequest: BodilessRequest {
  static let operation = Wire.Operation.deleteAll
  static let form = ReplyForm.number
}

struct CountRequest: ServerRequest {
  static let operation = Wire.Operation.count
  static let form = ReplyForm.number
  private let prefix: String

  init(prefix: String) {
    self.prefix = prefix
  }

  var measure: RequestMeasure {
    RequestMeasure(bodySize: prefix.utf8.count, maxKeySize: max(1, prefix.utf8.count))
  }

  func encode(into output: inout ByteBuffer) { output.append(prefix) }
}
