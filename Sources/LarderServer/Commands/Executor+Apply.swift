import Documents
import Storage
import Wire

/// Apply, several operations as one commit: `Protocol/wire.md` §6.11. It runs under the store's lock, except that
/// updates that may take long are left to a `DocumentJob`.
extension Executor {
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

  mutating func apply(_ count: Int, in bytes: RawSpan, _ map: inout EntryMap) throws(Detour) -> Execution {
    guard count <= limits.maxKeysPerRequest else {
      throw .failure(
        .illegalArgument, "the request has \(count) operations; the limit is \(limits.maxKeysPerRequest)")
    }
    if isLarge(count: count, bytes, of: .apply, &map) { throw .needsWriteJob }
    var contents = Contents()
    var offset = 4
    var prefetchedCount = 0
    for position in 0..<count {
      guard let record = ApplyRecord(bytes, at: offset) else {
        throw .failure(.malformed, BodyFlaw.ofApply(bytes, at: offset))
      }
      if let (code, reason) = record.error(in: bytes, maxValueSize: limits.maxValueBytes) {
        throw .failure(code, record.message(reason, position, in: bytes))
      }
      if prefetchedCount == 0 { prefetchedCount = prefetchOperations(in: bytes, at: offset, &map) }
      prefetchedCount -= 1
      if record.hasCondition, contents.failed == nil,
        unsafe !map.satisfies(EntryCondition(record), bytes.extracting(unchecked: record.key), now: now)
      {
        contents.failed = (record, position)
      }
      switch record.kind {
      case .putSingle, .putList, .delete:
        contents.size.add(byteCount: record.key.count + record.value.count, isPut: record.kind != .delete)
      case .update: contents.updateCount += 1
      case .check:
        let isRevision = record.flags & RecordFlags.ifRevision != 0
        contents.checkedRevision = max(
          contents.checkedRevision, isRevision ? record.revision : map.revisions.lastRemoval)
      }
      offset = record.end
    }
    guard offset == bytes.byteCount else {
      throw .failure(.malformed, BodyFlaw.trailing(bytes.byteCount - offset))
    }
    if let (record, position) = contents.failed {
      let revision = map.get(bytes.extracting(record.key), now: now)?.revision
      let reason = record.conditionMessage(position, actual: revision, in: bytes)
      throw .failure(.conditionFailed, reason, revealing: map.revisions.last)
    }
    if contents.size.isEmpty, contents.updateCount == 0 {
      return Execution(.number(0), revealing: contents.checkedRevision)
    }
    if contents.updateCount > 0 { return try applyUpdates(contents, bytes, &map) }
    do throws(StorageError) { try contents.size.reserve(in: &map) } catch {
      throw Detour(error, revealing: map.revisions.last)
    }
    let revision = map.revisions.last + 1
    do throws(StorageError) {
      try write(bytes, revision: revision, &map)
    } catch {
      // As in put-many.
      throw .failure(.failed, "\(error)", revealing: map.revisions.last)
    }
    return Execution(.number(map.revisions.last == revision ? revision : 0), revealing: map.revisions.last)
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

  /// Executes a request with updates whose conditions hold, unless a job has to do it.
  private mutating func applyUpdates(
    _ contents: Contents, _ bytes: RawSpan, _ map: inout EntryMap
  ) throws(Detour) -> Execution {
    guard contents.updateCount <= Self.maxBriefUpdateCount, bytes.byteCount <= Self.maxBriefBodyByteCount,
      var changes = briefChanges(bytes, &map)
    else { throw .needsDocumentJob }
    do throws(CommandFailure) {
      let limits = JSONLimits(maxByteCount: limits.maxValueBytes)
      while try changes.applyNext(limits) {}
    } catch { throw .failure(CommandFailure(error.code, error.message, shownRevision: map.revisions.last)) }
    do throws(StorageError) { try changes.writeSize.reserve(in: &map) } catch {
      throw Detour(error, revealing: map.revisions.last)
    }
    let revision = map.revisions.last + 1
    do throws(StorageError) {
      try changes.write(to: &map, revision: revision, now: now)
    } catch { throw .failure(.failed, "\(error)", revealing: map.revisions.last) }
    return Execution(.number(map.revisions.last == revision ? revision : 0), revealing: map.revisions.last)
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
