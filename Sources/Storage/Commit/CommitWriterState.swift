/// What the thread of a `CommitWriter` shares with others, under a lock.
struct CommitWriterState: Sendable {
  private var waiters: [any DurabilityWaiter] = []
  private var spaceWaiters: [@Sendable () -> Void] = []
  private var probes: [@Sendable () -> Void] = []
  /// Whether the thread has ended, or is about to.
  private var hasEnded = false
  var failure: StorageError?
  /// What the map contained after the newest durable commit.
  var durableContents = MapContents()

  mutating func add(_ waiter: any DurabilityWaiter) {
    if !waiters.contains(where: { $0 === waiter }) { waiters.append(waiter) }
  }

  mutating func takeWaiters() -> [any DurabilityWaiter] {
    defer { waiters.removeAll(keepingCapacity: true) }
    return waiters
  }

  mutating func addSpaceWaiter(_ waiter: @escaping @Sendable () -> Void) { spaceWaiters.append(waiter) }

  mutating func takeSpaceWaiters() -> [@Sendable () -> Void] {
    defer { spaceWaiters.removeAll() }
    return spaceWaiters
  }

  /// Adds a probe unless the thread has ended.
  /// - Returns: Whether it was added.
  mutating func add(_ probe: @escaping @Sendable () -> Void) -> Bool {
    if !hasEnded { probes.append(probe) }
    return !hasEnded
  }

  mutating func takeProbes() -> [@Sendable () -> Void] {
    defer { probes.removeAll() }
    return probes
  }

  mutating func end() { hasEnded = true }
}
