import Basics
import Dispatch
import Glibc
import Platform
import Synchronization

/// Makes a store's commits durable, on a thread of its own: it takes all that were made since it last looked, writes them at once, and
/// tells who waits. So all who write meanwhile share one call to the disk.
///
/// Safe because the sink is touched on the journal's queue only, and all else is behind locks or atomic.
package final class CommitWriter: @unchecked Sendable {
  package let durability: Durability
  /// Milliseconds after which a commit is on the disk, for a journal that doesn't wait for each.
  private let interval: UInt64?
  private let engine: any Engine
  private let queue: DispatchQueue
  private let wakeup = DispatchSemaphore(value: 0)
  private let isAwake = Atomic<Bool>(false)
  private let mustEnd = Atomic<Bool>(false)
  private let ended = DispatchSemaphore(value: 0)
  /// The last revision that a crash can't take back.
  private let durableRevision: Atomic<UInt64>
  /// Counts how often the store was told how much it can commit.
  private let moves = Atomic<UInt64>(0)
  /// Whether a write had to wait for room.
  private let needsRoom = Atomic<Bool>(false)
  /// Whether the disk had no room when it was last asked.
  private let isFull = Atomic<Bool>(false)
  private let state = Lock(State())

  private struct State: Sendable {
    var waiters: [any DurabilityWaiter] = []
    var failure: StorageError?
    var probes: [@Sendable () -> Void] = []
    /// Whether the thread has ended, or is about to.
    var isOver = false
  }

  /// How long a disk that is full is left alone.
  private static let retryMilliseconds: UInt64 = 500
  /// The same, while there is something to tidy: that may give room back.
  private static let maintenanceMilliseconds: UInt64 = 20
  /// How long a journal that has nothing to do sleeps until it looks for something to tidy.
  private static let idleMilliseconds: UInt64 = 60_000

  /// - Parameter revision: the last one that the sink has on the disk.
  package init(_ engine: any Engine, durability: Durability, revision: UInt64, name: StoreName) {
    self.engine = engine
    self.durability = durability
    if case .interval(let time) = durability { interval = time.wholeMilliseconds } else { interval = nil }
    durableRevision = Atomic(revision)
    queue = DispatchQueue(label: "larder.journal.\(name)")
  }

  /// Whether what a request has seen must be on the disk before it is answered.
  package var gatesReplies: Bool { durability == .always }

  /// The last revision that may be told of: what is not durable yet may not, if a crash must not take back what anyone has seen.
  package var visibleRevision: UInt64 { gatesReplies ? durableRevision.load(ordering: .acquiring) : .max }

  /// Whether a crash can't take back what was committed up to this revision.
  package func isDurable(_ revision: UInt64) -> Bool {
    durableRevision.load(ordering: .acquiring) >= revision
  }

  /// Why the journal has ended before its time; nil when it has not.
  package var failure: StorageError? { state.withLock { $0.failure } }

  /// How long commits took to be written, and durable if the store promises that.
  package let commitTimes = DurationHistogram()
  package var syncTimes: DurationHistogram? { engine.syncTimes }

  package var figures: [(name: String, value: UInt64)] {
    engine.figures + [
      ("durable_revision", durableRevision.load(ordering: .relaxed)), ("read_only", failure == nil ? 0 : 1),
    ]
  }

  /// Has `waiter` called once when the revision is durable, or the journal has failed, unless that is so already.
  /// - Returns: whether it will be called.
  package func wait(for revision: UInt64, _ waiter: any DurabilityWaiter) -> Bool {
    state.withLock { state in
      if isDurable(revision) || state.failure != nil { return false }
      if !state.waiters.contains(where: { $0 === waiter }) { state.waiters.append(waiter) }
      return true
    }
  }

  /// Tells the journal that there are commits. From any thread, without the store's lock.
  package func wake() {
    if !isAwake.exchange(true, ordering: .acquiringAndReleasing) { wakeup.signal() }
  }

  /// Has the journal's thread answer when it comes to it: at once if it has nothing to do, or has ended.
  package func probe(_ answer: @escaping @Sendable () -> Void) {
    let isOver = state.withLock { state in
      if !state.isOver { state.probes.append(answer) }
      return state.isOver
    }
    if isOver { answer() } else { wake() }
  }

  /// Waits until the journal has written or made room for more. Blocks the thread; for writes that came faster than the disk.
  /// - Returns: whether to try again; false after a second, or when the disk is full or has failed.
  package func waitForRoom() -> Bool {
    let before = moves.load(ordering: .acquiring)
    needsRoom.store(true, ordering: .releasing)
    wake()
    for _ in 0..<10_000 {
      if moves.load(ordering: .acquiring) != before { return true }
      if isFull.load(ordering: .relaxed) || failure != nil { return false }
      usleep(100)
    }
    return false
  }

  // MARK: The thread

  /// Begins to serve a store.
  func start(_ store: Store) {
    store.access { $0.beginCommits(commitLimit: engine.room) }
    queue.async { self.run(store) }
  }

  /// Writes what was committed, and ends. The store takes no more writes then.
  func end() {
    mustEnd.store(true, ordering: .releasing)
    wake()
    wakeup.signal()
    ended.wait()
    // For others that end it, too: a store may be dropped while its server stops.
    ended.signal()
  }

  private func run(_ store: Store) {
    var batch = CommitBuffer()
    var lastSync = monotonicMilliseconds()
    var unsynced = false
    var hasMoreMaintenance = true
    do throws(EngineError) {
      // A disk that was full at the opening may have room by now. Else there is some, and more would be taken at every start.
      if engine.room == 0 { try makeRoom(store) }
      while true {
        let isEnding = mustEnd.load(ordering: .acquiring)
        // Each wake that was needed has left a signal. Kept, they would keep a journal awake that has had much to do.
        if isAwake.exchange(false, ordering: .sequentiallyConsistent) { wakeup.wait() }
        answerProbes()
        let hasCommitted = try commit(&batch, store)
        if hasCommitted { (unsynced, hasMoreMaintenance) = (true, true) }
        if let interval, unsynced,
          isEnding || monotonicMilliseconds() >= lastSync + interval
        {
          try engine.sync()
          (unsynced, lastSync) = (false, monotonicMilliseconds())
        }
        if isEnding, !hasCommitted { break }
        if hasMoreMaintenance { hasMoreMaintenance = try engine.performMaintenance(store) }
        if needsRoom.exchange(false, ordering: .acquiring) || isFull.load(ordering: .relaxed) { try makeRoom(store) }
        if !hasCommitted, !hasMoreMaintenance || isFull.load(ordering: .relaxed) {
          sleep(unsynced ? lastSync : nil, hasMaintenance: hasMoreMaintenance)
          hasMoreMaintenance = true
        }
      }
      engine.endWork()
      if durability != .always { try engine.sync() }
      try engine.close()
    } catch {
      fail(error, store)
      engine.endWork()
    }
    state.withLock { $0.isOver = true }
    answerProbes()
    ended.signal()
  }

  private func answerProbes() {
    let probes = state.withLock { state in
      defer { state.probes.removeAll() }
      return state.probes
    }
    for answer in probes { answer() }
  }

  /// Writes what was committed since it was last asked.
  /// - Returns: whether there was anything.
  private func commit(_ batch: inout CommitBuffer, _ store: Store) throws(EngineError) -> Bool {
    let room = engine.room
    let hasAny = store.access { map in
      guard map.hasCommits else { return false }
      map.takeCommits(into: &batch)
      map.setCommitLimit(room - batch.count, isDiskFull: isFull.load(ordering: .relaxed))
      return true
    }
    guard hasAny else { return false }
    let last = batch.lastRevision
    let begun = monotonicNanoseconds()
    let placed = unsafe try engine.write(
      batch.bytes, last: last, separatedCount: batch.separatedCount, syncs: durability == .always)
    commitTimes.note(nanoseconds: monotonicNanoseconds() - begun)
    batch.removeAll()
    durableRevision.store(last, ordering: .releasing)
    tellWaiters()
    store.place(placed)
    tellRoom(store)
    return true
  }

  /// Tells the store how much more it can commit.
  private func tellRoom(_ store: Store) {
    let room = engine.room
    store.access { $0.setCommitLimit(room, isDiskFull: isFull.load(ordering: .relaxed)) }
    moves.wrappingAdd(1, ordering: .releasing)
  }

  /// Takes more room for commits, and tells the store how much there is.
  private func makeRoom(_ store: Store) throws(EngineError) {
    do {
      try engine.makeRoom()
      isFull.store(false, ordering: .relaxed)
    } catch {
      guard error == .noSpace else { throw error }
      isFull.store(true, ordering: .relaxed)
    }
    tellRoom(store)
  }

  /// Sleeps until there is something to do.
  /// - Parameter lastSync: when the disk was last told, if there is something to tell it.
  private func sleep(_ lastSync: UInt64?, hasMaintenance: Bool) {
    var milliseconds = Self.idleMilliseconds
    if isFull.load(ordering: .relaxed) {
      milliseconds = hasMaintenance ? Self.maintenanceMilliseconds : Self.retryMilliseconds
    }
    if let interval, let lastSync {
      let now = monotonicMilliseconds()
      milliseconds = min(milliseconds, max(lastSync + interval, now) - now)
    }
    if isAwake.load(ordering: .sequentiallyConsistent) { return }
    if wakeup.wait(timeout: .now() + .milliseconds(Int(milliseconds))) == .success {
      // An exchange, to see all that was done ahead of a wake that found the journal awake.
      _ = isAwake.exchange(false, ordering: .sequentiallyConsistent)
    }
  }

  private func fail(_ error: EngineError, _ store: Store) {
    let reason: String
    switch error {
    case .noSpace: reason = "the disk is full"
    case .failed(let what): reason = what
    }
    let failure = StorageError.readOnly(reason)
    store.access { $0.endWriting(failure) }
    state.withLock { $0.failure = failure }
    tellWaiters()
  }

  private func tellWaiters() {
    let waiters = state.withLock { state in
      defer { state.waiters.removeAll(keepingCapacity: true) }
      return state.waiters
    }
    for waiter in waiters { waiter.durabilityDidAdvance() }
  }
}

/// Who waits for commits to be durable.
package protocol DurabilityWaiter: AnyObject, Sendable {
  /// On the journal's thread: return at once.
  func durabilityDidAdvance()
}
