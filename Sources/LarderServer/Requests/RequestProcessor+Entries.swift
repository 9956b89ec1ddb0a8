import Storage
import Wire

/// The requests on entries with a reply of one frame: `Protocol/wire.md` §6.4. All of them run under the store's lock.
extension RequestProcessor {
  mutating func get(
    _ key: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard Key.isValid(key) else { return replies.fail(.keyInvalid, id, BodyFlaw.ofKey(key)) }
    guard let entry = map.get(key, now: now) else { return replies.fail(.notFound, id).showing(map.lastRemoval) }
    replies.appendReply(id, entry, now: now)
    return RequestResult(shownRevision: entry.revision)
  }

  /// `Protocol/wire.md` §6.12.
  mutating func getRange(
    _ body: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard let request = RangeRequest(body) else { return replies.fail(.malformed, id, BodyFlaw.ofRange(body)) }
    let key = body.extracting(request.key)
    guard Key.isValid(key) else { return replies.fail(.keyInvalid, id, BodyFlaw.ofKey(key)) }
    let entry = map.get(key, now: now)
    let shownRevision = entry?.revision ?? map.lastRemoval
    if let revision = request.revision, revision != entry?.revision {
      let reason = WriteCondition(ifAbsent: false, ifRevision: revision).failure(actual: entry?.revision)
      return replies.fail(.conditionFailed, id, reason).showing(shownRevision)
    }
    guard let entry else { return replies.fail(.notFound, id).showing(shownRevision) }
    guard case .single = entry.kind else {
      return replies.fail(.illegalArgument, id, "the value is a list, which has no ranges").showing(shownRevision)
    }
    let offset = Int(min(request.offset, UInt64(entry.valueByteCount)))
    let count = min(Int(request.count), entry.valueByteCount - offset)
    let start = replies.bytes.beginReply(id: id)
    replies.bytes.append(UInt64(entry.valueByteCount))
    replies.appendEntry(entry, valueRange: offset..<offset + count, now: now)
    replies.bytes.endFrame(start)
    return RequestResult(shownRevision: shownRevision)
  }

  mutating func count(
    _ prefix: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard prefix.byteCount <= Key.maxSize else { return failPrefix(prefix.byteCount, id, into: &replies) }
    let shownRevision = max(map.lastRemoval, map.lastInsertion)
    replies.bytes.appendReply(id: id, number: UInt64(map.count(prefix: prefix, now: now)))
    return RequestResult(shownRevision: shownRevision)
  }

  // MARK: Puts

  mutating func put(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let write = WriteRecord(body, at: 0), write.end == body.byteCount else {
      return replies.fail(.malformed, id, BodyFlaw.ofWrite(body, at: 0))
    }
    if let code = write.error(in: body, maxValueSize: maxValueSize) {
      return replies.fail(code, id, flaw(code, of: write, in: body))
    }
    let key = unsafe body.extracting(unchecked: write.key)
    guard meetsCondition(write, key, &map) else {
      return replies.fail(.conditionFailed, id, WriteCondition(write).failure(actual: map.get(key, now: now)?.revision))
    }
    if write.value.count >= AttachedValue.minSize,
      map.evictBriefly(for: write.value.count, at: key, now: now)
    {
      return .deferred
    }
    let revision = map.revision &+ 1
    let memory = write.value.count < AttachedValue.minSize ? nil : connection.input.valueMemory
    unsafe try store(write, key, body.extracting(unchecked: write.value), in: memory, revision: revision, &map)
    replies.bytes.appendReply(id: id, number: revision)
    return RequestResult()
  }

  mutating func putMany(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let count = body.integer(at: 0, as: UInt32.self) else {
      return replies.fail(.malformed, id, BodyFlaw.ofInteger(body, byteCount: 4))
    }
    guard count <= limits.maxKeysPerRequest else { return failTooManyKeys(Int(count), id, into: &replies) }
    if connection.endedWrite != nil || isLarge(count: Int(count), body, of: .putMany, &map),
      let result = try writeLarge(.putMany, body, id, &connection, store, into: &replies)
    {
      return result
    }
    var position = 4
    // The first record whose condition doesn't hold, and its position among all.
    var failed: (write: WriteRecord, position: Int)?
    for index in 0..<Int(count) {
      guard let write = WriteRecord(body, at: position) else {
        return replies.fail(.malformed, id, BodyFlaw.ofWrite(body, at: position))
      }
      if let code = write.error(in: body, maxValueSize: maxValueSize) {
        return replies.fail(code, id, write.message(flaw(code, of: write, in: body), index, in: body))
      }
      if failed == nil, !meetsCondition(write, body.extracting(write.key), &map) { failed = (write, index) }
      position = write.end
    }
    guard position == body.byteCount else {
      return replies.fail(.malformed, id, BodyFlaw.trailing(body.byteCount - position))
    }
    if let (write, index) = failed {
      let revision = map.get(body.extracting(write.key), now: now)?.revision
      let reason = WriteCondition(write).failure(actual: revision)
      return replies.fail(.conditionFailed, id, write.message(reason, index, in: body))
    }
    guard count > 0 else {
      replies.bytes.appendReply(id: id, number: 0)
      return RequestResult()
    }
    try map.reserve(records: Int(count), bytes: body.byteCount)
    let revision = map.revision + 1
    position = 4
    do throws(StorageError) {
      var prefetchedCount = 0
      while let write = WriteRecord(body, at: position) {
        if prefetchedCount == 0 { prefetchedCount = prefetcher.prefetchWrites(in: body, at: position, &map) }
        prefetchedCount -= 1
        unsafe try self.store(
          write, body.extracting(unchecked: write.key), body.extracting(unchecked: write.value), revision: revision,
          &map)
        position = write.end
      }
      replies.bytes.appendReply(id: id, number: revision)
      return RequestResult()
    } catch {
      // This happens only when the system refuses memory after some of the records: the client must not take it for
      // "not executed".
      return replies.fail(.failed, id, "\(error)")
    }
  }

