import Documents
import Platform
import Storage
import Wire

/// An apply with updates that take too long, or need values that are not in memory, for the store's lock.
///
/// It copies the entries that the updates change, updates the copies without the lock, and writes all of them in one
/// commit if the conditions hold and none of the entries has been written meanwhile. Otherwise it starts over.
final class ApplyTask: DocumentTask {
  /// How many times it starts over.
  private static let maxRounds = 16
  /// How many times the commit is tried while the store has no room for it.
  private static let maxRoomRetries = 100

  /// Nothing is searched for: the task names the entries by their handles.
  let query = DocumentQuery(.field("_id", .in([])))
  private let body: [UInt8]
  private let valueLimits: JSONLimits
  private let maxByteCount: Int
  private var changes: ApplyChanges
  /// The positions of the entries whose values are being copied, by their handles.
  private var positions: [UInt32: Int] = [:]
  private var hasEntries = false
  private var rounds = 0
  private var roomRetries = 0

  init(_ body: [UInt8], _ limits: ServerLimits) {
    self.body = body
    valueLimits = JSONLimits(maxByteCount: limits.maxValueBytes)
    maxByteCount = limits.findMemory
    changes = ApplyChanges(body)
  }

  var keptByteCount: Int { changes.keptByteCount }

  func examine(_ value: Span<UInt8>, key: Span<UInt8>, of entry: EntryHead) -> JobFailure? {
    guard let position = positions[entry.handle] else { preconditionFailure("the task hasn't asked for the entry") }
    unsafe changes.setValue(value.withUnsafeBufferPointer { unsafe Array($0) }, ofEntry: position)
    return nil
  }

  func end(_ job: DocumentJob) throws(JobFailure) -> TaskEnd {
    guard hasEntries else { return try copyEntries(job) }
    do throws(JobFailure) {
      if try changes.applyNext(valueLimits) {
        guard changes.keptByteCount <= maxByteCount else {
          throw JobFailure(
            .queryStopped, "the apply needs more than \(maxByteCount) bytes of memory (limits.find-memory)")
        }
        return .unfinished
      }
    } catch {
      throw JobFailure(error.code, error.message, shownRevision: job.newestRevision)
    }
    return try commit(job)
  }

  // MARK: Under the lock

  /// Asks for the values of the entries that the updates change.
  private func copyEntries(_ job: DocumentJob) throws(JobFailure) -> TaskEnd {
    let body = body
    var handles: [UInt32] = []
    let copied: Result<Snapshot, JobFailure> = job.store.access { map in
      guard !map.isDropped else { return .failure(JobFailure(.storeDropped)) }
      let now = monotonicMilliseconds()
      if let failure = changes.failedCondition(in: &map, now: now) { return .failure(failure) }
      for position in 0..<changes.entryCount {
        let key = unsafe body.span.bytes.extracting(changes.key(ofEntry: position))
        guard let view = map.get(key, now: now), let handle = map.handle(of: key, now: now) else { continue }
        changes.setBase(view, ofEntry: position)
        guard view.kind == .single else { continue }
        positions[handle] = position
        handles.append(handle)
      }
      return .success(map.snapshot(now: now))
    }
    hasEntries = true
    return .needsDocuments(handles, try copied.get())
  }

  private enum CommitEnd: Sendable {
    case committed(revision: UInt64, shownRevision: UInt64, [any ChangeWaiter])
    case outdated, canceled
  }

  private func commit(_ job: DocumentJob) throws(JobFailure) -> TaskEnd {
    var isCommitting = false
    let end: CommitEnd
    do throws(StorageError) {
      end = try job.store.access { map throws(StorageError) in try commit(job, to: &map, &isCommitting) }
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
    case .outdated:
      rounds += 1
      guard rounds <= Self.maxRounds else {
        throw JobFailure(
          .conditionFailed,
          "nothing was written: others have written some of the entries \(Self.maxRounds) times meanwhile; try again",
          shownRevision: job.newestRevision)
      }
      changes = ApplyChanges(body)
      positions = [:]
      hasEntries = false
      return .unfinished
    case .canceled: return .canceled
    }
  }

  private func commit(
    _ job: DocumentJob, to map: inout EntryMap, _ isCommitting: inout Bool
  ) throws(StorageError) -> CommitEnd {
    guard !map.isDropped else { throw .storeDropped }
    let now = monotonicMilliseconds()
    // A condition that doesn't hold any more is found again, with its message, by the next round.
    guard changes.failedCondition(in: &map, now: now) == nil, changes.isCurrent(in: &map, now: now) else {
      return .outdated
    }
    try changes.reserve(in: &map)
    guard job.beginCommit() else { return .canceled }
    isCommitting = true
    let revision = map.revision + 1
    try changes.write(to: &map, revision: revision, now: now)
    return .committed(
      revision: map.revision == revision ? revision : 0, shownRevision: map.revision,
      map.needsNotification ? map.drainChangeWaiters() : [])
  }
}
