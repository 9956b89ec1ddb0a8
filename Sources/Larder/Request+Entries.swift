import Basics
import Wire

struct GetRequest: Request {
  static let operation = Wire.Operation.get
  static let form = ReplyForm.entry
  static let isRead = true
  let key: String

  var measure: RequestMeasure {
    let size = key.utf8.count
    return RequestMeasure(body: size, shortestKey: size, longestKey: size)
  }

  func encode(into output: inout ByteBuffer) { output.append(key) }
}

struct PutRequest: Request {
  static let operation = Wire.Operation.put
  static let form = ReplyForm.number
  static let isRead = false
  let key: String
  let kind: ValueKind
  /// A list in the form that it has on the wire.
  let value: [UInt8]
  let condition: WriteCondition
  /// 0 for never.
  let expiry: UInt64

  init(_ write: Write) throws(LarderError) {
    key = write.key
    condition = write.condition
    switch write.value {
    case .single(let bytes):
      kind = .single
      value = bytes
    case .list(let elements):
      kind = .list
      value = ListValue.encode(elements)
    }
    expiry =
      try write.expiresIn.map { duration throws(LarderError) in
        let milliseconds = duration.wholeMilliseconds
        guard milliseconds > 0 else {
          throw LarderError(
            .illegalArgument, outcome: .rejected, "an expiry of \(duration); it must be at least a millisecond")
        }
        return milliseconds
      } ?? 0
  }

  var measure: RequestMeasure {
    let size = key.utf8.count
    return RequestMeasure(
      body: 24 &+ size &+ value.count, shortestKey: size, longestKey: size, maxValueSize: value.count)
  }

  func encode(into output: inout ByteBuffer) {
    let (isAbsent, revision): (Bool, UInt64?) =
      switch condition {
      case .always: (false, nil)
      case .absent: (true, nil)
      case .revision(let revision): (false, revision)
      }
    RawSpan.with(key) { key in
      unsafe output.appendWrite(
        kind: kind, expiry: expiry, ifAbsent: isAbsent, ifRevision: revision, key: key, value: value.span.bytes)
    }
  }
}

struct PutManyRequest: Request {
  static let operation = Wire.Operation.putMany
  static let form = ReplyForm.number
  static let isRead = false
  let puts: [PutRequest]

  var measure: RequestMeasure {
    var measure = RequestMeasure(body: 4, items: puts.count)
    for put in puts {
      measure.add(key: put.key)
      measure.body += 24 + put.value.count
      measure.maxValueSize = max(measure.maxValueSize, put.value.count)
    }
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    output.append(UInt32(puts.count))
    for put in puts { put.encode(into: &output) }
  }
}

struct DeleteRequest: Request {
  static let operation = Wire.Operation.delete
  static let form = ReplyForm.number
  static let isRead = false
  let key: String
  let revision: UInt64?

  var measure: RequestMeasure {
    var measure = RequestMeasure(body: 9)
    measure.add(key: key)
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    output.append(revision == nil ? 0 : RecordFlags.ifRevision)
    if let revision { output.append(revision) }
    output.append(key)
  }
}

/// The keys of get-many and delete-many.
struct ListedKeys: Sendable {
  let keys: [String]

  var measure: RequestMeasure {
    var measure = RequestMeasure(body: 4 + 2 * keys.count, items: keys.count)
    for key in keys { measure.add(key: key) }
    return measure
  }

  func encode(into output: inout ByteBuffer) {
    output.append(UInt32(keys.count))
    for key in keys { RawSpan.with(key) { output.appendListedKey($0) } }
  }
}

struct GetManyRequest: Request {
  static let operation = Wire.Operation.getMany
  static let form = ReplyForm.answer
  static let isRead = true
  let keys: ListedKeys

  var measure: RequestMeasure { keys.measure }
  func encode(into output: inout ByteBuffer) { keys.encode(into: &output) }
}

struct DeleteManyRequest: Request {
  static let operation = Wire.Operation.deleteMany
  static let form = ReplyForm.number
  static let isRead = false
  let keys: ListedKeys

  var measure: RequestMeasure { keys.measure }
  func encode(into output: inout ByteBuffer) { keys.encode(into: &output) }
}

struct DeleteAllRequest: Request {
  static let operation = Wire.Operation.deleteAll
  static let form = ReplyForm.number
  static let isRead = false

  var measure: RequestMeasure { RequestMeasure() }
  func encode(into output: inout ByteBuffer) {}
}

struct CountRequest: Request {
  static let operation = Wire.Operation.count
  static let form = ReplyForm.number
  static let isRead = true
  let prefix: String

  var measure: RequestMeasure {
    RequestMeasure(body: prefix.utf8.count, longestKey: max(1, prefix.utf8.count))
  }

  func encode(into output: inout ByteBuffer) { output.append(prefix) }
}
