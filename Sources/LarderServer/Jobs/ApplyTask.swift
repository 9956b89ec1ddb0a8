import Documents
import Platform
import Storage
import Wire

/// An apply with updates that take too long, or need values that are not in memory, for the store's lock.
///
/// It copies the entries that the updates change, updates the copies without the lock, and writes all of them in one
/// commit if the conditions hold and none of the entries has been written meanwhile. Otherwise it copies and updates those
/// that have been written: in another round, or in a large commit, during which nobody else writes.
final class ApplyTask: CommittingTask {
  private static let maxRounds = 16
  /// How many times the commit is tried while the store has no room for it.
  private static let maxRoomRetries = 100
  /// The maximum number of operations and size of what is written under one acquisition of the lock, and the maximum
  /// number of keys in indexes that are changed.
  private static let maxSmallCount = 1_024
  private static let maxSmallByteCount = 1 << 20
  private static let maxSmallKeyCount = 2_048
  /// The maximum size of a value that is copied again during a large commit, in bytes.
  private static let maxCopiedByteCount = 128 << 10
  /// How many operations are checked under one acquisition of the lock.
  private static let checksPerAccess = 256

  /// Nothing is searched for: the task names the entries by their handles.
  let query = DocumentQuery(.field("_id", .in([])))
  private let body: [UInt8]
  private let valueLimits: JSONLimits
  private var changes: ApplyChanges
  /// The positions of the entries whose values are being copied, by their handles.
  private var positions: [UInt32: Int] = [:]
  /// The number of rounds that have begun.
  private var rounds = 0
  private var roomRetries = 0
  private var writeSize = WriteSize()

  // The large commit, if there is one.
  private var commitEnd: LargeWriteEnd?
  private var failure: CommandFailure?
  /// The failure of an operation, which counts if no entry has been written since it was copied.
  private var unconfirmedFailure: CommandFailure?
  /// The number of operations and entries that have been checked, and then of operations that have been written.
  private var position = 0
  /// The entries that have been written meanwhile.
  private var outdated: [Int] = []
  /// The number of them that have been copied again.
  private var copiedCount = 0
  /// Whether one of them takes too long to copy.
  private var needsRound = false
  private var copiedValue = CopiedValue()
  /// The store's revision before the commit.
  private var previousRevision: UInt64 = 0

  init(_ body: [UInt8], _ limits: ServerLimits) {
    self.body = body
    valueLimits = JSONLimits(maxByteCount: limits.maxValueBytes)
    changes = ApplyChanges(body)
  }

  var keptByteCount: Int { changes.keptByteCount }

  var progress: String? { "nothing was written in \(rounds) round\(rounds == 1 ? "" : "s")" }

  var looksAtValues: Bool { false }

  func examine(
    _ entries: Span<StoredEntry>, maxKeptByteCount: Int, _ budget: inout WorkBudget
  ) -> Int {
    for index in entries.indices {
      let entry = entries[index]
      guard let position = positions[entry.handle] else { preconditionFailure("the task hasn't asked for the entry") }
      changes.setValue(entry.withValue { unsafe $0.withUnsafeBufferPointer { unsafe Array($0) } }, ofEntry: position)
    }
    return entries.count
  }

  func end(_ job: DocumentJob, _ budget: inout WorkBudget) throws(ExaminationFailure) -> TaskEnd {
    do throws(CommandFailure) { return try apply(job) } catch { throw .failed(error) }
  }

  private func apply(_ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    if let commitEnd = commitEnd.take() { return try finish(commitEnd, job) }
    guard rounds > 0 else { return try begin(job) }
    do throws(CommandFailure) {
      if try changes.applyNext(valueLimits) {
        guard changes.keptByteCount <= job.limits.findMemory else {
          throw job.stop("needs more than \(job.limits.findMemory) bytes of memory (limits.find-memory)")
        }
        return .unfinished
      }
    } catch {
      return try confirm(CommandFailure(error.code, error.message, shownRevision: job.newestRevision), job)
    }
    return try commit(job)
  }

