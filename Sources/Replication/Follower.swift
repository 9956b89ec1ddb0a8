import Dispatch
import Platform
import Storage

/// Follows the stores of a database that other servers lead.
final class Follower: Sendable {
  /// The pauses between two looks at the log, in milliseconds: while there are changes, and while there are none.
  private static let pauses = 5...100
  /// How often the database has to prove that what it shows is current, in milliseconds.
  private static let proofPause: UInt64 = 100
  /// How much is read of each store at a time, in bytes.
  private static let readByteCount = 1 << 20
  /// The pause between looks at the indexes of a store, and of the next one, in milliseconds.
  private static let indexPause: UInt64 = 1_000
  /// The pause before a store that could not be read is tried again, in milliseconds.
  private static let retryPause: UInt64 = 5_000

  private let log: any SharedLog
  private let membership: Membership
  private let cache: ValueCache
  private let state = Lock(State())
  private let snapshots: DispatchQueue
  private let stopping = DispatchSemaphore(value: 0)
  private let stopped = DispatchSemaphore(value: 0)

  /// A store to follow.
  struct Order {
    let store: StoreDescription
    /// Whether this server is to write its snapshots.
    let writesSnapshots: Bool
  }

  private struct State {
    var wanted: [StoreID: Order] = [:]
    var stores: [StoreID: FollowedStore] = [:]
    /// The store whose indexes were looked at last, and when.
    var lastIndexLook: (store: StoreID, time: UInt64) = (0, 0)
    /// When those that could not be read may be tried again, and why they could not.
    var retryTimes: [StoreID: UInt64] = [:]
    var failures: [StoreID: String] = [:]
    var budgets = StoreBudgets()
    var lastProof: UInt64 = 0
    /// Whether a snapshot is being written.
    var isWritingSnapshot = false
  }

  /// - Parameters:
  ///   - cache: Where large values are kept that were used last.
  ///   - queue: Where snapshots are written.
  init(
    _ membership: Membership, in log: any SharedLog, keepingValuesIn cache: ValueCache,
    snapshotsOn queue: DispatchQueue
  ) {
    (self.membership, self.log, self.cache, snapshots) = (membership, log, cache, queue)
    DispatchQueue(label: "larder.follower", qos: .userInitiated).async { [self] in
      var pause = Self.pauses.upperBound
      while stopping.wait(timeout: .now() + .milliseconds(pause)) == .timedOut {
        pause = look() ? Self.pauses.lowerBound : min(2 * pause, Self.pauses.upperBound)
      }
      stopped.signal()
    }
  }

  /// Stops, and ends all stores.
  func stop() {
    stopping.signal()
    stopped.wait()
    follow([:], StoreBudgets())
    // A snapshot ends with its store.
    snapshots.sync {}
  }

  /// Follows these stores from now on, and no others.
  func follow(_ stores: [StoreID: Order], _ budgets: StoreBudgets) {
    let ended = state.withLock { state in
      state.wanted = stores
      state.budgets = budgets
      state.retryTimes = state.retryTimes.filter { stores[$0.key] != nil }
      state.failures = state.failures.filter { stores[$0.key] != nil }
      defer { state.stores = state.stores.filter { stores[$0.key] != nil } }
      return state.stores.values.filter { stores[$0.id] == nil }
    }
    for store in ended { store.end() }
  }

  /// Returns a store that is followed, and in memory.
  func store(_ id: StoreID) -> Store? { state.withLock { $0.stores[id]?.store } }

  /// Why a store is not followed, although it is to be; nil if it is, or is about to be.
  func failure(of id: StoreID) -> String? { state.withLock { $0.failures[id] } }

  func store(named name: StoreName) -> Store? {
    state.withLock { $0.stores.values.first { $0.store.name == name }?.store }
  }

