import Dispatch
import Glibc
import Platform

/// Returns freed memory to the system, and keeps the process below its memory limit.
///
/// Once a second, the resident memory is compared with what the server accounts for, because `free` keeps most memory in
/// the heap, where a burst of large requests would leave it forever. (Large blocks are not mapped one by one instead,
/// because touching new pages for each of them would take most of the time of a large put.) Near the limit, stores with
/// a limit of their own evict entries, so that the other ones can be written.
///
/// Safe because `trimming` is used only on the timer's queue, and everything else is constant.
final class MemoryMonitor: @unchecked Sendable {
  private let timer: any DispatchSourceTimer
  private var trimming = HeapTrimming()

  init(_ state: ServerState) {
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "larder.memory"))
    timer.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(200))
    timer.setEventHandler { [unowned self] in
      trim(state)
      // What is evicted counts first, so that no request is refused meanwhile.
      if let correction = state.memory.correction() {
        Self.evict(correction.shortage, of: state)
        state.memory.apply(correction)
      }
    }
    timer.activate()
  }

  private func trim(_ state: ServerState) {
    let use = MemoryUse(state)
    guard
      trimming.isDue(resident: use.resident, accounted: use.accountedBytes, isUrgent: state.memory.shortage > 0)
    else { return }
    ProcessMemory.trimHeap()
    trimming.didTrim(resident: ProcessMemory.resident()?.total ?? 0, accounted: use.accountedBytes)
  }

  /// How long the stores stay unlocked between two slices of an eviction, in microseconds, not counting what the system
  /// adds.
  private static let pause: UInt32 = 10

  /// Evicts entries of stores that have a limit, in turn, until so many bytes are free or the stores have none.
  private static func evict(_ byteCount: Int, of state: ServerState) {
    if byteCount == 0 { return }
    var stores = state.stores.list().filter { $0.limit != nil }
    var missing = byteCount
    while missing > 0, !stores.isEmpty {
      stores.removeAll { store in
        let (evictedByteCount, waiters) = store.access { map in
          (map.evictSome(), map.takeNotifiedWaiters())
        }
        for waiter in waiters { waiter.storeDidChange() }
        missing -= evictedByteCount
        return evictedByteCount <= 0
      }
      usleep(pause)
    }
  }

  func stop() {
    timer.cancel()
  }
}

/// When to trim the heap: if so much memory is resident beyond what is accounted for that it pays, and not again for
/// memory that the last time has not returned.
struct HeapTrimming {
  /// The excess that is not worth trimming: a fixed part, and this fraction of what is accounted for.
  private static let minExcess = 4 << 20
  private static let accountedDivisor = 16
  /// The growth since the last time that is worth trimming again.
  private static let minGrowth = 2 << 20
  private static let minUrgentGrowth = 1 << 20
  /// The number of checks between two times, because blocks that are used again at once must be paged in again.
  private static let pauseCount = 3

  /// The lowest excess since the last time.
  private var remainder = 0
  private var pause = 0

  /// Whether to trim now. Call it at regular intervals.
  /// - Parameter isUrgent: Whether every page counts.
  mutating func isDue(resident: Int, accounted: Int, isUrgent: Bool = false) -> Bool {
    let excess = resident - accounted
    remainder = min(remainder, excess)
    pause = max(0, pause - 1)
    if isUrgent { return excess > remainder + Self.minUrgentGrowth }
    return pause == 0 && excess > max(Self.minExcess + accounted / Self.accountedDivisor, remainder + Self.minGrowth)
  }

  /// Notes what has remained after trimming.
  mutating func didTrim(resident: Int, accounted: Int) {
    remainder = resident - accounted
    pause = Self.pauseCount
  }
}
