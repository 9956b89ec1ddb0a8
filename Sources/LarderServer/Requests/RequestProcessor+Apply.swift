import Documents
import Storage
import Wire

/// Apply, several operations as one commit: `Protocol/wire.md` §6.11. It runs under the store's lock, except that
/// updates that may take long are left to a `DocumentJob`.
extension RequestProcessor {
  /// The maximum number of updates that are made under the store's lock, and the maximum sizes of their request and of
  /// their work (`ApplyChanges.workByteCount`), in bytes.
  private static let maxBriefUpdateCount = 64
  private static let maxBriefBodyByteCount = 4 << 10
  private static let maxBriefWorkByteCount = 16 << 10

  /// What an apply request consists of, once it is known to be valid.
  private struct Contents {
    /// Its puts and deletes.
    var size = WriteSize()
    var updateCount = 0
    /// The newest commit that its checks reveal if they hold.
    var checkedRevision: UInt64 = 0
    /// The first operation whose condition doesn't hold, and its position among all.
    var failed: (record: ApplyRecord, position: Int)?
  }

  mutating func apply(
    _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store, _ map: inout EntryMap,
    into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard let count = body.integer(at: 0, as: UInt32.self) else {
      return replies.fail(.malformed, id, BodyFlaw.ofInteger(body, byteCount: 4))
    }
    guard count <= limits.maxKeysPerRequest else {
      return replies.fail(
        .illegalArgument, id, "the request has \(count) operations; the limit is \(limits.maxKeysPerRequest)")
    }
    if connection.endedWrite != nil || isLarge(count: Int(count), body, of: .apply, &map) {
      guard let result = try writeLarge(.apply, body, id, &connection, store, into: &replies) else {
        return startApply(body, id, &connection, store, &map, into: &replies).showing(map.revision)
      }
      return result
    }
    var contents = Contents()
    var offset = 4
    var prefetchedCount = 0
    for position in 0..<Int(count) {
      guard let record = ApplyRecord(body, at: offset) else {
        return replies.fail(.malformed, id, BodyFlaw.ofApply(body, at: offset))
      }
      if let (code, reason) = record.error(in: body, maxValueSize: maxValueSize) {
        return replies.fail(code, id, record.message(reason, position, in: body))
      }
      if prefetchedCount == 0 { prefetchedCount = prefetcher.prefetchOperations(in: body, at: offset, &map) }
      prefetchedCount -= 1
      if record.hasCondition, contents.failed == nil,
        unsafe !map.satisfies(WriteCondition(record), body.extracting(unchecked: record.key), now: now)
      {
        contents.failed = (record, position)
      }
      switch record.kind {
      case .putSingle, .putList, .delete:
        contents.size.add(byteCount: record.key.count + record.value.count, isPut: record.kind != .delete)
      case .update: contents.updateCount += 1
      case .check:
        let isRevision = record.flags & RecordFlags.ifRevision != 0
        contents.checkedRevision = max(contents.checkedRevision, isRevision ? record.revision : map.lastRemoval)
      }
      offset = record.end
    }
    guard offset == body.byteCount else {
      return replies.fail(.malformed, id, BodyFlaw.trailing(body.byteCount - offset))
    }
    if let (record, position) = contents.failed {
      let revision = map.get(body.extracting(record.key), now: now)?.revision
      return replies.fail(.conditionFailed, id, record.conditionMessage(position, actual: revision, in: body))
        .showing(map.revision)
    }
    if contents.size.isEmpty, contents.updateCount == 0 {
      replies.bytes.appendReply(id: id, number: 0)
      return RequestResult(shownRevision: contents.checkedRevision)
    }
    do throws(StorageError) {
      if contents.updateCount > 0 {
        return try applyUpdates(contents, body, id, &connection, store, &map, into: &replies).showing(map.revision)
      }
      try contents.size.reserve(in: &map)
    } catch {
      if error == .diskTooSlow || error == .commitPending { throw error }
      return replies.fail(error, id).showing(map.revision)
    }
    let revision = map.revision + 1
    do throws(StorageError) {
      try write(body, revision: revision, &map)
    } catch {
      // As in put-many.
      return replies.fail(.failed, id, "\(error)").showing(map.revision)
    }
    replies.bytes.appendReply(id: id, number: map.revision == revision ? revision : 0)
    return RequestResult(shownRevision: map.revision)
  }

  /// Executes the puts and deletes of a request without updates.
  private func write(_ body: RawSpan, revision: UInt64, _ map: inout EntryMap) throws(StorageError) {
    var offset = 4
    while let record = ApplyRecord(body, at: offset) {
      let key = unsafe body.extracting(unchecked: record.key)
      if let kind = record.valueKind {
        unsafe try map.put(
          key, body.extracting(unchecked: record.value), kind: EntryKind(kind),
          expiry: record.expiry == 0 ? 0 : now &+ record.expiry, revision: revision, now: now)
      } else if record.kind == .delete {
        _ = try map.delete(key, revision: revision, now: now)
      }
      offset = record.end
    }
  }

  /// Executes a request with updates whose conditions hold, or starts a job that does.
  private mutating func applyUpdates(
    _ contents: Contents, _ body: RawSpan, _ id: UInt32, _ connection: inout Connection, _ store: Store,
    _ map: inout EntryMap, into replies: inout ReplyBuffer
  ) throws(StorageError) -> RequestResult {
    guard contents.updateCount <= Self.maxBriefUpdateCount, body.byteCount <= Self.maxBriefBodyByteCount,
      var changes = briefChanges(body, &map)
    else { return startApply(body, id, &connection, store, &map, into: &replies) }
    do throws(JobFailure) {
      let limits = JSONLimits(maxByteCount: maxValueSize)
      while try changes.applyNext(limits) {}
    } catch { return replies.fail(error.code, id, error.message) }
    try changes.writeSize.reserve(in: &map)
    let revision = map.revision + 1
    do throws(StorageError) {
      try changes.write(to: &map, revision: revision, now: now)
    } catch { return replies.fail(.failed, id, "\(error)") }
    replies.bytes.appendReply(id: id, number: map.revision == revision ? revision : 0)
    return RequestResult()
  }

  /// Returns the changes of a request, with the current values of the entries that it updates, or nil if the values are
  /// not in memory or the updates take too much work.
  private func briefChanges(_ body: RawSpan, _ map: inout EntryMap) -> ApplyChanges? {
    let body = body.toArray()
    var changes = ApplyChanges(body)
    var byteCount = 0
    for position in changes.readEntries {
      let key = unsafe body.span.bytes.extracting(changes.key(ofEntry: position))
      guard let view = map.get(key, now: now) else { continue }
      changes.setBase(view, ofEntry: position)
      guard view.kind == .single else { continue }
      byteCount += view.valueByteCount
      guard byteCount <= Self.maxBriefWorkByteCount, let value = unsafe view.value else { return nil }
      unsafe changes.setValue(Array(value), ofEntry: position)
    }
    return changes.workByteCount <= Self.maxBriefWorkByteCount ? changes : nil
  }
}
