/// What a worker has counted since it was last woken: plain numbers of its own, so that a request costs a few additions. They go to the
/// worker's metrics, and to the slow log, at the wake-up's end.
struct Tally: ~Copyable {
  /// Of all operations.
  private(set) var requests: UInt64 = 0
  /// A bit for each operation.
  private(set) var operations: UInt32 = 0
  var receivedBytes: UInt64 = 0
  var sentBytes: UInt64 = 0
  /// By operation, and those among them whose answer was an error. Zero where `operations` has no bit.
  private var counts = InlineArray<32, UInt32>(repeating: 0)
  private var failures = InlineArray<32, UInt32>(repeating: 0)

  @inline(__always)
  mutating func count(_ operation: UInt8) {
    requests &+= 1
    let operation = Self.index(operation)
    counts[operation] &+= 1
    operations |= 1 &<< UInt32(truncatingIfNeeded: operation)
  }

  /// Notes that the request which is counted last has failed.
  mutating func countFailure(_ operation: UInt8, _ outcome: UInt8, _ metrics: WorkerMetrics) {
    let operation = Self.index(operation)
    failures[operation] &+= 1
    metrics.count(1, operation, outcome)
  }

  /// The operation's number, or 0 for what is none.
  @inline(__always)
  private static func index(_ operation: UInt8) -> Int {
    operation < UInt8(WorkerMetrics.operationCount) ? Int(operation) : 0
  }

  /// Hands everything over, and begins anew.
  @inline(__always)
  mutating func pour(into metrics: WorkerMetrics, nanoseconds: UInt64) {
    while operations != 0 {
      let operation = operations.trailingZeroBitCount & 31
      operations &= operations &- 1
      metrics.count(counts[operation] &- failures[operation], operation, 0)
      metrics.note(nanoseconds: nanoseconds, count: counts[operation], of: operation)
      counts[operation] = 0
      failures[operation] = 0
    }
    requests = 0
    pourBytes(into: metrics)
  }

  /// Hands over the bytes alone: a wake-up without a request.
  @inline(__always)
  mutating func pourBytes(into metrics: WorkerMetrics) {
    metrics.add(receivedBytes, to: .receivedBytes)
    metrics.add(sentBytes, to: .sentBytes)
    receivedBytes = 0
    sentBytes = 0
  }
}