  /// Describes the error in a write.
  func flaw(_ code: ErrorCode, of write: WriteRecord, in body: RawSpan) -> String {
    write.flaw(code, in: body, maxValueSize: maxValueSize)
  }

  /// Describes the impossible combination of a write's flags and fields.
  static func illegalArgument(flags: UInt8, expiry: UInt64) -> String {
    let both = RecordFlags.ifAbsent | RecordFlags.ifRevision
    if flags & both == both { return "an operation can't have two conditions" }
    return "an entry can't expire after \(expiry) ms; use 1 ms to 2^53 ms"
  }

  func meetsCondition(_ write: WriteRecord, _ key: RawSpan, _ map: inout EntryMap) -> Bool {
    if !write.hasCondition { return true }
    return map.satisfies(WriteCondition(write), key, now: now)
  }

  /// - Parameter memory: The memory that the whole frame is in, if a store can keep the value there.
  @inline(__always)
  func store(
    _ write: WriteRecord, _ key: RawSpan, _ value: RawSpan, in memory: ValueMemory? = nil, revision: UInt64,
    _ map: inout EntryMap
  ) throws(StorageError) {
    try map.put(
      key, value, kind: EntryKind(write.kind), expiry: write.expiry == 0 ? 0 : now &+ write.expiry,
      revision: revision, now: now, in: memory)
  }

  // MARK: Deletes

  mutating func delete(
    _ body: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let flags = body.integer(at: 0, as: UInt8.self) else {
      return replies.fail(.malformed, id, BodyFlaw.ofInteger(body, byteCount: 1))
    }
    guard flags & ~RecordFlags.ifRevision == 0 else {
      return replies.fail(.malformed, id, "a delete has invalid flags: \(flags)")
    }
    var position = 1
    var condition = WriteCondition()
    if flags != 0 {
      guard let revision = body.integer(at: 1, as: UInt64.self) else {
        return replies.fail(.malformed, id, "the body ends before the revision")
      }
      condition.ifRevision = revision
      position = 9
    }
    let key = body.extracting(position..<body.byteCount)
    guard Key.isValid(key) else { return replies.fail(.keyInvalid, id, BodyFlaw.ofKey(key)) }
    guard condition.ifRevision == nil || map.satisfies(condition, key, now: now) else {
      return replies.fail(.conditionFailed, id, condition.failure(actual: map.get(key, now: now)?.revision))
    }
    let isDeleted = try map.delete(key, revision: map.revision + 1, now: now)
    replies.bytes.appendReply(id: id, number: isDeleted ? 1 : 0)
    return RequestResult()
  }

  mutating func deleteMany(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    let keyCount = Int(body.integer(at: 0, as: UInt32.self) ?? 0)
    if keyCount <= limits.maxKeysPerRequest,
      connection.endedWrite != nil || isLarge(count: keyCount, body, of: .deleteMany, &map),
      let result = try writeLarge(.deleteMany, body, id, &connection, store, into: &replies)
    {
      return result
    }
    var keys: KeyList
    switch decodeKeys(body, id, into: &replies) {
    case .valid(let list): keys = list
    case .invalid(let failure): return failure
    }
    try map.checkCommit(operations: keys.count, bytes: body.byteCount, isRemoval: true)
    let revision = map.revision + 1
    var count: UInt64 = 0
    while let key = keys.next(body) {
      if try map.delete(body.extracting(key), revision: revision, now: now) { count += 1 }
    }
    replies.bytes.appendReply(id: id, number: count)
    return RequestResult()
  }

  mutating func deleteAll(
    _ body: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard body.byteCount == 0 else { return replies.fail(.malformed, id, BodyFlaw.ofEmpty(body)) }
    replies.bytes.appendReply(id: id, number: UInt64(try map.deleteAll(now: now)))
    return RequestResult()
  }