  /// Throws the failure of an operation, unless entries have been written since they were copied: the conditions may
  /// have been checked at another time than the copies were made, and there may be no time at which the apply would have
  /// failed like this. Then it begins again.
  private func confirm(_ failure: CommandFailure, _ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    if changes.operationCount > Self.maxSmallCount {
      unconfirmedFailure = failure
      return beginCommit()
    }
    let (cause, isOutdated) = job.store.accessInTurn { map -> (CommandFailure?, Bool) in
      if map.isDropped { return (CommandFailure(map.removalError), false) }
      let now = monotonicMilliseconds()
      if let failure = changes.failedCondition(in: &map, now: now) { return (failure, false) }
      return (nil, !changes.outdatedEntries(in: &map, now: now).isEmpty)
    }
    if let cause { throw cause }
    guard isOutdated else { throw failure }
    return try beginAgain(job)
  }

  private func beginAgain(_ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    guard rounds < Self.maxRounds else { throw outpaced }
    changes.restart()
    return try beginRound(with: changes.readEntries, job)
  }

  private var outpaced: CommandFailure {
    CommandFailure(
      .tooManyRequests,
      "nothing was written: other clients wrote some of the entries in each of \(rounds) rounds; try again later")
  }

  // MARK: Under the lock

  private func begin(_ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    for start in stride(from: 0, to: changes.operationCount, by: Self.checksPerAccess) {
      let operations = start..<min(changes.operationCount, start + Self.checksPerAccess)
      let failure = job.store.accessInTurn { map in
        map.isDropped
          ? CommandFailure(map.removalError)
          : changes.failedCondition(ofOperations: operations, in: &map, now: monotonicMilliseconds())
      }
      if let failure { throw failure }
    }
    return try beginRound(with: changes.readEntries, job)
  }

  /// Notes what entries are now, and asks for the values that are needed.
  private func beginRound(with entries: [Int], _ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    rounds += 1
    positions = [:]
    let keys = entries.map { Array(body[changes.key(ofEntry: $0)]) }
    do throws(StorageError) {
      let (found, snapshot) = try job.store.handles(ofKeys: keys, now: monotonicMilliseconds())
      var handles: [UInt32] = []
      for start in stride(from: 0, to: entries.count, by: Self.checksPerAccess) {
        try job.store.accessInTurn { map throws(StorageError) in
          try map.check(snapshot)
          for index in start..<min(entries.count, start + Self.checksPerAccess) {
            let (handle, position) = (found[index], entries[index])
            let view = handle == 0 ? nil : map.entry(at: handle)
            changes.setBase(view, ofEntry: position)
            guard let view, view.kind == .single else { continue }
            positions[handle] = position
            handles.append(handle)
          }
        }
      }
      return .needsDocuments(handles, snapshot)
    } catch { throw CommandFailure(error) }
  }

  private enum CommitEnd: Sendable {
    case committed(revision: UInt64, shownRevision: UInt64, [any ChangeWaiter])
    case failed(CommandFailure)
    case outdated([Int])
    case canceled
    /// The commit takes too long for one acquisition of the lock, or another large commit is being made.
    case large
  }

