import Basics
import Dispatch
import Platform
import Synchronization

/// Makes a store's commits durable on a thread of its own. It takes all commits made since it last looked, writes them
/// at once, and notifies the waiters, so concurrent writers share one call to the disk (group commit).
///
/// Safe because only the writer's queue touches the engine, and everything else is behind a lock or atomic.
package final class CommitWriter: @unchecked Sendable {
  package let durability: Durability
  /// The time after which a commit is on disk, in milliseconds, with the durability `interval`.
  private let interval: UInt64?
  private let engine: any Engine
  private let name: StoreName
  private let queue: DispatchQueue
  private let wakeup = DispatchSemaphore(value: 0)
  private let isAwake = Atomic<Bool>(false)
  private let isStopping = Atomic<Bool>(false)
  private let stopped = DispatchSemaphore(value: 0)
  /// The newest durable revision.
  private let durableRevision: Atomic<UInt64>
  /// The number of times that the store's commit limit was updated, or that it has become known that it never will be.
  private let spaceChanges = Atomic<UInt64>(0)
  /// Whether a writer waits for space.
  private let isSpaceNeeded = Atomic<Bool>(false)
  /// Whether the last attempt to allocate space found the disk full.
  private let isDiskFull = Atomic<Bool>(false)
  /// Whether writes are refused until what the engine needs is back.
  private let isUnavailable = Atomic<Bool>(false)
  /// Whether the thread is inside of an engine that waits for something outside of the process.
  private let isOutside = Atomic<Bool>(false)
  /// The commits that were made while the engine began to be unavailable, and what the map contained after them. Only
  /// the thread uses these.
  private var backlog = CommitBuffer()
  private var backlogContents = MapContents()
  private let state = Lock(CommitWriterState())

  /// The pause before the next attempt on a full disk.
  private static let retryMilliseconds: UInt64 = 500
  /// The pause on a full disk while there is maintenance to do, because that may free space.
  private static let maintenanceMilliseconds: UInt64 = 20
  /// The first and the longest pause before the next attempt with an engine that is unavailable.
  private static let outageMilliseconds: (first: UInt64, longest: UInt64) = (100, 2_000)
  /// The pause of an idle writer before it looks for maintenance again.
  private static let idleMilliseconds: UInt64 = 60_000

  /// - Parameter revision: The newest revision that the engine has on disk.
  package init(_ engine: any Engine, durability: Durability, revision: UInt64, name: StoreName) {
    (self.engine, self.name) = (engine, name)
    self.durability = durability
    if case .interval(let time) = durability { interval = time.wholeMilliseconds } else { interval = nil }
    durableRevision = Atomic(revision)
    queue = DispatchQueue(label: "larder.commit.\(name)")
  }

  /// A Boolean value that indicates whether a reply must wait until everything it reflects is durable.
  package var gatesReplies: Bool { durability == .always }

  /// The newest revision that may be shown to a client. If a crash must not take back what a client has seen, this is
  /// the newest durable revision.
  package var visibleRevision: UInt64 { gatesReplies ? durableRevision.load(ordering: .acquiring) : .max }

  /// Returns whether everything up to this revision survives a crash.
  package func isDurable(_ revision: UInt64) -> Bool {
    durableRevision.load(ordering: .acquiring) >= revision
  }

  /// The reason why the writer has failed; nil if it has not.
  package var failure: StorageError? { state.withLock { $0.failure } }

  /// Whether another server has taken the store over, or could have.
  var hasLostStore: Bool { engine.hasLostStore }

  /// The times that commits took to be written, and synced if the store promises that.
  package let commitTimes = DurationHistogram()
  package var syncTimes: DurationHistogram? { engine.syncTimes }

  package var figures: [(name: String, value: UInt64)] {
    engine.figures + [
      ("durable_revision", durableRevision.load(ordering: .relaxed)), ("read_only", failure == nil ? 0 : 1),
      ("engine_unavailable", isUnavailable.load(ordering: .relaxed) ? 1 : 0),
    ]
  }

  /// Returns how much may be said to be in the map, which has these contents. If a crash must not take back what a client
  /// has been told, this is what the map contained after the newest durable commit.
  func visibleContents(of contents: MapContents) -> MapContents {
    contents.revision <= visibleRevision ? contents : state.withLock { $0.durableContents }
  }

  /// Calls `waiter` once when the revision is durable or the writer has failed, unless that is already the case.
  /// - Returns: Whether the waiter will be called.
  package func wait(for revision: UInt64, _ waiter: any DurabilityWaiter) -> Bool {
    state.withLock { state in
      if isDurable(revision) || state.failure != nil { return false }
      state.add(waiter)
      return true
    }
  }

  /// Notifies the writer of new commits. Call this from any thread, without the store's lock.
  package func wake() {
    if !isAwake.exchange(true, ordering: .acquiringAndReleasing) { wakeup.signal() }
  }

  /// Probes the writer for liveness: its thread calls `answer` as soon as it is free. Calls `answer` at once if the
  /// thread has ended, or waits for something outside of the process.
  package func probe(_ answer: @escaping @Sendable () -> Void) {
    let willBeAnswered = state.withLock { $0.add(answer) }
    if !willBeAnswered { return answer() }
    if isOutside.load(ordering: .sequentiallyConsistent) { answerProbes() } else { wake() }
  }

  /// The number of times that space for commits was allocated, or could not be. A write that was refused with
  /// `diskTooSlow` may succeed after the next time.
  package var spaceChangeCount: UInt64 { spaceChanges.load(ordering: .acquiring) }

  /// Makes the writer allocate space, and calls `waiter` once when that has ended: for writes that arrive faster than the
  /// disk accepts them. Calls it at once if space was allocated since `spaceChangeCount` was `count`.
  /// - Parameter waiter: Called on the commit thread or this one. Return at once.
  package func waitForSpace(since count: UInt64, _ waiter: @escaping @Sendable () -> Void) {
    isSpaceNeeded.store(true, ordering: .releasing)
    let mustWait = state.withLock { state in
      guard spaceChangeCount == count else { return false }
      state.addSpaceWaiter(waiter)
      return true
    }
    if mustWait { wake() } else { waiter() }
  }

  // MARK: The commit thread

  /// Starts the thread, which keeps the store alive until `stop`.
  func start(_ source: any CommitSource) {
    let contents = source.access { map in
      map.beginCommits(commitLimit: engine.reservedByteCount, removalReserve: engine.removalReserveByteCount)
      return map.contents
    }
    state.withLock { $0.durableContents = contents }
    queue.async { self.run(source) }
  }

  /// Writes the outstanding commits and ends the thread. The store accepts no writes afterwards.
  func stop() {
    isStopping.store(true, ordering: .releasing)
    wake()
    wakeup.signal()
    stopped.wait()
    // For other callers: a store may be dropped while its server stops.
    stopped.signal()
  }

  private func run(_ source: any CommitSource) {
    var batch = CommitBuffer()
    var lastSync = monotonicMilliseconds()
    var unsynced = false
    var hasMoreMaintenance = true
    do throws(EngineError) {
      // A disk that was full when the store was opened may have space by now. An engine that has space must not take
      // more at every start.
      if engine.reservedByteCount == 0 { try allocateSpace(source) }
      while true {
        let isStopping = isStopping.load(ordering: .acquiring)
        // Every effective `wake` leaves a signal. Consume it now, or a busy writer would wake up in vain later.
        if isAwake.exchange(false, ordering: .sequentiallyConsistent) { wakeup.wait() }
        answerProbes()
        let hasCommitted = try commit(&batch, source)
        if hasCommitted { (unsynced, hasMoreMaintenance) = (true, true) }
        if let interval, unsynced,
          isStopping || monotonicMilliseconds() >= lastSync + interval
        {
          try call(source) { () throws(EngineError) in try engine.sync() }
          (unsynced, lastSync) = (false, monotonicMilliseconds())
        }
        // After an outage, commits may still wait, and writes are still refused.
        if isUnavailable.load(ordering: .relaxed) { continue }
        if isStopping, !hasCommitted { break }
        if hasMoreMaintenance {
          hasMoreMaintenance = try call(source) { () throws(EngineError) in try engine.performMaintenance(source) }
        }
        if engine.hasUnneededSpace { releaseSpace(source) }
        if isSpaceNeeded.exchange(false, ordering: .acquiring) || isDiskFull.load(ordering: .relaxed)
          || engine.isReservingSpace
        {
          try allocateSpace(source)
        }
        if !hasCommitted, !hasMoreMaintenance || isDiskFull.load(ordering: .relaxed),
          !isUnavailable.load(ordering: .relaxed)
        {
          sleep(unsynced ? lastSync : nil, hasMaintenance: hasMoreMaintenance)
          hasMoreMaintenance = true
        }
      }
      engine.stopBackgroundWork()
      if durability != .always { try call(source) { () throws(EngineError) in try engine.sync() } }
      try engine.close()
    } catch {
      fail(error, source)
      engine.stopBackgroundWork()
    }
    state.withLock { $0.end() }
    notifySpaceWaiters()
    answerProbes()
    stopped.signal()
  }

  private func answerProbes() {
    for answer in state.withLock({ $0.takeProbes() }) { answer() }
  }

  /// Writes the commits made since the last call.
  /// - Returns: Whether there were any.
  private func commit(_ batch: inout CommitBuffer, _ source: any CommitSource) throws(EngineError) -> Bool {
    let space = engine.reservedByteCount
    let contents: MapContents? = source.access { map in
      if !backlog.isEmpty {
        swap(&batch, &backlog)
        return backlogContents
      }
      guard map.hasCommits else {
        acceptWrites(to: &map)
        return nil
      }
      map.takeCommits(into: &batch)
      map.setCommitLimit(space - batch.count, isDiskFull: isDiskFull.load(ordering: .relaxed))
      return map.contents
    }
    guard let contents else { return false }
    let last = batch.lastRevision
    let begun = monotonicNanoseconds()
    let locations = try call(source) { () throws(EngineError) in
      unsafe try engine.write(
        batch.bytes, last: last, separatedCount: batch.separatedCount, syncs: durability == .always)
    }
    commitTimes.note(nanoseconds: monotonicNanoseconds() - begun)
    batch.removeAll()
    // A client that knows of the commit must find it in the contents, too.
    state.withLock { $0.durableContents = contents }
    durableRevision.store(last, ordering: .releasing)
    notifyWaiters()
    source.updateLocations(locations)
    updateCommitLimit(source)
    return true
  }

  /// Sets how many bytes the store can still commit.
  private func updateCommitLimit(_ source: any CommitSource) {
    let space = engine.reservedByteCount
    source.access { $0.setCommitLimit(space, isDiskFull: isDiskFull.load(ordering: .relaxed)) }
  }

  /// Lets the engine give up space, unless it may be needed for a commit that was accepted. The engine is asked again
  /// after that commit.
  private func releaseSpace(_ source: any CommitSource) {
    source.access { map in
      guard backlog.isEmpty, !map.expectsCommits else { return }
      engine.releaseSpace()
      map.setCommitLimit(engine.reservedByteCount, isDiskFull: isDiskFull.load(ordering: .relaxed))
    }
  }

  private func notifySpaceWaiters() {
    spaceChanges.wrappingAdd(1, ordering: .releasing)
    for waiter in state.withLock({ $0.takeSpaceWaiters() }) { waiter() }
  }

  /// Allocates more space for commits, and updates the store's commit limit. Both may be done only after the engine has
  /// woken the writer.
  private func allocateSpace(_ source: any CommitSource) throws(EngineError) {
    do {
      try call(source) { () throws(EngineError) in try engine.reserveSpace() }
      if engine.isReservingSpace { return }
      isDiskFull.store(false, ordering: .relaxed)
    } catch {
      guard error == .noSpace else { throw error }
      isDiskFull.store(true, ordering: .relaxed)
    }
    updateCommitLimit(source)
    notifySpaceWaiters()
  }

  // MARK: Outages

  /// Calls the engine, and again after a pause while what it needs is unavailable. Meanwhile, the store refuses writes.
  /// - Throws: `transient` only if the writer is to stop and the engine is unavailable.
  private func call<Result>(
    _ source: any CommitSource, _ body: () throws(EngineError) -> Result
  ) throws(EngineError) -> Result {
    var pause = Self.outageMilliseconds.first
    while true {
      // If the writer is to stop, this is the last attempt.
      let isLast = isStopping.load(ordering: .acquiring)
      do throws(EngineError) { return try callOnce(body) } catch {
        guard case .transient(let reason) = error, !isLast else { throw error }
        if !isUnavailable.load(ordering: .relaxed) { refuseWrites(reason, source) }
      }
      pauseOutage(for: pause)
      pause = min(2 * pause, Self.outageMilliseconds.longest)
    }
  }

  /// Calls the engine, and answers the watchdog meanwhile if it waits for something outside of the process.
  private func callOnce<Result>(_ body: () throws(EngineError) -> Result) throws(EngineError) -> Result {
    guard engine.waitsOutside else { return try body() }
    isOutside.store(true, ordering: .sequentiallyConsistent)
    defer { isOutside.store(false, ordering: .sequentiallyConsistent) }
    answerProbes()
    return try body()
  }

  /// Makes the store refuse writes during an outage, and takes those that it has accepted.
  private func refuseWrites(_ reason: String, _ source: any CommitSource) {
    source.access { map in
      map.takeCommits(into: &backlog)
      backlogContents = map.contents
      map.pauseWrites(.engineUnavailable(reason))
    }
    isUnavailable.store(true, ordering: .relaxed)
    notifySpaceWaiters()
  }

  /// Makes the store accept writes again after an outage, when all earlier commits have been written.
  private func acceptWrites(to map: inout EntryMap) {
    guard isUnavailable.exchange(false, ordering: .relaxed) else { return }
    map.resumeWrites()
    map.setCommitLimit(engine.reservedByteCount, isDiskFull: isDiskFull.load(ordering: .relaxed))
  }

  /// Waits during an outage until the next attempt, or until the writer is to stop.
  private func pauseOutage(for milliseconds: UInt64) {
    let end = monotonicMilliseconds() + milliseconds
    while !isStopping.load(ordering: .acquiring) {
      answerProbes()
      // Those who wait for space find that writes are refused.
      if isSpaceNeeded.exchange(false, ordering: .acquiring) { notifySpaceWaiters() }
      let now = monotonicMilliseconds()
      guard now < end else { return }
      if wakeup.wait(timeout: .now() + .milliseconds(Int(end - now))) == .success {
        _ = isAwake.exchange(false, ordering: .sequentiallyConsistent)
      }
    }
  }

  /// Sleeps until there is something to do.
  /// - Parameter lastSync: The time of the last sync if there is something to sync; otherwise nil.
  private func sleep(_ lastSync: UInt64?, hasMaintenance: Bool) {
    var milliseconds = Self.idleMilliseconds
    if isDiskFull.load(ordering: .relaxed) {
      milliseconds = hasMaintenance ? Self.maintenanceMilliseconds : Self.retryMilliseconds
    }
    if let interval, let lastSync {
      let now = monotonicMilliseconds()
      milliseconds = min(milliseconds, max(lastSync + interval, now) - now)
    }
    if isAwake.load(ordering: .sequentiallyConsistent) { return }
    if wakeup.wait(timeout: .now() + .milliseconds(Int(milliseconds))) == .success {
      // An exchange, so that everything done before a `wake` that found the writer awake is visible here.
      _ = isAwake.exchange(false, ordering: .sequentiallyConsistent)
    }
  }

  private func fail(_ error: EngineError, _ source: any CommitSource) {
    let reason: String
    switch error {
    case .noSpace: reason = "the disk is full"
    case .failed(let description): reason = description
    case .transient(let description):
      reason = "\(description), and nothing after revision \(durableRevision.load(ordering: .relaxed)) was written"
    }
    let failure: StorageError =
      hasLostStore ? .servedElsewhere(name, StoreElsewhere("another server has taken it over")) : .readOnly(reason)
    source.access { $0.disableWrites(failure) }
    backlog.removeAll()
    isUnavailable.store(false, ordering: .relaxed)
    state.withLock { $0.failure = failure }
    notifyWaiters()
    notifySpaceWaiters()
  }

  private func notifyWaiters() {
    for waiter in state.withLock({ $0.takeWaiters() }) { waiter.durabilityDidAdvance() }
  }
}

/// A waiter for commits to become durable.
package protocol DurabilityWaiter: AnyObject, Sendable {
  /// Called on the commit thread. Return at once.
  func durabilityDidAdvance()
}