  /// Stops following a store, which this server leads now.
  /// - Returns: Nil if it was not followed.
  func take(_ id: StoreID) -> FollowedStore? {
    state.withLock { state in
      state.wanted[id] = nil
      return state.stores.removeValue(forKey: id)
    }
  }

  // MARK: On the follower's thread

  /// Reads what is new.
  /// - Returns: Whether anything was.
  private func look() -> Bool {
    let now = ClockReading.now
    for (id, store) in missingStores(at: now.monotonic) { open(id, store, at: now) }
    let stores = state.withLock { $0.stores }
    guard !stores.isEmpty else { return false }
    let positions = stores.mapValues(\.position)
    let node = state.withLock { now.monotonic >= $0.lastProof + Self.proofPause } ? membership.life?.node : nil
    guard let tails = try? log.commits(from: positions, upTo: Self.readByteCount, provenBy: node) else { return false }
    if node != nil { state.withLock { $0.lastProof = now.monotonic } }
    var isBusy = false
    for (id, store) in stores {
      let tail = tails[id] ?? LogTail()
      if tail.commits.count > 1 { isBusy = true }
      do {
        if try store.replay(tail.commits, at: now) {
          try store.expire(at: now)
          if node != nil, tail.isComplete { store.store.freshness?.extend(to: now.monotonic) }
        } else {
          close(id, retryingAt: now.monotonic)
        }
      } catch {
        close(id, retryingAt: now.monotonic + Self.retryPause, because: "\(error)")
      }
    }
    writeSnapshotIfDue()
    try? storeWhoseIndexesAreDue(at: now.monotonic)?.followIndexes()
    return isBusy
  }

  private func writeSnapshotIfDue() {
    let stores = state.withLock { state in
      state.isWritingSnapshot
        ? [] : state.stores.filter { state.wanted[$0.key]?.writesSnapshots ?? false }.map(\.value)
    }
    guard let store = stores.first(where: \.isSnapshotDue) else { return }
    state.withLock { $0.isWritingSnapshot = true }
    snapshots.async { [self] in
      // What fails here is tried again when the next commits are read.
      try? store.writeSnapshot()
      state.withLock { $0.isWritingSnapshot = false }
    }
  }

  private func storeWhoseIndexesAreDue(at now: UInt64) -> FollowedStore? {
    state.withLock { state in
      let (last, time) = state.lastIndexLook
      guard now >= time + Self.indexPause else { return nil }
      let next = state.stores.keys.filter { $0 > last }.min() ?? state.stores.keys.min()
      state.lastIndexLook = (next ?? 0, now)
      return next.flatMap { state.stores[$0] }
    }
  }

  private func missingStores(at now: UInt64) -> [(StoreID, StoreDescription)] {
    state.withLock { state in
      state.wanted.filter { state.stores[$0.key] == nil && now >= state.retryTimes[$0.key, default: 0] }.map {
        ($0.key, $0.value.store)
      }
    }
  }

  private func open(_ id: StoreID, _ description: StoreDescription, at now: ClockReading) {
    let budgets = state.withLock { $0.budgets }
    let store: FollowedStore
    do {
      store = try FollowedStore(
        description.name, description.specification, id, in: log, keepingValuesIn: cache, budgets: budgets, at: now)
    } catch {
      return close(id, retryingAt: now.monotonic + Self.retryPause, because: "\(error)")
    }
    let isWanted = state.withLock { state in
      (state.retryTimes[id], state.failures[id]) = (nil, nil)
      guard state.wanted[id] != nil else { return false }
      state.stores[id] = store
      return true
    }
    if !isWanted { store.end() }
  }

  /// Ends a store that is to be read again.
  private func close(_ id: StoreID, retryingAt time: UInt64, because reason: String? = nil) {
    let store = state.withLock { state in
      if state.wanted[id] != nil { (state.retryTimes[id], state.failures[id]) = (time, reason) }
      return state.stores.removeValue(forKey: id)
    }
    store?.end()
  }
}
