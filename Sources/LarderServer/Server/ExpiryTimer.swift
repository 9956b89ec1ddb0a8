// What happens to 100,000 entries that expire at once:
//
// None is found anymore, because every look-up compares its expiry with the clock, which is read again when a batch
// takes long (`Executor.updateClock`). Their memory follows at once: `ExpiryTimer` removes them in slices of a fraction
// of a millisecond (`expireBriefly` in `ExpiryQueue`). A request that counts entries by their ranks, such as a page,
// can't be executed before its store has none that are due. It removes a slice itself, and if that isn't enough, its
// connection executes it again in the next wakeup (`RequestEnd.deferred`); all others go on.

import Dispatch
import Glibc
import Platform
import Storage
import Synchronization

/// Removes expired entries soon after their end, whether or not somebody reads them: their memory is needed, and a
/// request that counts must not find many of them. It also frees what was kept for snapshots that have ended, discards
/// changes that nobody watches, and updates the figures that cover recent seconds.
///
/// A pass does this in all stores. The next one is planned for the soonest expiry, and a worker that writes an entry with
/// a sooner one says so. A store is locked for a fraction of a millisecond at a time, and not locked for a moment in
/// between, so that workers are not delayed by however many entries expire.
///
/// Safe because what changes is atomic or used on `queue` only.
final class ExpiryTimer: @unchecked Sendable {
  private let queue = DispatchQueue(label: "larder.expiry")
  /// Nil before the start and after the end.
  private var timer: (any DispatchSourceTimer)?
  /// When the next pass is due, in milliseconds. It is signed, because `Atomic<UInt64>.min` of Swift 6.3.1 compares
  /// its numbers as if they were.
  private let due = Atomic<Int64>(.max)
  private var lastPass: UInt64 = 0
  private var nextSecond: UInt64 = 0

  /// The minimum time between two passes, in milliseconds, so that entries that expire one by one share passes.
  private static let interval: UInt64 = 10
  /// How long the stores stay unlocked between two slices of a pass, in microseconds. The system adds about 50, in
  /// which a worker can wake up and take the lock.
  private static let pause: UInt32 = 10

  /// Begins with the passes. Call it once.
  func start(_ state: ServerState) {
    queue.async { [weak state] in
      let timer = DispatchSource.makeTimerSource(queue: self.queue)
      timer.setEventHandler { [unowned self] in if let state { run(state) } }
      self.timer = timer
      self.nextSecond = monotonicMilliseconds() + 1_000
      timer.schedule(deadline: .now())
      timer.activate()
    }
  }

  /// Ends the passes, after the present one.
  func stop() {
    queue.async {
      self.timer?.cancel()
      self.timer = nil
    }
  }

  /// Notes that an entry expires at a time, in milliseconds, that is sooner than all others of its store. From any
  /// thread.
  func entryWillExpire(at time: UInt64) {
    let time = Int64(clamping: time)
    guard time < due.min(time, ordering: .relaxed).oldValue else { return }
    queue.async { self.plan() }
  }

  /// Sets the timer for the next pass.
  private func plan() {
    guard let timer else { return }
    let next = max(min(UInt64(due.load(ordering: .relaxed)), nextSecond), lastPass + Self.interval)
    let now = monotonicMilliseconds()
    timer.schedule(
      deadline: .now() + .milliseconds(Int(max(next, now) - now)), leeway: .milliseconds(Int(Self.interval / 4)))
  }

  private func run(_ state: ServerState) {
    due.store(.max, ordering: .relaxed)
    lastPass = monotonicMilliseconds()
    let stores = state.stores.all
    if lastPass >= nextSecond {
      nextSecond = lastPass + 1_000
      state.updateRecentFigures()
      for store in stores { store.access { $0.discardAbandonedFeed(now: lastPass) } }
    }
    var remaining = stores.filter(Self.tidyBriefly)
    while !remaining.isEmpty {
      usleep(Self.pause)
      remaining = remaining.filter(Self.tidyBriefly)
    }
    for store in stores {
      if let next = store.access({ $0.nextExpiry }) { due.min(Int64(clamping: next), ordering: .relaxed) }
    }
    plan()
  }

  /// - Returns: Whether there is more to do.
  private static func tidyBriefly(_ store: Store) -> Bool {
    let now = monotonicMilliseconds()
    let (hasMore, waiters) = store.access { map -> (Bool, [any ChangeWaiter]) in
      let (expiresMore, reclaimsMore) = (map.expireBriefly(now: now), map.reclaimBriefly())
      return (expiresMore || reclaimsMore, map.takeNotifiedWaiters())
    }
    for waiter in waiters { waiter.storeDidChange() }
    return hasMore
  }
}
