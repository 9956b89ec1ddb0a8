// What happens to memory:
//
// Entries and order nodes are in chunks that return to the system when they are free; after a `delete-all`, a thread of
// its own frees them and the indexes (`DiscardedContents`). Everything else is in one heap, which `MemoryMonitor` trims
// once more is resident than is accounted for. What open replies keep of overwritten entries is limited
// (`SnapshotBudget`): beyond it, the store that is written ends its oldest snapshots, whose readers get
// `snapshotEnded`. With a memory limit, `MemoryBudget` counts what stores and buffers take between two measurements of
// the resident memory. A put that needs a new chunk, or has a large value, fails with `memoryLimit` before it changes
// anything, unless its store may evict entries instead.

import Platform
import Synchronization

/// How much memory stores may still take from the system, in a process with a memory limit.
///
/// What counts is the resident memory of the whole process. It is measured once a second and when it seems used up; in
/// between, stores and buffers count what they take. Nothing counts without a limit. Used by any thread.
package final class MemoryBudget: Sendable {
  /// In bytes; `Int.max` for none.
  private let limit = Atomic(Int.max)
  /// What is left of it. It can become negative, because not everything that takes memory can be refused.
  private let rest = Atomic(Int.max)
  /// What is still resident, but is being returned to the system.
  private let returning = Atomic(0)
  /// In milliseconds.
  private let lastMeasurement = Atomic<UInt64>(0)

  /// The time between two measurements when the rest seems used up, in milliseconds.
  private static let measurementInterval: UInt64 = 20
  /// Buffers and jobs are refused when they exceed the limit by this fraction of it.
  private static let toleranceDivisor = 32
  /// Stores that evict leave this fraction of the limit to others.
  private static let reserveDivisor = 64

  package init() {}

  /// - Parameter byteCount: The maximum resident memory of the process, in bytes; nil for none.
  package func setLimit(_ byteCount: Int?) {
    limit.store(byteCount ?? .max, ordering: .relaxed)
    rest.store(byteCount ?? .max, ordering: .relaxed)
    measure()
  }

  private var isLimited: Bool { limit.load(ordering: .relaxed) != .max }

  /// Whether so much memory is in use that nothing that could take more should begin.
  package var isExhausted: Bool {
    isLimited && rest.load(ordering: .relaxed) < -limit.load(ordering: .relaxed) / Self.toleranceDivisor
  }

  /// How many bytes stores that evict should evict; 0 if there is enough memory.
  package var shortage: Int { isLimited ? shortage(leaving: rest.load(ordering: .relaxed)) : 0 }

  private func shortage(leaving rest: Int) -> Int {
    max(0, limit.load(ordering: .relaxed) / Self.reserveDivisor - rest)
  }

  // MARK: Measuring

  /// How a measurement differs from what was counted.
  package struct Correction: Sendable {
    /// How many bytes stores that evict should evict; 0 if there is enough memory.
    package let shortage: Int
    fileprivate let byteCount: Int
    fileprivate let previousMeasurement: UInt64
  }

  /// Measures the resident memory, and counts what is resident now. Takes some microseconds.
  package func measure() {
    if let correction = correction() { apply(correction) }
  }

  /// Measures the resident memory. Nothing counts differently until the correction is applied, so that what is evicted
  /// before can keep the limit from seeming exceeded. Takes some microseconds.
  /// - Returns: nil without a limit.
  package func correction() -> Correction? {
    let previousMeasurement = lastMeasurement.load(ordering: .relaxed)
    guard isLimited, let resident = ProcessMemory.resident() else { return nil }
    let kept = resident.total - returning.load(ordering: .relaxed)
    let measured = limit.load(ordering: .relaxed) - kept
    return Correction(
      shortage: shortage(leaving: measured), byteCount: measured - rest.load(ordering: .relaxed),
      previousMeasurement: previousMeasurement)
  }

  /// Corrects what was counted, unless another measurement has done so.
  package func apply(_ correction: Correction) {
    let isLatest = lastMeasurement.compareExchange(
      expected: correction.previousMeasurement, desired: monotonicMilliseconds(), ordering: .relaxed
    ).exchanged
    if isLatest { rest.add(correction.byteCount, ordering: .relaxed) }
  }

  // MARK: Counting

  /// Counts memory that is taken, whether or not there is enough, or returned if the count is negative.
  package func count(_ byteCount: Int) {
    if isLimited { rest.subtract(byteCount, ordering: .relaxed) }
  }

  /// Counts memory as returned that another thread begins to return. Balance it with `didReturn`.
  func willReturn(_ byteCount: Int) {
    returning.add(byteCount, ordering: .relaxed)
    count(-byteCount)
  }

  func didReturn(_ byteCount: Int) { returning.subtract(byteCount, ordering: .relaxed) }

  /// Whether a store could take memory now.
  func hasRoom(for byteCount: Int) -> Bool { !isLimited || rest.load(ordering: .relaxed) >= byteCount }

  /// Takes memory for a store.
  /// - Returns: False, with nothing taken, if the limit would be exceeded.
  func take(_ byteCount: Int) -> Bool {
    guard isLimited else { return true }
    if takeRest(byteCount) { return true }
    // Memory may have been returned since.
    guard monotonicMilliseconds() >= lastMeasurement.load(ordering: .relaxed) + Self.measurementInterval else {
      return false
    }
    measure()
    return takeRest(byteCount)
  }

  private func takeRest(_ byteCount: Int) -> Bool {
    if rest.subtract(byteCount, ordering: .relaxed).newValue >= 0 { return true }
    rest.add(byteCount, ordering: .relaxed)
    return false
  }
}
