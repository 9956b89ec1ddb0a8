import Platform
import Wire

/// What one worker counts. The worker writes, without a lock, and whoever reports reads.
final class WorkerMetrics: Sendable {
  /// Operations are below it; 0 stands for all that are none.
  static let operationCount = 32
  private static let outcomeCount = 4

  /// Requests by operation and outcome.
  private let requests = Counters(count: operationCount * outcomeCount)
  private let sums = Counters(count: Sum.allCases.count)
  /// From when the worker was told that requests had come until their answers were sent, or waited for the disk. Read once a wake-up: all of
  /// its requests count with the same time.
  let durations = DurationHistogram()

  enum Sum: Int, CaseIterable {
    case wakeUps, receivedBytes, sentBytes
  }

  /// - Parameter operation: below `operationCount`.
  @inline(__always)
  func count(_ operation: UInt8, _ outcome: UInt8) {
    requests.add(1, at: Int(outcome) &* Self.operationCount &+ Int(operation))
  }

  @inline(__always)
  func add(_ amount: Int, to sum: Sum) { sums.add(UInt64(amount), at: sum.rawValue) }

  subscript(sum: Sum) -> UInt64 { sums[sum.rawValue] }

  func requests(_ operation: Int, _ outcome: Outcome) -> UInt64 {
    requests[Int(outcome.rawValue) * Self.operationCount + operation]
  }

  var requestCount: UInt64 { (0..<requests.count).reduce(0) { $0 + requests[$1] } }
}
