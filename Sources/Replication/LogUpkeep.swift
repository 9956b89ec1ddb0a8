import Dispatch
import Glibc
import Platform
import Storage

/// Keeps the log of a store short that this server leads: makes sure that there are snapshots, moves the large values that
/// are in use out of the commits before the newest snapshot, and removes these commits, and values that are not in use.
///
/// Followers write the snapshots. The leader writes one if none of them has when twice as much has been committed as makes a
/// snapshot worth it. The work is done on a queue of its own, so that commits don't wait for it.
final class LogUpkeep: Sendable {
  private enum Activity {
    case idle, queued, running, stopped
  }

  private struct State {
    var activity = Activity.idle
    /// The last commit whose large values the map refers to, and its last revision.
    var place: LogPlace
    var lastRevision: UInt64
    /// The size of the commits since the newest snapshot that is known, in bytes.
    var byteCount: Int
    /// Its size when some commits were appended.
    var marks: [(position: Int64, byteCount: Int)] = []
    /// The size at which to look again.
    var nextLook = 0
    /// The position of the snapshot before which everything was removed.
    var trimmedPosition: Int64 = 0
    var expectsSnapshots = false
    var snapshotCount = 0
  }

  /// Why the work ends before it is complete.
  private struct Stopped: Error {}

  /// How much is moved at a time, in bytes, unless a single value is larger, and how many values.
  private static let moveByteCount = 8 << 20
  private static let moveCount = 1_000
  /// The pause between looks whether something is committed, in microseconds.
  private static let commitPause: UInt32 = 1_000

  private let store: StoreID
  private let values: StoreValues
  private let log: any SharedLog
  private let queue: DispatchQueue
  private let state: Lock<State>
  private let ended = DispatchSemaphore(value: 0)

  init(
    of store: StoreID, _ values: StoreValues, in log: any SharedLog, at place: LogPlace, lastRevision: UInt64,
    on queue: DispatchQueue
  ) {
    (self.store, self.values, self.log, self.queue) = (store, values, log, queue)
    state = Lock(State(place: place, lastRevision: lastRevision, byteCount: place.byteCount))
  }

  /// The size of the commits since the newest snapshot that is known, in bytes.
  var byteCount: Int { state.withLock { $0.byteCount } }
  /// The number of snapshots that were written here.
  var snapshotCount: Int { state.withLock { $0.snapshotCount } }

  /// Sets whether a follower is to write snapshots.
  func expectSnapshots(_ expects: Bool) { state.withLock { $0.expectsSnapshots = expects } }

  func didAppend(_ commit: LogCommit) {
    state.withLock { state in
      state.byteCount += commit.records.count
      if state.byteCount >= (state.marks.last?.byteCount ?? 0) + SnapshotWriter.pauseByteCount {
        state.marks.append((commit.position, state.byteCount))
      }
    }
  }

  /// Begins the work that is due, if any is.
  /// - Parameters:
  ///   - place: The last commit. The map has the locations of its large values.
  ///   - lastRevision: Its last revision.
  func beginIfDue(at place: LogPlace, lastRevision: UInt64, _ context: any MaintenanceContext) {
    let (isLong, byteCount) = state.withLock { state in
      (state.place, state.lastRevision) = (place, lastRevision)
      let isLong = state.byteCount >= max(SnapshotWriter.minByteCount, state.nextLook)
      return (isLong && state.activity == .idle, state.byteCount)
    }
    guard isLong else { return }
    let threshold = context.read { SnapshotWriter.threshold($0) }
    guard byteCount >= threshold else { return }
    state.withLock { $0.activity = $0.activity == .idle ? .queued : $0.activity }
    queue.async { [self] in
      let begins = state.withLock { state in
        guard state.activity == .queued else { return false }
        state.activity = .running
        return true
      }
      guard begins else { return }
      // What fails here is tried again when more has been committed.
      try? run(threshold, context)
      let isStopped = state.withLock { state in
        state.nextLook = max(state.nextLook, state.byteCount + SnapshotWriter.pauseByteCount)
        if state.activity == .running { state.activity = .idle }
        return state.activity == .stopped
      }
      if isStopped { ended.signal() }
    }
  }

  /// Stops the work, and waits until it has stopped. There is none afterward.
  func stop() {
    let mustWait = state.withLock { state in
      defer { state.activity = .stopped }
      return state.activity == .running
    }
    if mustWait { ended.wait() }
  }

  // MARK: On the queue

  private func checkStop() throws {
    if state.withLock({ $0.activity == .stopped }) { throw Stopped() }
  }

  /// Waits until the log has everything that the map has now, also what is being appended.
  /// - Returns: A commit. As long as this is in the log, the changes until now are, too.
  private func waitForCommits(_ context: any MaintenanceContext) throws -> LogPlace {
    let revision = context.read { $0.commitRevision }
    while true {
      try checkStop()
      let (place, last) = state.withLock { ($0.place, $0.lastRevision) }
      if last >= revision { return place }
      usleep(Self.commitPause)
    }
  }

  private func run(_ threshold: Int, _ context: any MaintenanceContext) throws {
    let before = state.withLock { $0 }
    if let newest = try log.snapshot(of: store), newest.position > before.trimmedPosition {
      return try trim(before: newest.position, context)
    }
    if before.expectsSnapshots, before.byteCount < 2 * threshold { return }
    // The commits up to this place are in the snapshot, because they were in the map before.
    let place = state.withLock { $0.place }
    guard let snapshot = context.takeSnapshot() else { return }
    defer { context.endSnapshot(snapshot) }
    let end = try waitForCommits(context)
    let writer = SnapshotWriter(snapshot, at: place.position, to: log, of: store)
    guard try writer.write(context, in: end, beforeEachPart: checkStop) else { return }
    state.withLock { $0.snapshotCount += 1 }
    try trim(before: place.position, context)
  }

  /// Removes what a snapshot makes superfluous.
  private func trim(before position: Int64, _ context: any MaintenanceContext) throws {
    let moved = state.withLock { state in
      let removed = state.marks.last { $0.position <= position }?.byteCount ?? 0
      state.byteCount -= removed
      state.marks = state.marks.filter { $0.position > position }.map { ($0.position, $0.byteCount - removed) }
      state.nextLook = 0
      return state.trimmedPosition..<position
    }
    // In this order: a value that is no longer in use was replaced by a change that the commit or an earlier one has.
    let used = values.usedValues
    let end = try waitForCommits(context)
    var moves = used.values.filter { moved.contains($0.reference.position) }
    while !moves.isEmpty {
      try checkStop()
      var (count, size) = (0, 0)
      while count < min(moves.count, Self.moveCount), size < Self.moveByteCount {
        size += moves[moves.count - 1 - count].byteCount
        count += 1
      }
      try log.keep(Array(moves.suffix(count)), of: store)
      moves.removeLast(count)
    }
    while try log.trim(store, before: position, in: end) { try checkStop() }
    var last = ValueReference(position: 0, offset: 0)
    while true {
      try checkStop()
      let found = try log.values(of: store, after: last, before: position)
      guard let lastFound = found.last else { break }
      last = lastFound
      let unused = found.filter { used[$0] == nil }
      if !unused.isEmpty { try log.remove(unused, of: store, in: end) }
    }
    state.withLock { $0.trimmedPosition = position }
  }
}
