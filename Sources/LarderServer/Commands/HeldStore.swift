import Storage

/// The store whose lock a worker holds while it executes requests.
///
/// At most one store is locked at a time. Its lock is held from one request to the next, and from one connection to the
/// next, because taking a lock costs more than holding it; it is never held during a system call. Owned by the worker's
/// `Executor`.
struct HeldStore: ~Copyable {
  private(set) var store: Store?
  /// The store that was locked last in this wakeup.
  private var lastStore: Store?
  /// The size of the requests that were executed since the store was locked.
  private var byteCount = 0
  /// The writers of the stores that have new commits.
  private var awaitedWriters: [CommitWriter] = []
  private let expiryTimer: ExpiryTimer

  /// The size of requests after which the store is unlocked although more of them are waiting.
  private static let maxBytes = 64 << 10

  init(_ expiryTimer: ExpiryTimer) { self.expiryTimer = expiryTimer }

  /// Locks a store, unless it is locked already. Unlocks any other one first.
  @inline(__always)
  mutating func lock(_ store: Store) {
    if self.store === store { return }
    unlock()
    store.lock()
    self.store = store
  }

  /// Unlocks the store, if one is locked, and wakes everything that waits for its changes and expiries.
  @inline(__always)
  mutating func unlock() {
    guard let store else { return }
    // One call: each use of a property of the map would copy all of it.
    let news = unsafe store.map.takeNews()
    store.unlock()
    lastStore = self.store.take()
    byteCount = 0
    for waiter in news.waiters { waiter.storeDidChange() }
    if news.hasCommits, let writer = store.commitWriter, !awaitedWriters.contains(where: { $0 === writer }) {
      awaitedWriters.append(writer)
    }
    if let soonerExpiry = news.soonerExpiry { expiryTimer.entryWillExpire(at: soonerExpiry) }
  }

  /// Wakes the commit threads of all stores that have new commits. Call it once for a whole wakeup, so that they write
  /// all commits of the wakeup at once.
  @inline(__always)
  mutating func wakeCommitWriters() {
    guard !awaitedWriters.isEmpty else { return }
    for writer in awaitedWriters { writer.wake() }
    awaitedWriters.removeAll(keepingCapacity: true)
  }

  /// Counts executed requests. Unlocks the store after too many of them, because other workers may be waiting for it.
  @inline(__always)
  mutating func didExecute(byteCount: Int) {
    self.byteCount &+= byteCount
    if self.byteCount > Self.maxBytes { unlock() }
  }

  /// Ends a wakeup: forgets which store was locked last.
  @inline(__always)
  mutating func forgetLastStore() { lastStore = nil }

  /// The name of the store that was locked last in this wakeup; empty if none was.
  var lastStoreName: String { lastStore?.name.text ?? "" }
}
