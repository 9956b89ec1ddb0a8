import Documents
import Platform
import Storage
import Wire

/// An apply with updates that take too long, or need values that are not in memory, for the store's lock.
///
/// It copies the entries that the updates change, updates the copies without the lock, and writes all of them in one
/// commit if the conditions hold and none of the entries has been written meanwhile. Otherwise it begins another round:
/// it copies and updates those that have been written.
final class ApplyTask: DocumentTask {
  private static let maxRounds = 16
  /// How many times the commit is tried while the store has no room for it.
  private static let maxRoomRetries = 100

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

  init(_ body: [UInt8], _ limits: ServerLimits) {
    self.body = body
    valueLimits = JSONLimits(maxByteCount: limits.maxValueBytes)
    changes = ApplyChanges(body)
  }

  var keptByteCount: Int { changes.keptByteCount }

  var progress: String? { "nothing was written in \(rounds) round\(rounds == 1 ? "" : "s")" }

  func examine(
    _ value: Span<UInt8>, key: Span<UInt8>, of entry: EntryHead, _ budget: inout WorkBudget
  ) -> JobFailure? {
    guard let position = positions[entry.handle] else { preconditionFailure("the task hasn't asked for the entry") }
    unsafe changes.setValue(value.withUnsafeBufferPointer { unsafe Array($0) }, ofEntry: position)
    return nil
  }

  func end(_ job: DocumentJob, _ budget: inout WorkBudget) throws(JobFailure) -> TaskEnd {
    guard rounds > 0 else { return try begin(job) }
    do throws(JobFailure) {
      if try changes.applyNext(valueLimits) {
        guard changes.keptByteCount <= job.limits.findMemory else {
          throw job.stop("needs more than \(job.limits.findMemory) bytes of memory (limits.find-memory)")
        }
        return .unfinished
      }
    } catch {
      throw JobFailure(error.code, error.message, shownRevision: job.newestRevision)
    }
    return try commit(job)
  }

  // MARK: Under the lock

  private func begin(_ job: DocumentJob) throws(JobFailure) -> TaskEnd {
    let round: Result<Round, JobFailure> = job.store.access { map in
      guard !map.isDropped else { return .failure(JobFailure(.storeDropped)) }
      let now = monotonicMilliseconds()
      if let failure = changes.failedCondition(in: &map, now: now) { return .failure(failure) }
      return .success(beginRound(with: changes.readEntries, in: &map, now: now))
    }
    let begun = try round.get()
    return .needsDocuments(begun.handles, begun.snapshot)
  }

  /// What a round begins with: the entries whose values it needs.
  private struct Round: Sendable {
    let handles: [UInt32]
    let snapshot: Snapshot
  }

  /// Notes what entries are now, and returns those whose values are needed.
  private func beginRound(with entries: [Int], in map: inout EntryMap, now: UInt64) -> Round {
    let body = body
    rounds += 1
    positions = [:]
    var handles: [UInt32] = []
    for position in entries {
      guard let handle = unsafe map.handle(of: body.span.bytes.extracting(changes.key(ofEntry: position)), now: now)
      else {
        changes.setBase(nil, ofEntry: position)
        continue
      }
      let view = map.entry(at: handle)
      changes.setBase(view, ofEntry: position)
      guard view.kind == .single else { continue }
      positions[handle] = position
      handles.append(handle)
    }
    return Round(handles: handles, snapshot: map.snapshot(now: now))
  }

  private enum CommitEnd: Sendable {
    case committed(revision: UInt64, shownRevision: UInt64, [any ChangeWaiter])
    case failed(JobFailure)
    case outdated(Round)
    /// Some of the entries have been written meanwhile, too many times.
    case outpaced
    case canceled
  }

  private func commit(_ job: DocumentJob) throws(JobFailure) -> TaskEnd {
    var isCommitting = false
    let size = changes.writeSize
    let end: CommitEnd
    do throws(StorageError) {
      end = try job.store.access { map throws(StorageError) in try commit(size, job, to: &map, &isCommitting) }
    } catch {
      // Only a system without memory stops a commit that has begun: the client must not take it for "not executed".
      if isCommitting { throw JobFailure(.failed, "\(error)") }
      guard error == .diskTooSlow, roomRetries < Self.maxRoomRetries else { throw JobFailure(error) }
      roomRetries += 1
      return .needsSpace
    }
    switch end {
    case .committed(let revision, let shownRevision, let waiters):
      for waiter in waiters { waiter.storeDidChange() }
      job.store.commitWriter?.wake()
      return .result(.applied(revision: revision, shownRevision: shownRevision))
    case .failed(let failure): throw failure
    case .outdated(let round): return .needsDocuments(round.handles, round.snapshot)
    case .outpaced:
      throw JobFailure(
        .tooManyRequests,
        "nothing was written: others have written some of the entries in each of \(rounds) rounds; try again later")
    case .canceled: return .canceled
    }
  }

  private func commit(
    _ size: WriteSize, _ job: DocumentJob, to map: inout EntryMap, _ isCommitting: inout Bool
  ) throws(StorageError) -> CommitEnd {
    guard !map.isDropped else { throw .storeDropped }
    let now = monotonicMilliseconds()
    if let failure = changes.failedCondition(in: &map, now: now) { return .failed(failure) }
    let outdated = changes.outdatedEntries(in: &map, now: now)
    guard outdated.isEmpty else {
      return rounds < Self.maxRounds ? .outdated(beginRound(with: outdated, in: &map, now: now)) : .outpaced
    }
    try size.reserve(in: &map)
    guard job.beginCommit() else { return .canceled }
    isCommitting = true
    let revision = map.revision + 1
    try changes.write(to: &map, revision: revision, now: now)
    return .committed(
      revision: map.revision == revision ? revision : 0, shownRevision: map.revision,
      map.needsNotification ? map.drainChangeWaiters() : [])
  }
}
