import Documents
import Platform
import Storage
import Wire

/// An update or a deletion of all documents that match: keeps their keys and new values, and changes all of them in one
/// commit.
///
/// The values are computed from a snapshot, without the store's lock. The commit takes place only if every document
/// still has the revision that was seen. Those that have been written meanwhile are examined again by the commit itself, so
/// that others can't outpace it, unless that takes long. One that was added to the matching documents meanwhile is not changed,
/// as if it had been written after the commit.
final class ChangeTask: CommittingTask {
  /// A document to change. Key and value are ranges of `bytes`.
  private struct Change {
    let key: Range<Int>
    /// The new value; empty if the document is deleted.
    let value: Range<Int>
    /// What the document must have for the change to apply.
    let revision: UInt64
    let expiry: UInt64
  }

  /// The maximum number of documents that one commit changes.
  static let maxChangeCount = 65_536
  /// How many times the documents are examined again that others write meanwhile.
  private static let maxRounds = 16
  /// The maximum number of documents, the size of their values, in bytes, and the work, in units of a `WorkBudget`, that
  /// the commit examines again under the store's lock. That takes about a millisecond.
  private static let maxBriefCount = 256
  /// The maximum number and size of the changes that are made under one acquisition of the lock, and the maximum number of
  /// keys in indexes that they change.
  private static let maxSmallCount = 1_024
  private static let maxSmallByteCount = 1 << 20
  private static let maxSmallKeyCount = 2_048
  private static let maxBriefByteCount = 64 << 10
  private static let maxBriefUnits = 1 << 16
  /// How many times the commit is tried while the store has no room for it.
  private static let maxRoomRetries = 100

  let query: DocumentQuery
  private var selector: EntrySelector
  /// nil to delete the documents.
  private let update: DocumentUpdate?
  private let isDryRun: Bool
  private let valueLimits: JSONLimits
  private var changes: [Change] = []
  private var bytes: [UInt8] = []
  private var matchCount = 0
  private var rounds = 0
  private var roomRetries = 0

  // The large commit, if there is one.
  private var commitEnd: LargeWriteEnd?
  /// The number of changes that have been checked, and then of those that have been made.
  private var position = 0
  /// The indexes of the changes of documents that have been written meanwhile.
  private var outdated: [Int] = []
  /// Where the keys of these documents are that have yet to be examined again.
  private var outdatedKeys: [Range<Int>] = []
  private var copiedValue = CopiedValue()
  /// The newest revision of a document that a commit has examined again.
  private var newestRevision: UInt64 = 0

  init(_ request: ChangeMatchingRequest, _ body: [UInt8], _ limits: ServerLimits) throws(CommandFailure) {
    let bytes = body.span
    let none = [UInt8]()
    do throws(SelectorError) {
      query = try DocumentQuery(
        selector: bytes.extracting(request.selector), sort: none.span, fields: none.span, bookmark: none.span)
      selector = try EntrySelector(query.selector)
    } catch { throw CommandFailure(error) }
    do throws(DocumentUpdateError) {
      update = request.isDelete ? nil : try DocumentUpdate(parsing: bytes.extracting(request.update))
    } catch { throw CommandFailure(.illegalArgument, "\(error)") }
    isDryRun = request.isDryRun
    valueLimits = JSONLimits(maxByteCount: limits.maxValueBytes)
  }

  var keptByteCount: Int { bytes.count + changes.count * MemoryLayout<Change>.stride }

  // MARK: Examining

  func examine(
    _ entries: Span<StoredEntry>, maxKeptByteCount: Int, _ budget: inout WorkBudget
  ) throws(ExaminationFailure) -> Int {
    var count = 0
    while count < entries.count, keptByteCount <= maxKeptByteCount {
      try examine(entries[count], &budget)
      count += 1
    }
    return count
  }

