import Dispatch
import Platform

/// Returns freed memory to the system: `free` keeps most of it in the heap, where a burst of large requests would leave
/// it forever.
///
/// Once a second, the resident memory is compared with what the server accounts for. Large blocks are not mapped one by
/// one instead, because touching new pages for each of them would take most of the time of a large put.
///
/// Safe because `trimming` is used only on the timer's queue, and everything else is constant.
final class MemoryMonitor: @unchecked Sendable {
  private let timer: any DispatchSourceTimer
  private var trimming = HeapTrimming()

  init(_ state: ServerState) {
    timer = DispatchSource.makeTimerSource(queue: DispatchQueue(label: "larder.memory"))
    timer.schedule(deadline: .now() + 1, repeating: 1, leeway: .milliseconds(200))
    timer.setEventHandler { [unowned self] in
      let use = MemoryUse(state)
      guard trimming.isDue(resident: use.resident, accounted: use.accountedBytes) else { return }
      ProcessMemory.trimHeap()
      trimming.didTrim(resident: ProcessMemory.resident()?.total ?? 0, accounted: use.accountedBytes)
    }
    timer.activate()
  }

  func stop() {
    timer.cancel()
  }
}

/// When to trim the heap: if so much memory is resident beyond what is accounted for that it pays, and not again for
/// memory that the last time has not returned.
struct HeapTrimming {
  /// The excess that is not worth trimming: a fixed part, which includes the program itself, and one divided by this
  /// number of what is accounted for.
  private static let minExcess = 24 << 20
  private static let accountedDivisor = 8
  /// The growth since the last time that is worth trimming again.
  private static let minGrowth = 8 << 20
  /// The number of checks between two times, because blocks that are used again at once must be paged in again.
  private static let pauseCount = 3

  /// The lowest excess since the last time.
  private var remainder = 0
  private var pause = 0

  /// Whether to trim now. Call it at regular intervals.
  mutating func isDue(resident: Int, accounted: Int) -> Bool {
    let excess = resident - accounted
    remainder = min(remainder, excess)
    pause = max(0, pause - 1)
    return pause == 0 && excess > max(Self.minExcess + accounted / Self.accountedDivisor, remainder + Self.minGrowth)
  }

  /// Notes what has remained after trimming.
  mutating func didTrim(resident: Int, accounted: Int) {
    remainder = resident - accounted
    pause = Self.pauseCount
  }
}
