/// The parts of the durable benchmark, and their parameters.
struct DurablePlan: BenchPlan {
  var parts = DurablePart.allCases
  var repeats = 5
  var turn: Duration = .seconds(2)
  var keys = 200_000
  /// The number of keys of the store whose latencies are measured during compaction. Its values are large and the timed
  /// sets small, so that each set produces much garbage.
  var keysOfCompaction = 500_000
  var valueSizeOfCompaction = 1_000
  var keysOfRestart = 1_000_000
  /// The number of keys of the directory store. Each key is a file.
  var keysOfDirectory = 1_000
  var seed: UInt64 = 1

  /// The numbers of clients that wait for each set before they send the next one.
  static let clientCounts = [1, 2, 4, 8, 16, 32, 64]
  static let pipeline = 16
  /// The rate of sets during compaction, as a fraction of the peak and as sets per key and turn, whichever is less.
  /// Below the latter, a store without garbage produces too little of it to start compaction.
  static let (latencyLoad, latencySetsOfKey) = (0.2, 0.4)

  static var quick: DurablePlan {
    var plan = DurablePlan()
    plan.repeats = 2
    plan.turn = .milliseconds(500)
    plan.keys = 50_000
    plan.keysOfCompaction = 50_000
    plan.keysOfRestart = 200_000
    plan.keysOfDirectory = 200
    return plan
  }
}

/// A part that can be measured on its own.
enum DurablePart: String, CaseIterable, Codable, Sendable {
  /// Durable sets, 50 × 16, compared with Redis.
  case always
  /// Durable sets from 1 to 64 clients, compared with a minimal server; from one client also with Redis and a bare write
  /// loop.
  case clients
  /// Sets that may lose the last second, 50 × 16, compared with Redis.
  case interval
  /// Gets from a log store, compared with a memory store.
  case get
  /// Latency during compaction, compared with latency without it.
  case compaction
  /// Bytes written per byte put.
  case bytes
  /// The time until the first get after a start, compared with Redis.
  case restart
  /// Durable sets in the directory engine.
  case directory
}