  private func examine(_ entry: StoredEntry, _ budget: inout WorkBudget) throws(ExaminationFailure) {
    do throws(ExhaustedBudgetError) {
      guard try selector.matches(entry, &budget) else { return }
    } catch { throw .exhaustedBudget }
    matchCount += 1
    let start = bytes.count
    entry.withKey { key in unsafe key.withUnsafeBufferPointer { unsafe bytes.append(contentsOf: $0) } }
    let keyEnd = bytes.count
    if let update {
      do throws(DocumentUpdateError) {
        guard
          let changed = try entry.withValue({ (value) throws(DocumentUpdateError) in
            try update.change(of: value, limits: valueLimits)
          })
        else {
          bytes.removeSubrange(start...)
          return
        }
        bytes += changed
      } catch { throw .failed(failure(error, bytes[start..<keyEnd])) }
    }
    guard changes.count < Self.maxChangeCount else {
      throw .failed(
        CommandFailure(
          .queryStopped,
          "more than \(Self.maxChangeCount) documents match, the limit of a request; change them in batches, by "
            + "ranges of _id"))
    }
    changes.append(
      Change(key: start..<keyEnd, value: keyEnd..<bytes.count, revision: entry.revision, expiry: entry.expiry))
  }

  private func failure(_ error: DocumentUpdateError, _ key: ArraySlice<UInt8>) -> CommandFailure {
    let name = String(decoding: key.prefix(128), as: UTF8.self)
    let code: ErrorCode = error.code == .resultTooLarge ? .valueTooLarge : .illegalArgument
    return CommandFailure(code, "the document \"\(name)\" can't be updated: \(error)")
  }

  // MARK: Changing

  private enum CommitEnd: Sendable {
    case committed(UInt64, [any ChangeWaiter])
    /// These changes are of documents that have been written meanwhile. The handles, 0 for none, are of the snapshot.
    case outdated([Int], [UInt32], Snapshot)
    /// Documents have been written meanwhile, too many times.
    case outpaced
    case canceled
    /// The changes take too long for one acquisition of the lock, or another large commit is being made.
    case large
  }

  func end(_ job: DocumentJob, _ budget: inout WorkBudget) throws(ExaminationFailure) -> TaskEnd {
    do throws(CommandFailure) { return try change(job) } catch { throw .failed(error) }
  }

  private func change(_ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    if let commitEnd = commitEnd.take() { return try finish(commitEnd, job) }
    guard !isDryRun, !changes.isEmpty else { return .result(result(job, revision: 0)) }
    if changes.count > Self.maxSmallCount || bytes.count > Self.maxSmallByteCount || rounds > 0 { return beginCommit() }
    var isCommitting = false
    let end: CommitEnd
    do throws(StorageError) {
      end = try job.store.accessInTurn { map throws(StorageError) in try commit(job, to: &map, &isCommitting) }
    } catch {
      // Only a system without memory stops a commit that has begun: the client must not take it for "not executed".
      if isCommitting { throw CommandFailure(.failed, "\(error)") }
      if error == .commitPending { return beginCommit() }
      guard error == .diskTooSlow, roomRetries < Self.maxRoomRetries else { throw CommandFailure(error) }
      roomRetries += 1
      return .needsSpace
    }
    switch end {
    case .committed(let revision, let waiters):
      for waiter in waiters { waiter.storeDidChange() }
      job.store.commitWriter?.wake()
      return .result(result(job, revision: revision))
    case .outdated(let outdated, let handles, let snapshot):
      remove(outdated)
      return .needsDocuments(handles, snapshot)
    case .outpaced: throw outpacedFailure
    case .canceled: return .canceled
    case .large: return beginCommit()
    }
  }

  private func result(_ job: DocumentJob, revision: UInt64) -> JobResult {
    let changes = MatchingChanges(
      matched: UInt64(matchCount), changed: UInt64(changes.count), revision: revision,
      examinedDocuments: UInt64(job.examinedDocuments), examinedKeys: UInt64(job.examinedKeys),
      nanoseconds: job.elapsedTime)
    return .changed(changes, shownRevision: max(revision, newestRevision, job.newestRevision))
  }