  private func commit(_ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    var isCommitting = false
    writeSize = changes.writeSize
    if changes.operationCount > Self.maxSmallCount || writeSize.byteCount > Self.maxSmallByteCount || rounds > 1 {
      return beginCommit()
    }
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
    case .committed(let revision, let shownRevision, let waiters):
      for waiter in waiters { waiter.storeDidChange() }
      job.store.commitWriter?.wake()
      return .result(.applied(revision: revision, shownRevision: shownRevision))
    case .failed(let failure): throw failure
    case .outdated(let entries): return try beginRound(with: entries, job)
    case .large: return beginCommit()
    case .canceled: return .canceled
    }
  }

  private func commit(
    _ job: DocumentJob, to map: inout EntryMap, _ isCommitting: inout Bool
  ) throws(StorageError) -> CommitEnd {
    guard !map.isDropped else { throw map.removalError }
    guard !map.isDiverted, map.indexKeyCount(ofDeletes: writeSize.operationCount) <= Self.maxSmallKeyCount else {
      return .large
    }
    let now = monotonicMilliseconds()
    if let failure = changes.failedCondition(in: &map, now: now) { return .failed(failure) }
    let outdated = changes.outdatedEntries(in: &map, now: now)
    guard outdated.isEmpty else { return .outdated(outdated) }
    try writeSize.reserve(in: &map)
    guard job.beginCommit() else { return .canceled }
    isCommitting = true
    let revision = map.revisions.last + 1
    try changes.write(to: &map, revision: revision, now: now)
    return .committed(
      revision: map.revisions.last == revision ? revision : 0, shownRevision: map.revisions.last,
      map.takeNotifiedWaiters())
  }

  // MARK: Large commits

  private func beginCommit() -> TaskEnd {
    (position, outdated, copiedCount, needsRound) = (0, [], 0, false)
    return .needsCommit(self)
  }

  func makeRoom(in map: inout EntryMap) -> Bool { writeSize.makeRoom(in: &map) }

  func checkNext(in map: inout EntryMap, now: UInt64) -> LargeWriteStep {
    previousRevision = map.revisions.last
    if position < changes.operationCount {
      failure = changes.failedCondition(ofOperations: position..<position + 1, in: &map, now: now)
      position += 1
      return failure == nil ? .unfinished : .stopped
    }
    let entry = position - changes.operationCount
    if entry < changes.entryCount {
      if changes.isOutdated(entry, in: &map, now: now) { outdated.append(entry) }
      position += 1
      return .unfinished
    }
    if let unconfirmedFailure {
      if outdated.isEmpty { failure = unconfirmedFailure }
      return .stopped
    }
    if copiedCount < outdated.count {
      guard copy(outdated[copiedCount], from: &map, now: now) else {
        needsRound = true
        return .stopped
      }
      copiedCount += 1
      return .unfinished
    }
    position = 0
    return .finished
  }

  /// Copies an entry that has been written meanwhile.
  /// - Returns: Whether that takes little time.
  private func copy(_ position: Int, from map: inout EntryMap, now: UInt64) -> Bool {
    let body = body
    let view = unsafe map.get(body.span.bytes.extracting(changes.key(ofEntry: position)), now: now)
    guard let view, view.kind == .single else {
      changes.setBase(view, ofEntry: position)
      return true
    }
    guard view.valueByteCount <= Self.maxCopiedByteCount, let value = unsafe view.value else { return false }
    changes.setBase(view, ofEntry: position)
    unsafe changes.setValue(Array(value), ofEntry: position)
    return true
  }

  func compute(_ limits: ServerLimits) -> LargeWriteStep {
    do throws(CommandFailure) {
      while try changes.applyNext(valueLimits) {
        guard changes.keptByteCount <= limits.findMemory else {
          throw CommandFailure(
            .queryStopped,
            "the apply needs more than \(limits.findMemory) bytes of memory (limits.find-memory); \(progress ?? "")")
        }
      }
    } catch {
      failure = CommandFailure(error.code, error.message, shownRevision: previousRevision)
      return .stopped
    }
    writeSize = changes.writeSize
    return .finished
  }

  func reserve(in map: inout EntryMap) throws(StorageError) {
    try writeSize.reserve(in: &map)
    map.reserveLargeCommit(operations: writeSize.operationCount, bytes: writeSize.byteCount)
  }

  func writeNext(to map: inout EntryMap, revision: UInt64, now: UInt64) throws(StorageError) -> LargeWriteStep {
    var mustCopy = false
    changes.withWrittenValue(position) { mustCopy = copiedValue.mustCopy($0) }
    if mustCopy { return .blocked }
    try changes.write(position, with: &copiedValue, to: &map, revision: revision, now: now)
    position += 1
    return position < changes.operationCount ? .unfinished : .finished
  }

  func unblock() { changes.withWrittenValue(position) { copiedValue.copy($0) } }

  func didEnd(_ end: LargeWriteEnd) { commitEnd = end }

  private func finish(_ end: LargeWriteEnd, _ job: DocumentJob) throws(CommandFailure) -> TaskEnd {
    if let failure { throw failure }
    if unconfirmedFailure.take() != nil { return job.mustEnd ? .canceled : try beginAgain(job) }
    switch end {
    case .written(let revision):
      return .result(
        .applied(revision: revision > previousRevision ? revision : 0, shownRevision: revision))
    case .failed(let error): throw CommandFailure(.failed, "\(error)")
    case .refused(.diskTooSlow) where roomRetries < Self.maxRoomRetries:
      roomRetries += 1
      return .needsSpace
    case .refused(let error): throw CommandFailure(error)
    case .stopped: break
    }
    guard needsRound, !job.mustEnd else { return .canceled }
    guard rounds < Self.maxRounds else { throw outpaced }
    return try beginRound(with: outdated, job)
  }
}
