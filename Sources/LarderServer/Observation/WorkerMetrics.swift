import Basics
import Platform
import Wire

/// What one worker counts. The worker writes, without a lock and once a wake-up, and whoever reports reads.
final class WorkerMetrics: Sendable {
  /// Operations are below it; 0 stands for all that are none.
  static let operationCount = 32
  private static let outcomeCount = 4

  /// Requests by operation and outcome.
  private let requests = Counters(count: operationCount * outcomeCount)
  private let sums = Counters(count: Sum.allCases.count)
  /// A histogram for each operation.
  private let durations = Counters(count: operationCount * DurationHistogram.counterCount)

  enum Sum: Int, CaseIterable {
    case wakeUps, slowWakeUps, receivedBytes, sentBytes
  }

  /// Notes requests that were answered with an error, or not.
  /// - Parameter operation: below `operationCount`.
  @inline(__always)
  func count(_ number: UInt32, _ operation: Int, _ outcome: UInt8) {
    requests.add(UInt64(number), at: Int(outcome) &* Self.operationCount &+ operation)
  }

  /// Notes how long requests took.
  @inline(__always)
  func note(nanoseconds: UInt64, count: UInt32, of operation: Int) {
    durations(of: operation).note(nanoseconds: nanoseconds, count: UInt64(count))
  }

  @inline(__always)
  func add(_ amount: UInt64, to sum: Sum) { sums.add(amount, at: sum.rawValue) }

  subscript(sum: Sum) -> UInt64 { sums[sum.rawValue] }

  func requests(_ operation: Int, _ outcome: Outcome) -> UInt64 {
    requests[Int(outcome.rawValue) * Self.operationCount + operation]
  }

  @inline(__always)
  func durations(of operation: Int) -> DurationHistogram {
    DurationHistogram(durations, from: operation &* DurationHistogram.counterCount)
  }

  var requestCount: UInt64 { (0..<requests.count).reduce(0) { $0 + requests[$1] } }

  /// How many requests, of all operations, took so long as a class of the histograms says.
  func durationCount(_ index: Int) -> UInt64 {
    (0..<Self.operationCount).reduce(0) { $0 + durations(of: $1)[index] }
  }
}