  /// Changes all documents, unless some have been written since they were examined.
  private func commit(
    _ job: DocumentJob, to map: inout EntryMap, _ isCommitting: inout Bool
  ) throws(StorageError) -> CommitEnd {
    guard !map.isDropped else { throw map.removalError }
    guard !map.isDiverted, map.indexKeyCount(ofDeletes: changes.count) <= Self.maxSmallKeyCount else { return .large }
    let now = monotonicMilliseconds()
    var outdated: [Int] = []
    for (index, change) in changes.enumerated() {
      let entry = unsafe map.get(bytes.span.bytes.extracting(change.key), now: now)
      if entry?.revision != change.revision { outdated.append(index) }
    }
    if !outdated.isEmpty, !examineBriefly(outdated, in: &map, now: now) {
      rounds += 1
      guard rounds <= Self.maxRounds else { return .outpaced }
      let (changes, bytes) = (changes, bytes)
      let snapshot = map.snapshot(now: now)
      let handles = outdated.map { index in
        unsafe map.handle(of: bytes.span.bytes.extracting(changes[index].key), now: now) ?? 0
      }
      return .outdated(outdated, handles, snapshot)
    }
    let (valid, contents) = (changes, bytes)
    if update == nil {
      try map.checkCommit(operations: valid.count, bytes: contents.count, isRemoval: true)
    } else {
      try map.reserve(records: valid.count, bytes: contents.count)
    }
    guard job.beginCommit() else { return .canceled }
    isCommitting = true
    let revision = map.revisions.last + 1
    for change in valid {
      let key = unsafe contents.span.bytes.extracting(change.key)
      if update == nil {
        _ = try map.delete(key, revision: revision, now: now)
      } else {
        let value = unsafe contents.span.bytes.extracting(change.value)
        try map.put(key, value, expiry: change.expiry, revision: revision, now: now)
      }
    }
    return .committed(revision, map.takeNotifiedWaiters())
  }

  /// Examines documents again that have been written meanwhile, if that takes little time.
  /// - Parameter outdated: The indexes of their changes, ascending.
  /// - Returns: Whether there are changes, and all of them apply. Otherwise, they stay as they were.
  private func examineBriefly(_ outdated: [Int], in map: inout EntryMap, now: UInt64) -> Bool {
    guard outdated.count <= Self.maxBriefCount else { return false }
    let (changes, byteCount, matchCount) = (changes, bytes.count, matchCount)
    remove(outdated)
    if examineValues(of: outdated.map { changes[$0].key }, in: &map, now: now), !self.changes.isEmpty { return true }
    (self.changes, self.matchCount) = (changes, matchCount)
    bytes.removeSubrange(byteCount...)
    return false
  }

  /// - Parameter keys: Where the keys are in `bytes`.
  /// - Returns: Whether all of them could be examined.
  private func examineValues(of keys: [Range<Int>], in map: inout EntryMap, now: UInt64) -> Bool {
    var budget = WorkBudget(units: Self.maxBriefUnits)
    var byteCount = 0
    for key in keys {
      guard let entry = unsafe map.get(bytes.span.bytes.extracting(key), now: now), entry.kind == .single else {
        continue
      }
      newestRevision = max(newestRevision, entry.revision)
      byteCount += entry.valueByteCount
      guard byteCount <= Self.maxBriefByteCount, let value = unsafe entry.value else { return false }
      do throws(ExaminationFailure) {
        unsafe try examine(StoredEntry(entry, EntryHead(0, entry), value: value), &budget)
      } catch { return false }
    }
    return true
  }

  // MARK: Large commits

  private var outpacedFailure: CommandFailure {
    CommandFailure(
      .conditionFailed,
      "nothing was changed: other clients changed some of the documents in each of \(Self.maxRounds) rounds; try again")
  }

