import Glibc

/// Lets other threads that wait for this thread's core run first, as long as they don't keep it.
///
/// A thread that has something to do for microseconds, such as a worker, runs at once. One that computes would keep the
/// core for a whole time slice each time, so for a while it gets no more than the scheduler gives it.
package struct CoreYield: Sendable {
  /// Until when the core isn't given away, in nanoseconds.
  private var nextTime: UInt64 = 0

  /// For how long a thread may have the core, in nanoseconds.
  private static let maxTime: UInt64 = 500_000
  /// How many times longer this thread keeps the core then.
  private static let restFactor: UInt64 = 10

  package init() {}

  package mutating func yield() {
    let start = monotonicNanoseconds()
    guard start >= nextTime else { return }
    sched_yield()
    let end = monotonicNanoseconds()
    if end - start > Self.maxTime { nextTime = end + Self.restFactor * (end - start) }
  }
}
