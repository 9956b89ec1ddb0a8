import Synchronization

/// What one thread of a run is to reach.
struct LoadGoal: Sendable {
  var pipeline: Int
  /// After so many requests it is done …
  var requests: Int?
  /// … or after so long.
  var nanoseconds: UInt64?
  /// From the start; latencies count only after it.
  var warmUp: UInt64 = 0
  /// How long the server may be silent while it owes replies.
  var patience: UInt64
  /// Whether keys are loaded, one after the other, and which one is the first.
  var isLoading = false
  var firstLoad = 0
}

/// What one thread did.
struct LoadShare: Sendable {
  var tally: Tally
  /// The first request and the last answer, on the monotonic clock.
  var start: UInt64
  var end: UInt64
  var cpuNanoseconds: UInt64
  /// The part of the CPU time that was spent looking for replies in vain.
  var idleNanoseconds: UInt64
}

/// What a thread tells of itself while it runs.
final class LoadProgress: Sendable {
  private let answeredCount = Atomic(0)
  private let failureCount = Atomic(0)

  @inline(__always)
  func publish(answered: Int, failures: Int) {
    answeredCount.store(answered, ordering: .relaxed)
    failureCount.store(failures, ordering: .relaxed)
  }

  var answered: Int { answeredCount.load(ordering: .relaxed) }
  var failures: Int { failureCount.load(ordering: .relaxed) }
}