  private func beginCommit() -> TaskEnd {
    (position, outdated, outdatedKeys) = (0, [], [])
    return .needsCommit(self)
  }

  func makeRoom(in map: inout EntryMap) -> Bool {
    update != nil && map.evictSome(forRecords: changes.count, bytes: bytes.count)
  }

  func checkNext(in map: inout EntryMap, now: UInt64) -> LargeWriteStep {
    if position < changes.count, outdatedKeys.isEmpty {
      let change = changes[position]
      let entry = unsafe map.get(bytes.span.bytes.extracting(change.key), now: now)
      if entry?.revision != change.revision { outdated.append(position) }
      position += 1
      if position == changes.count, !outdated.isEmpty {
        outdatedKeys = outdated.map { changes[$0].key }
        remove(outdated)
      }
      return .unfinished
    }
    if let key = outdatedKeys.last {
      let (changeCount, byteCount, matchCount) = (changes.count, bytes.count, matchCount)
      guard examineValues(of: [key], in: &map, now: now) else {
        changes.removeSubrange(changeCount...)
        bytes.removeSubrange(byteCount...)
        self.matchCount = matchCount
        return .stopped
      }
      outdatedKeys.removeLast()
      position = changes.count
      return .unfinished
    }
    position = 0
    return changes.isEmpty ? .stopped : .finished
  }

  func reserve(in map: inout EntryMap) throws(StorageError) {
    if update == nil {
      try map.checkCommit(operations: changes.count, bytes: bytes.count, isRemoval: true)
    } else {
      try map.reserve(records: changes.count, bytes: bytes.count)
    }
    map.reserveLargeCommit(operations: changes.count, bytes: bytes.count)
  }

  func writeNext(to map: inout EntryMap, revision: UInt64, now: UInt64) throws(StorageError) -> LargeWriteStep {
    let (change, bytes) = (changes[position], bytes)
    let key = unsafe bytes.span.bytes.extracting(change.key)
    if update == nil {
      _ = try map.delete(key, revision: revision, now: now)
    } else {
      let value = unsafe bytes.span.bytes.extracting(change.value)
      if copiedValue.mustCopy(value) { return .blocked }
      try copiedValue.put(key, value, expiry: change.expiry, to: &map, revision: revision, now: now)
    }
    position += 1
    return position < changes.count ? .unfinished : .finished
  }

  func unblock() {
    let bytes = bytes
    unsafe copiedValue.copy(bytes.span.bytes.extracting(changes[position].value))
  }

  func didEnd(_ end: LargeWriteEnd) { commitEnd = end }

  /// Handles the end of a large commit.
  private func finish(_ end: LargeWriteEnd, _ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    switch end {
    case .written(let revision): return .result(result(job, revision: revision))
    case .failed(let error): throw CommandFailure(.failed, "\(error)")
    case .refused(.diskTooSlow) where roomRetries < Self.maxRoomRetries:
      roomRetries += 1
      return .needsSpace
    case .refused(let error): throw CommandFailure(error)
    case .stopped: break
    }
    if job.mustEnd { return .canceled }
    guard !outdatedKeys.isEmpty else { return .result(result(job, revision: 0)) }
    rounds += 1
    guard rounds <= Self.maxRounds else { throw outpacedFailure }
    let bytes = bytes
    do throws(StorageError) {
      let (handles, snapshot) = try job.store.handles(
        ofKeys: outdatedKeys.map { unsafe bytes.span.bytes.extracting($0).toArray() }, now: monotonicMilliseconds())
      return .needsDocuments(handles, snapshot)
    } catch { throw CommandFailure(error) }
  }

  /// Removes changes that don't apply any more.
  /// - Parameter outdated: Their indexes, ascending.
  private func remove(_ outdated: [Int]) {
    var rest = outdated[...]
    var index = -1
    changes.removeAll { _ in
      index += 1
      guard rest.first == index else { return false }
      rest.removeFirst()
      return true
    }
    matchCount -= outdated.count
  }
}
