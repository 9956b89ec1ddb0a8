/// The parts of a comparison of large requests, and their parameters.
struct LargePlan: BenchPlan {
  var parts = LargePart.allCases
  /// Whether peers are measured, too.
  var includesPeers = true
  var repeats = 5
  var turn: Duration = .seconds(1)
  /// The duration of each turn of gets at a constant rate.
  var pacedTurn: Duration { turn * 2 }
  /// How long a server rests after a burst before its memory is measured.
  var rest: Duration = .seconds(10)
  var loads = [
    LargeLoad(valueSize: 64 << 10, keys: 1_000, connections: 50),
    LargeLoad(valueSize: 1 << 20, keys: 100, connections: 16),
  ]
  var bursts = LargeBursts()
  /// The size of the values that are got beside small ones, in bytes.
  var neighborSize = 10_000_000
  var seed: UInt64 = 1

  /// The small values: their size in bytes, their keys, and the gets per second.
  static let (smallSize, smallKeys, smallRate) = (1_024, UInt64(1_000), 2_000)
  /// The number of large values, and the gets of them per second.
  static let (neighborKeys, neighborRate) = (UInt64(4), 10)

  static var quick: LargePlan {
    var plan = LargePlan()
    plan.repeats = 2
    plan.turn = .milliseconds(250)
    plan.rest = .seconds(2)
    return plan
  }
}

/// A part that can be measured on its own.
enum LargePart: String, CaseIterable, Sendable {
  /// Gets and puts of values of 64 KiB and 1 MiB.
  case large
  /// Small gets beside large ones over another connection.
  case isolation
  /// Resident memory after bursts.
  case memory
  /// Gets beside a store whose disk stalls.
  case stall
}

/// The values and connections of a closed loop.
struct LargeLoad: Sendable {
  /// In bytes.
  let valueSize: Int
  let keys: Int
  let connections: Int

  func name(_ workload: String) -> String { "\(workload) \(byteText(valueSize)), \(connections) connections" }

  /// Returns a turn of the load.
  func turn(_ workload: String, _ server: RunningServer, _ runner: BenchRunner) throws -> LoadPlan {
    var load = try runner.load(workload, server)
    load.connections = connections
    load.keys = keys
    load.valueSize = valueSize
    return load
  }
}

/// The bursts after which memory is measured.
struct LargeBursts: Sendable {
  /// Large values that small ones then overwrite.
  var overwritten = LargeLoad(valueSize: 64 << 10, keys: 2_000, connections: 4)
  /// Frames that are sent without their last byte, each over its own connection, and their size in bytes.
  var (halfFrames, halfFrameSize) = (400, 15 << 20)
  /// Replies that are not read, and the entries that each of them has, which are put again after each request.
  var unreadReplies = 20
  var unread = LargeLoad(valueSize: 1_000, keys: 60_000, connections: 4)

  /// The size of the small values, in bytes.
  static let smallSize = 100
}

/// Returns a number of bytes in the unit that suits it, such as 64 KiB or 10 MB.
func byteText(_ count: Int) -> String {
  let units = [(1 << 20, "MiB"), (1_000_000, "MB"), (1 << 10, "KiB")]
  for (size, unit) in units where count >= size && count % size == 0 { return "\(count / size) \(unit)" }
  return "\(count) bytes"
}