  // MARK: Lists of keys

  enum DecodedKeys {
    case valid(KeyList)
    /// The error has been appended to the replies.
    case invalid(RequestResult)
  }

  /// Decodes and checks the list of keys that is the whole body of a request.
  mutating func decodeKeys(_ body: RawSpan, _ id: UInt32, into replies: inout ReplyBuffer) -> DecodedKeys {
    guard let keys = KeyList(body) else { return .invalid(replies.fail(.malformed, id, BodyFlaw.ofKeyList(body))) }
    if let (code, reason) = KeyList.flaw(in: body, limits) { return .invalid(replies.fail(code, id, reason)) }
    return .valid(keys)
  }

  func failPrefix(_ byteCount: Int, _ id: UInt32, into replies: inout ReplyBuffer) -> RequestResult {
    replies.fail(.illegalArgument, id, "the prefix has \(byteCount) bytes; the limit is \(Key.maxSize)")
  }

  func failTooManyKeys(_ count: Int, _ id: UInt32, into replies: inout ReplyBuffer) -> RequestResult {
    replies.fail(.illegalArgument, id, KeyList.tooManyKeys(count, limits))
  }
}

extension WriteRecord {
  var hasCondition: Bool { flags & ~RecordFlags.expiry != 0 }

  /// Returns the error in the write, whose form is valid; nil if there is none.
  @inline(__always)
  func error(in body: RawSpan, maxValueSize: Int) -> ErrorCode? {
    guard unsafe Key.isValid(body.extracting(unchecked: key)) else { return .keyInvalid }
    if value.count > maxValueSize { return .valueTooLarge }
    if kind == .list, !ListValue.isValid(body.extracting(value)) { return .dataSerialization }
    if flags != 0 {
      let both = RecordFlags.ifAbsent | RecordFlags.ifRevision
      if flags & both == both { return .illegalArgument }
      if flags & RecordFlags.expiry != 0, expiry == 0 || expiry > 1 << 53 { return .illegalArgument }
    }
    return nil
  }

  /// Describes the error.
  func flaw(_ code: ErrorCode, in body: RawSpan, maxValueSize: Int) -> String {
    switch code {
    case .keyInvalid: BodyFlaw.ofKey(body.extracting(key))
    case .valueTooLarge: "the value has \(value.count) bytes; the limit is \(maxValueSize)"
    case .dataSerialization: "the value is not a list in its wire format"
    default: RequestProcessor.illegalArgument(flags: flags, expiry: expiry)
    }
  }

  /// Returns a message that names the record and its key.
  /// - Parameter index: The record's position among all; the message counts from 1.
  func message(_ reason: String, _ index: Int, in body: RawSpan) -> String {
    "record \(index + 1) on \(body.quoted(key)): \(reason)"
  }
}

extension KeyList {
  /// Returns the error in the list of keys that is a whole body; nil if there is none.
  static func flaw(in body: RawSpan, _ limits: borrowing ServerLimits) -> (ErrorCode, String)? {
    guard var keys = KeyList(body) else { return (.malformed, BodyFlaw.ofKeyList(body)) }
    guard keys.count <= limits.maxKeysPerRequest else { return (.illegalArgument, tooManyKeys(keys.count, limits)) }
    while let key = keys.next(body) {
      guard Key.isValid(body.extracting(key)) else {
        return (.keyInvalid, "key \(keys.count - keys.remaining): \(BodyFlaw.ofKey(body.extracting(key)))")
      }
    }
    return keys.isComplete(body) ? nil : (.malformed, BodyFlaw.ofKeyList(body))
  }

  static func tooManyKeys(_ count: Int, _ limits: borrowing ServerLimits) -> String {
    "the request has \(count) keys; the limit is \(limits.maxKeysPerRequest)"
  }
}

extension WriteCondition {
  init(_ write: WriteRecord) {
    self.init(
      ifAbsent: write.flags & RecordFlags.ifAbsent != 0,
      ifRevision: write.flags & RecordFlags.ifRevision != 0 ? write.revision : nil)
  }

  /// Describes why the condition doesn't hold.
  /// - Parameter actual: The revision of the entry; nil if there is none.
  func failure(actual: UInt64?) -> String {
    if ifAbsent { return "the key has an entry" }
    guard let expected = ifRevision else { return "the condition doesn't hold" }
    guard let actual else { return "there is no entry, and revision \(expected) was expected" }
    return "the entry has revision \(actual), not \(expected)"
  }
}

extension RawSpan {
  /// The beginning of a key, of up to 128 bytes, in quotation marks and with escapes, for messages.
  func quoted(_ key: Range<Int>) -> String {
    extracting(key.lowerBound..<min(key.upperBound, key.lowerBound + 128)).toString().debugDescription
  }
}
