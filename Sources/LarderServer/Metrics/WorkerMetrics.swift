import Basics
import Platform
import Wire

/// What one worker has counted since the server started. The worker writes, without a lock and once per wakeup; any
/// thread reads.
final class WorkerMetrics: Sendable {
  /// The number of counters for operations. All operations are below it; 0 stands for requests of unknown operations.
  static let operationCount = 64
  private static let outcomeCount = 4

  /// Requests by operation and outcome.
  private let requests = Counters(count: operationCount * outcomeCount)
  private let sums = Counters(count: Sum.allCases.count)
  /// A histogram for each operation.
  private let durations = Counters(count: operationCount * DurationHistogram.counterCount)

  enum Sum: Int, CaseIterable {
    case wakeups, slowWakeups, receivedBytes, sentBytes
    /// Documents and keys of indexes that were looked at, and the jobs that looked at all documents, or at fewer.
    case examinedDocuments, examinedKeys, scans, indexedJobs
  }

  /// Adds to the requests with an outcome.
  /// - Parameter operation: below `operationCount`.
  @inline(__always)
  func count(_ number: UInt32, _ operation: Int, _ outcome: Outcome) {
    requests.add(UInt64(number), at: Int(outcome.rawValue) &* Self.operationCount &+ operation)
  }

  /// Records how long requests took.
  @inline(__always)
  func record(nanoseconds: UInt64, count: UInt32, of operation: Int) {
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

  /// The number of requests, of all operations, in one class of the histograms.
  func durationCount(_ index: Int) -> UInt64 {
    (0..<Self.operationCount).reduce(0) { $0 + durations(of: $1)[index] }
  }
}

/// What a worker has counted in this wakeup: plain numbers, so that a request costs a few additions. At the end of the
/// wakeup they move to the worker's metrics. Owned by an `Executor`.
struct WakeupCounts: ~Copyable {
  private(set) var requests: UInt64 = 0
  /// A bit for each operation that was requested.
  private var operations: UInt64 = 0
  private var receivedBytes: UInt64 = 0
  private var sentBytes: UInt64 = 0
  /// Requests by operation, and those among them that failed. Zero where `operations` has no bit.
  private var counts = InlineArray<64, UInt32>(repeating: 0)
  private var failures = InlineArray<64, UInt32>(repeating: 0)

  @inline(__always)
  mutating func count(_ operation: UInt8) {
    requests &+= 1
    let operation = Self.index(operation)
    counts[operation] &+= 1
    operations |= 1 &<< UInt64(truncatingIfNeeded: operation)
  }

  /// Counts a request whose outcome is recorded when its job has ended.
  mutating func countPending() { requests &+= 1 }

  @inline(__always)
  mutating func addReceived(_ byteCount: Int) { receivedBytes &+= UInt64(byteCount) }

  @inline(__always)
  mutating func addSent(_ byteCount: Int) { sentBytes &+= UInt64(byteCount) }

  /// Counts the failure of a request that has been counted.
  mutating func countFailure(_ operation: UInt8, _ outcome: Outcome, _ metrics: WorkerMetrics) {
    let operation = Self.index(operation)
    failures[operation] &+= 1
    metrics.count(1, operation, outcome)
  }

  /// The number of an operation; 0 for an unknown one.
  @inline(__always)
  private static func index(_ operation: UInt8) -> Int {
    operation < UInt8(WorkerMetrics.operationCount) ? Int(operation) : 0
  }

  /// The wakeup's entry in the slow log.
  func slowLogEntry(nanoseconds: UInt64, store: String) -> SlowLog.Entry {
    SlowLog.Entry(
      ended: monotonicMilliseconds(), nanoseconds: nanoseconds, requests: UInt32(clamping: requests),
      receivedBytes: receivedBytes, operations: SlowLog.Entry.bits(operations), store: store)
  }

  /// Moves everything to the metrics.
  @inline(__always)
  mutating func move(to metrics: WorkerMetrics, nanoseconds: UInt64) {
    while operations != 0 {
      let operation = operations.trailingZeroBitCount & 63
      operations &= operations &- 1
      metrics.count(counts[operation] &- failures[operation], operation, .done)
      metrics.record(nanoseconds: nanoseconds, count: counts[operation], of: operation)
      counts[operation] = 0
      failures[operation] = 0
    }
    requests = 0
    moveBytes(to: metrics)
  }

  /// Moves the bytes alone, after a wakeup without a request.
  @inline(__always)
  mutating func moveBytes(to metrics: WorkerMetrics) {
    metrics.add(receivedBytes, to: .receivedBytes)
    metrics.add(sentBytes, to: .sentBytes)
    receivedBytes = 0
    sentBytes = 0
  }
}

/// How long requests took in the last seconds: what the workers' histograms were at the end of each. Used under a lock.
struct RecentDurations {
  /// The number of seconds that it covers.
  static let seconds = 10
  private var history: [[UInt64]] = []

  /// Records what the histograms are now. Called once a second.
  mutating func record(_ workers: [WorkerMetrics]) {
    if history.count == Self.seconds { history.removeFirst() }
    history.append(Self.counts(workers))
  }

  private static func counts(_ workers: [WorkerMetrics]) -> [UInt64] {
    (0..<DurationHistogram.classCount).map { index in workers.reduce(0) { $0 + $1.durationCount(index) } }
  }

  /// Quantiles of the durations, in nanoseconds, rounded up to a power of two; 0 if there were no requests.
  /// - Parameter thousandths: the quantiles to compute.
  func quantiles(_ thousandths: [UInt64], _ workers: [WorkerMetrics]) -> [UInt64] {
    let newest = Self.counts(workers)
    let oldest = history.first ?? Array(repeating: 0, count: newest.count)
    let counts = zip(newest, oldest).map { $0 - $1 }
    let sum = counts.reduce(0, +)
    return thousandths.map { part in
      guard sum > 0 else { return 0 }
      var remaining = (sum * part + 999) / 1_000
      for (index, count) in counts.enumerated() {
        if count >= remaining { return DurationHistogram.bound(index) ?? .max }
        remaining -= count
      }
      return .max
    }
  }
}

/// The latest wakeups that took long: when, how long, and what was requested. It has no keys and no values. Used under
/// a lock.
struct SlowLog {
  /// The number of entries that are kept.
  static let capacity = 128

  struct Entry {
    /// When the wakeup ended, in milliseconds of the server's clock.
    let ended: UInt64
    let nanoseconds: UInt64
    let requests: UInt32
    let receivedBytes: UInt64
    /// A bit for each operation that was requested; bit 0 for those above 31.
    let operations: UInt32
    /// The store that was locked last; empty if none was.
    let store: String

    /// Returns the bits of an entry for a bit for each operation.
    static func bits(_ operations: UInt64) -> UInt32 {
      UInt32(truncatingIfNeeded: operations) | (operations >> 32 == 0 ? 0 : 1)
    }
  }

  private var entries: [Entry] = []
  private var next = 0

  /// Adds an entry, unless it is about reading the log: whoever watches the log would fill it.
  mutating func append(_ entry: Entry) {
    guard entry.operations != Entry.bits(1 << UInt64(Operation.slowLog.rawValue)) else { return }
    if entries.count < Self.capacity { entries.append(entry) } else { entries[next] = entry }
    next = (next + 1) % Self.capacity
  }

  var newestFirst: [Entry] {
    (entries[..<min(next, entries.count)].reversed() + entries[min(next, entries.count)...].reversed())
  }
}
