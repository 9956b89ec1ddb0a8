import Platform

/// What of durable stores is measured, and for how long.
struct DurablePlan: Sendable {
  var parts = DurablePart.allCases
  var repeats = 5
  /// How long each contender works at a time.
  var turn: Duration = .seconds(2)
  var keys = 200_000
  /// Keys of the store whose latencies are taken while it is compacted. Its values are large and the sets that are timed are not, so
  /// each of them makes much garbage.
  var keysOfCompaction = 500_000
  var valueSizeOfCompaction = 1_000
  var keysOfRestart = 1_000_000
  /// A file each.
  var keysOfDirectory = 1_000
  var valueSize = 100
  /// Nil where there is but one.
  var processors: ComparisonPlan.Processors?
  var seed: UInt64 = 1

  static let connections = 50
  static let pipeline = 16
  /// Latencies while compacting are taken at this part of the peak, or with so many sets a key in a turn if that is less: until then
  /// a store that had no garbage has too little to compact.
  static let (latencyLoad, latencySetsOfKey) = (0.2, 0.4)

  /// The beginning of each turn, which does not count in the latencies.
  var warmUp: Duration { min(.milliseconds(100), turn / 5) }

  /// Rough figures in a fraction of the time.
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

  func load(_ workload: String, _ server: RunningServer, keys: Int, seed: UInt64) throws -> LoadPlan {
    var plan = LoadPlan(
      address: server.address, protocolName: server.contender.protocolName, workload: try Workload(workload))
    plan.connections = Self.connections
    plan.keys = keys
    plan.valueSize = valueSize
    plan.duration = turn
    plan.warmUp = warmUp
    plan.processors = processors?.generator
    plan.seed = seed
    return plan
  }
}

/// What can be measured by itself.
enum DurablePart: String, CaseIterable, Codable, Sendable {
  /// Durable sets, 50 × 16, beside Redis.
  case always
  /// Durable sets of one client, beside Redis and a bare loop.
  case single
  /// Sets with a second's loss window, 50 × 16, beside Redis.
  case interval
  /// Gets from a log store, beside a memory store.
  case get
  /// Latency while compacting, beside the same without.
  case compaction
  /// Bytes written a byte put.
  case bytes
  /// The time until the first get after a start, beside Redis.
  case restart
  /// Durable sets in the directory engine.
  case directory
}
