import Storage
import Wire

/// The requests on entries with a reply of one frame: `Protocol/wire.md` §6.4. All of them run under the store's lock.
extension RequestProcessor {
  mutating func get(
    _ key: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard Key.isValid(key) else { return replies.fail(.keyInvalid, id) }
    guard let entry = map.get(key, now: now) else { return replies.fail(.notFound, id).showing(map.lastRemoval) }
    let start = replies.bytes.beginReply(id: id)
    replies.appendEntry(entry, withKey: false, now: now)
    replies.bytes.endFrame(start)
    return RequestResult(shownRevision: entry.revision)
  }

  mutating func count(
    _ prefix: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) -> RequestResult {
    guard prefix.byteCount <= Key.maxSize else { return replies.fail(.illegalArgument, id) }
    let shownRevision = max(map.lastRemoval, map.lastInsertion)
    replies.bytes.appendReply(id: id, number: UInt64(map.count(prefix: prefix, now: now)))
    return RequestResult(shownRevision: shownRevision)
  }

  // MARK: Puts

  mutating func put(
    _ body: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let write = WriteRecord(body, at: 0), write.end == body.byteCount else { return replies.fail(.malformed, id) }
    if let code = error(in: write, of: body) { return replies.fail(code, id) }
    let key = unsafe body.extracting(unchecked: write.key)
    guard meetsCondition(write, key, &map) else { return replies.fail(.conditionFailed, id) }
    let revision = map.revision &+ 1
    try store(write, body, revision: revision, &map)
    replies.bytes.appendReply(id: id, number: revision)
    return RequestResult()
  }

  mutating func putMany(
    _ body: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let count = body.integer(at: 0, as: UInt32.self) else { return replies.fail(.malformed, id) }
    guard count <= limits.maxKeysPerRequest else { return failTooManyKeys(Int(count), id, into: &replies) }
    var position = 4
    var conditionHolds = true
    for _ in 0..<count {
      guard let write = WriteRecord(body, at: position) else { return replies.fail(.malformed, id) }
      if let code = error(in: write, of: body) { return replies.fail(code, id) }
      conditionHolds = conditionHolds && meetsCondition(write, body.extracting(write.key), &map)
      position = write.end
    }
    guard position == body.byteCount else { return replies.fail(.malformed, id) }
    guard conditionHolds else { return replies.fail(.conditionFailed, id) }
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
        try store(write, body, revision: revision, &map)
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

  /// The error in a write whose form is valid; nil if there is none.
  private func error(in write: WriteRecord, of body: RawSpan) -> ErrorCode? {
    guard unsafe Key.isValid(body.extracting(unchecked: write.key)) else { return .keyInvalid }
    if write.value.count > maxValueSize { return .valueTooLarge }
    if write.kind == .list, !ListValue.isValid(body.extracting(write.value)) { return .dataSerialization }
    if write.flags != 0 {
      let both = RecordFlags.ifAbsent | RecordFlags.ifRevision
      if write.flags & both == both { return .illegalArgument }
      if write.flags & RecordFlags.expiry != 0, write.expiry == 0 || write.expiry > 1 << 53 { return .illegalArgument }
    }
    return nil
  }

  private func meetsCondition(_ write: WriteRecord, _ key: RawSpan, _ map: inout EntryMap) -> Bool {
    if write.flags & ~RecordFlags.expiry == 0 { return true }
    let condition = WriteCondition(
      ifAbsent: write.flags & RecordFlags.ifAbsent != 0,
      ifRevision: write.flags & RecordFlags.ifRevision != 0 ? write.revision : nil)
    return map.satisfies(condition, key, now: now)
  }

  private func store(_ write: WriteRecord, _ body: RawSpan, revision: UInt64, _ map: inout EntryMap)
    throws(StorageError)
  {
    unsafe try map.put(
      body.extracting(unchecked: write.key), body.extracting(unchecked: write.value),
      kind: EntryKind(write.kind),
      expiry: write.expiry == 0 ? 0 : now &+ write.expiry, revision: revision, now: now)
  }

  // MARK: Deletes

  mutating func delete(
    _ body: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let flags = body.integer(at: 0, as: UInt8.self), flags & ~RecordFlags.ifRevision == 0 else {
      return replies.fail(.malformed, id)
    }
    var position = 1
    var condition = WriteCondition()
    if flags != 0 {
      guard let revision = body.integer(at: 1, as: UInt64.self) else { return replies.fail(.malformed, id) }
      condition.ifRevision = revision
      position = 9
    }
    let key = body.extracting(position..<body.byteCount)
    guard Key.isValid(key) else { return replies.fail(.keyInvalid, id) }
    guard condition.ifRevision == nil || map.satisfies(condition, key, now: now) else {
      return replies.fail(.conditionFailed, id)
    }
    let isDeleted = try map.delete(key, revision: map.revision + 1, now: now)
    replies.bytes.appendReply(id: id, number: isDeleted ? 1 : 0)
    return RequestResult()
  }

  mutating func deleteMany(
    _ body: RawSpan, _ id: UInt32, _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    var keys: KeyList
    switch decodeKeys(body, id, into: &replies) {
    case .valid(let list): keys = list
    case .invalid(let failure): return failure
    }
    try map.checkCommit(operations: keys.count, bytes: body.byteCount)
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
    guard body.byteCount == 0 else { return replies.fail(.malformed, id) }
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
    guard let keys = KeyList(body) else { return .invalid(replies.fail(.malformed, id)) }
    guard keys.count <= limits.maxKeysPerRequest else {
      return .invalid(failTooManyKeys(keys.count, id, into: &replies))
    }
    var remaining = keys
    while let key = remaining.next(body) {
      guard Key.isValid(body.extracting(key)) else { return .invalid(replies.fail(.keyInvalid, id)) }
    }
    guard remaining.isComplete(body) else { return .invalid(replies.fail(.malformed, id)) }
    return .valid(keys)
  }

  func failTooManyKeys(_ count: Int, _ id: UInt32, into replies: inout ReplyBuffer) -> RequestResult {
    replies.fail(.illegalArgument, id, "the request has \(count) keys; the limit is \(limits.maxKeysPerRequest)")
  }
}
