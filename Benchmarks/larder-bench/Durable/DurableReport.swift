/// The result of `larder-bench durable`, as JSON has it.
struct DurableReport: Codable, Sendable {
  var surroundings = Surroundings()
  var settings: Settings
  /// Where the servers kept their data.
  var fileSystem: String
  var contenders: [ComparisonReport.Description] = []
  /// Seconds that it took in all.
  var seconds = 0.0
  /// The part of a core that other processes took during each turn, in order; the kernel's own, which write to the disk, are among them.
  var othersLoads: [Double] = []
  var figures: [MeasuredFigure] = []
  /// The figures that are compared, and have goals.
  var rows: [DurableRow] = []

  struct Settings: Codable, Sendable {
    var repeats: Int
    var isPinned: Bool
    var secondsOfATurn: Double
    var connections: Int
    var pipeline: Int
    var keys: Int
    var keysOfCompaction: Int
    var valueSizeOfCompaction: Int
    var keysOfRestart: Int
    var keysOfDirectory: Int
    var valueSize: Int
    var seed: UInt64
  }

  static let bareAppending = "write and fdatasync, appending"
  static let barePreallocated = "write and fdatasync, preallocated"
  static let cpu = ComparisonReport.cpu
  static let throughput = ComparisonReport.throughput
  static let p50 = ComparisonReport.p50
  static let p99 = ComparisonReport.p99
  static let compactions = "compactions in a turn"
  static let compactedBytes = "bytes compacted a second"
  static let firstGet = "time until the first get"
  static let writtenBytes = "bytes written a byte put"
  static let writtenBytesSeen = "bytes written a byte put, as the system counts"
  static let garbage = "garbage in the log"

  init(_ plan: DurablePlan, fileSystem: String) {
    settings = Settings(
      repeats: plan.repeats, isPinned: plan.processors != nil, secondsOfATurn: plan.turn.seconds,
      connections: DurablePlan.connections, pipeline: DurablePlan.pipeline, keys: plan.keys,
      keysOfCompaction: plan.keysOfCompaction,
      valueSizeOfCompaction: plan.valueSizeOfCompaction, keysOfRestart: plan.keysOfRestart,
      keysOfDirectory: plan.keysOfDirectory,
      valueSize: plan.valueSize, seed: plan.seed)
    self.fileSystem = fileSystem
  }

  mutating func note(_ contender: Contender) {
    let description = ComparisonReport.Description(
      name: contender.name, version: contender.version, commandLine: contender.commandLine)
    if !contenders.contains(where: { $0.commandLine == description.commandLine }) { contenders.append(description) }
  }

  mutating func add(_ work: DurableWork, _ contender: String, _ outcomes: [LoadOutcome]) {
    add(work, Self.throughput, contender, "requests/s", lower: false, outcomes.map(\.rate))
    othersLoads += outcomes.compactMap { $0.server.map { rounded($0.othersLoad) } }
    let seconds = outcomes.compactMap { $0.server?.cpuSeconds }
    let cpu = zip(seconds, outcomes).map { $0 * 1e6 / Double(max(1, $1.tally.answered)) }
    add(work, Self.cpu, contender, "µs", cpu)
    for (name, percentile) in [(Self.p50, 50.0), (Self.p99, 99)] {
      add(work, name, contender, "µs", outcomes.map { $0.microseconds(percentile) })
    }
  }

  mutating func add(_ work: DurableWork, _ turns: [LogTurn]) {
    add(work, Contender.larder, turns.map(\.outcome))
    add(work, Self.compactions, Contender.larder, "compactions", turns.map { Double($0.compactions) })
    add(work, Self.compactedBytes, Contender.larder, "bytes/s", turns.map(\.compactedBytesPerSecond))
  }

  mutating func addBytes(told: [Double], seen: [Double], garbage: [Double]) {
    add(.garbage, Self.writtenBytes, Contender.larder, "bytes", told)
    add(.garbage, Self.writtenBytesSeen, Contender.larder, "bytes", seen)
    add(.garbage, Self.garbage, Contender.larder, "part", garbage)
  }

  mutating func addRestart(_ work: DurableWork, _ contender: String, _ seconds: [Double]) {
    add(work, Self.firstGet, contender, "s", seconds)
  }

  mutating func finish(seconds: Double) {
    self.seconds = rounded(seconds)
    othersLoads.sort()
    rows = DurableRow.all(of: self)
  }

  func figure(_ work: DurableWork, _ figure: String, _ contender: String = Contender.larder) -> MeasuredFigure? {
    figures.first { $0.work == work.rawValue && $0.figure == figure && $0.contender == contender }
  }

  /// Whether compaction was at work when it was to be, and only then.
  var hasComparedCompaction: Bool {
    guard let without = figure(.quiet, Self.compactions), let with = figure(.compacting, Self.compactions) else {
      return false
    }
    return without.highest == 0 && with.lowest > 0
  }

  private mutating func add(
    _ work: DurableWork, _ figure: String, _ contender: String, _ unit: String, lower: Bool = true, _ values: [Double]
  ) {
    guard !values.isEmpty else { return }
    figures.append(MeasuredFigure(work.rawValue, figure, of: contender, unit: unit, isBetterLower: lower, values))
  }
}

/// What is measured of durable stores, as the figures name it.
enum DurableWork: String, Sendable {
  case always = "durable set, 50 × 16"
  case single = "durable set, one client"
  case interval = "set with interval:1s, 50 × 16"
  case get = "get, 50 connections"
  case getPipelined = "get, 50 × 16"
  case quiet = "durable set at a constant rate"
  case compacting = "durable set at a constant rate, while compacting"
  case garbage = "overwriting random keys"
  case restart = "restart after a clean end"
  case restartKilled = "restart after SIGKILL"
}

extension LoadOutcome {
  fileprivate func microseconds(_ percentile: Double) -> Double {
    Double(tally.latencies.valueAtPercentile(percentile)) / 1_000
  }
}
