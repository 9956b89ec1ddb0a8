import Storage
import Wire

/// The commands on entries whose outcome is one entry or a number. All of them run under the store's lock.
extension Executor {
  @inline(__always)
  mutating func get(_ key: RawSpan, _ map: inout EntryMap) throws(Detour) -> Execution {
    guard Key.isValid(key) else { throw .failure(.keyInvalid, BodyFlaw.ofKey(key)) }
    guard let entry = map.get(key, now: now) else { return Execution(.absent, revealing: map.revisions.lastRemoval) }
    return Execution(.entry(entry), revealing: entry.revision)
  }

  mutating func getRange(_ request: RangeRequest, in bytes: RawSpan, _ map: inout EntryMap) throws(Detour) -> Execution
  {
    let key = bytes.extracting(request.key)
    guard Key.isValid(key) else { throw .failure(.keyInvalid, BodyFlaw.ofKey(key)) }
    let entry = map.get(key, now: now)
    let shownRevision = entry?.revision ?? map.revisions.lastRemoval
    if let revision = request.revision, revision != entry?.revision {
      let reason = EntryCondition(ifAbsent: false, ifRevision: revision).failure(actual: entry?.revision)
      throw .failure(.conditionFailed, reason, revealing: shownRevision)
    }
    guard let entry else { return Execution(.absent, revealing: shownRevision) }
    guard case .single = entry.kind else {
      throw .failure(
        .illegalArgument, "the value is a list, and only single values have ranges", revealing: shownRevision)
    }
    let offset = Int(min(request.offset, UInt64(entry.valueByteCount)))
    let count = min(Int(request.count), entry.valueByteCount - offset)
    return Execution(.range(entry, offset..<offset + count), revealing: shownRevision)
  }

  mutating func count(_ prefix: RawSpan, _ map: inout EntryMap) throws(Detour) -> Execution {
    guard prefix.byteCount <= Key.maxSize else { throw Self.failPrefix(prefix.byteCount) }
    let shownRevision = max(map.revisions.lastRemoval, map.revisions.lastInsertion)
    return Execution(.number(UInt64(map.count(prefix: prefix, now: now))), revealing: shownRevision)
  }

  // MARK: Puts

  @inline(__always)
  mutating func put(
    _ write: WriteRecord, in bytes: RawSpan, _ memory: ValueMemory?, _ map: inout EntryMap
  ) throws(Detour) -> Execution {
    if let code = write.error(in: bytes, maxValueSize: limits.maxValueBytes) {
      throw .failure(code, flaw(code, of: write, in: bytes))
    }
    let key = unsafe bytes.extracting(unchecked: write.key)
    guard meetsCondition(write, key, &map) else { throw failCondition(of: write, key, &map) }
    if write.value.count >= AttachedValue.minSize, map.evictBriefly(for: write.value.count, at: key, now: now) {
      throw .deferred
    }
    let revision = map.revisions.last &+ 1
    do throws(StorageError) {
      unsafe try store(write, key, bytes.extracting(unchecked: write.value), in: memory, revision: revision, &map)
    } catch { throw Detour(error, revealing: map.revisions.last) }
    return Execution(.number(revision), revealing: revision)
  }

  /// Writes an entry whose value has been uploaded. If it is not written, the upload stays.
  mutating func put(
    _ request: UploadPut, in bytes: RawSpan, _ uploads: inout Uploads, _ map: inout EntryMap
  ) throws(Detour) -> Execution {
    guard let upload = uploads[request.number] else {
      throw .failure(uploads.failure(request.number, limits))
    }
    guard request.size == upload.byteCount else {
      throw .failure(
        .illegalArgument, "the upload has \(upload.byteCount) bytes, not \(request.size): parts are missing")
    }
    let write = request.write
    if let code = write.error(in: bytes, maxValueSize: limits.maxValueBytes) {
      throw .failure(code, flaw(code, of: write, in: bytes))
    }
    let value = unsafe RawSpan(_unsafeBytes: upload.bytes)
    if write.kind == .list, !ListValue.isValid(value) {
      throw .failure(.dataSerialization, flaw(.dataSerialization, of: write, in: bytes))
    }
    let key = bytes.extracting(write.key)
    guard meetsCondition(write, key, &map) else { throw failCondition(of: write, key, &map) }
    if value.byteCount >= AttachedValue.minSize, map.evictBriefly(for: value.byteCount, at: key, now: now) {
      throw .deferred
    }
    let revision = map.revisions.last + 1
    do throws(StorageError) { try store(write, key, value, revision: revision, &map) } catch {
      throw Detour(error, revealing: map.revisions.last)
    }
    uploads.remove(request.number)
    return Execution(.number(revision), revealing: revision)
  }

  mutating func putMany(_ count: Int, in bytes: RawSpan, _ map: inout EntryMap) throws(Detour) -> Execution {
    guard count <= limits.maxKeysPerRequest else {
      throw .failure(.illegalArgument, KeyList.tooManyKeys(count, limits))
    }
    if isLarge(count: count, bytes, of: .putMany, &map) { throw .needsWriteJob }
    var position = 4
    // The first record whose condition doesn't hold, and its position among all.
    var failed: (write: WriteRecord, position: Int)?
    for index in 0..<count {
      guard let write = WriteRecord(bytes, at: position) else {
        throw .failure(.malformed, BodyFlaw.ofWrite(bytes, at: position))
      }
      if let code = write.error(in: bytes, maxValueSize: limits.maxValueBytes) {
        throw .failure(code, write.message(flaw(code, of: write, in: bytes), index, in: bytes))
      }
      if failed == nil, !meetsCondition(write, bytes.extracting(write.key), &map) { failed = (write, index) }
      position = write.end
    }
    guard position == bytes.byteCount else {
      throw .failure(.malformed, BodyFlaw.trailing(bytes.byteCount - position))
    }
    if let (write, index) = failed {
      let revision = map.get(bytes.extracting(write.key), now: now)?.revision
      let reason = EntryCondition(write).failure(actual: revision)
      throw .failure(.conditionFailed, write.message(reason, index, in: bytes), revealing: map.revisions.last)
    }
    guard count > 0 else { return Execution(.number(0), revealing: map.revisions.last) }
    do throws(StorageError) { try map.reserve(records: count, bytes: bytes.byteCount) } catch {
      throw Detour(error, revealing: map.revisions.last)
    }
    let revision = map.revisions.last + 1
    position = 4
    do throws(StorageError) {
      var prefetchedCount = 0
      while let write = WriteRecord(bytes, at: position) {
        if prefetchedCount == 0 { prefetchedCount = prefetchWrites(in: bytes, at: position, &map) }
        prefetchedCount -= 1
        unsafe try store(
          write, bytes.extracting(unchecked: write.key), bytes.extracting(unchecked: write.value), revision: revision,
          &map)
        position = write.end
      }
      return Execution(.number(revision), revealing: revision)
    } catch {
      // This happens only when the system refuses memory after some of the records: the client must not take it for
      // "not executed".
      throw .failure(.failed, "\(error)", revealing: map.revisions.last)
    }
  }

  private func failCondition(of write: WriteRecord, _ key: RawSpan, _ map: inout EntryMap) -> Detour {
    let reason = EntryCondition(write).failure(actual: map.get(key, now: now)?.revision)
    return .failure(.conditionFailed, reason, revealing: map.revisions.last)
  }

  /// Describes the error in a write.
  func flaw(_ code: ErrorCode, of write: WriteRecord, in body: RawSpan) -> String {
    write.flaw(code, in: body, maxValueSize: limits.maxValueBytes)
  }

  /// Describes the impossible combination of a write's flags and fields.
  static func illegalArgument(flags: UInt8, expiry: UInt64) -> String {
    let both = RecordFlags.ifAbsent | RecordFlags.ifRevision
    if flags & both == both { return "an operation can't have two conditions" }
    return "an entry can't expire after \(expiry) ms; use 1 ms to 2^53 ms"
  }

  func meetsCondition(_ write: WriteRecord, _ key: RawSpan, _ map: inout EntryMap) -> Bool {
    if !write.hasCondition { return true }
    return map.satisfies(EntryCondition(write), key, now: now)
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
    _ key: RawSpan, _ condition: EntryCondition, _ map: inout EntryMap
  ) throws(Detour) -> Execution {
    guard Key.isValid(key) else { throw .failure(.keyInvalid, BodyFlaw.ofKey(key)) }
    guard condition.ifRevision == nil || map.satisfies(condition, key, now: now) else {
      let reason = condition.failure(actual: map.get(key, now: now)?.revision)
      throw .failure(.conditionFailed, reason, revealing: map.revisions.last)
    }
    let isDeleted: Bool
    do throws(StorageError) { isDeleted = try map.delete(key, revision: map.revisions.last + 1, now: now) } catch {
      throw Detour(error, revealing: map.revisions.last)
    }
    return Execution(.number(isDeleted ? 1 : 0), revealing: map.revisions.last)
  }

  mutating func deleteMany(
    _ list: KeyList, in bytes: RawSpan, _ map: inout EntryMap
  ) throws(Detour) -> Execution {
    if list.count <= limits.maxKeysPerRequest, isLarge(count: list.count, bytes, of: .deleteMany, &map) {
      throw .needsWriteJob
    }
    if let (code, reason) = KeyList.flaw(in: bytes, limits) { throw .failure(code, reason) }
    var keys = list
    var count: UInt64 = 0
    do throws(StorageError) {
      try map.checkCommit(operations: keys.count, bytes: bytes.byteCount, isRemoval: true)
      let revision = map.revisions.last + 1
      while let key = keys.next(bytes) {
        if try map.delete(bytes.extracting(key), revision: revision, now: now) { count += 1 }
      }
    } catch { throw Detour(error, revealing: map.revisions.last) }
    return Execution(.number(count), revealing: map.revisions.last)
  }

  mutating func deleteAll(_ map: inout EntryMap) throws(Detour) -> Execution {
    let count: Int
    do throws(StorageError) { count = try map.deleteAll(now: now) } catch {
      throw Detour(error, revealing: map.revisions.last)
    }
    return Execution(.number(UInt64(count)), revealing: map.revisions.last)
  }

  // MARK: Failures

  static func failPrefix(_ byteCount: Int) -> Detour {
    .failure(.illegalArgument, "the prefix has \(byteCount) bytes; the limit is \(Key.maxSize)")
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
    default: Executor.illegalArgument(flags: flags, expiry: expiry)
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

extension EntryCondition {
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
    guard let actual else { return "there is no entry, but revision \(expected) was expected" }
    return "the entry has revision \(actual), not \(expected)"
  }
}

extension RawSpan {
  /// The beginning of a key, of up to 128 bytes, in quotation marks and with escapes, for messages.
  func quoted(_ key: Range<Int>) -> String {
    extracting(key.lowerBound..<min(key.upperBound, key.lowerBound + 128)).toString().debugDescription
  }
}
