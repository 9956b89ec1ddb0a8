/// The result of `larder-bench durable`, as written to JSON.
struct DurableReport: Codable, Sendable {
  private var surroundings = Surroundings()
  private var settings: Settings
  /// The file system of the servers' data.
  private var fileSystem: String
  private(set) var contenders: [ComparisonReport.Description] = []
  /// The total duration, in seconds.
  private var seconds = 0.0
  /// The load by other processes in each turn, in cores, sorted. It includes the kernel threads that write to the disk.
  private var othersLoads: [Double] = []
  private var figures: [MeasuredFigure] = []
  /// The figures that are compared or have goals.
  private(set) var rows: [GoalRow] = []

  private struct Settings: Codable, Sendable {
    private let repeats: Int
    private let isPinned: Bool
    private let secondsOfATurn: Double
    private let connections: Int
    private let pipeline: Int
    private let keys: Int
    private let keysOfCompaction: Int
    private let valueSizeOfCompaction: Int
    private let keysOfRestart: Int
    private let keysOfDirectory: Int
    private let valueSize: Int
    private let seed: UInt64

    init(_ plan: DurablePlan) {
      repeats = plan.repeats
      isPinned = plan.processors != nil
      secondsOfATurn = plan.turn.seconds
      connections = DurablePlan.connections
      pipeline = DurablePlan.pipeline
      keys = plan.keys
      keysOfCompaction = plan.keysOfCompaction
      valueSizeOfCompaction = plan.valueSizeOfCompaction
      keysOfRestart = plan.keysOfRestart
      keysOfDirectory = plan.keysOfDirectory
      valueSize = plan.valueSize
      seed = plan.seed
    }

    var text: String {
      """
      50 × 16 means \(connections) connections over Unix sockets with \(pipeline) requests in flight on each. There are \
      \(grouped(Double(keys))) keys of \(BenchKey.size) bytes with values of \(valueSize) bytes, and one generator \
      thread\(isPinned ? " with its own processor" : ""). In each of \(repeats) rounds, every contender had a turn of \
      \(decimal(secondsOfATurn, 2)) s. Cells show the median of the rounds (lowest–highest).
      """
    }

    func compactionRemark(setsPerSecond: Double) -> String {
      "- Compaction: \(grouped(setsPerSecond)) sets per second of random keys among \(grouped(Double(keysOfCompaction))), "
        + "whose old values of \(grouped(Double(valueSizeOfCompaction))) bytes make much garbage."
    }

    var restartRemark: String {
      "- Restart: from the start of the process to the reply to a get, with \(grouped(Double(keysOfRestart))) "
        + "keys, all processors, and the files in the page cache. One percent of the keys was written just before the stop."
    }

    var directoryRemark: String { "- The directory store has \(grouped(Double(keysOfDirectory))) keys." }
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
  static let writtenBytesObserved = "bytes written a byte put, as the system counts"
  static let garbage = "garbage in the log"

  init(_ plan: DurablePlan, fileSystem: String) {
    settings = Settings(plan)
    self.fileSystem = fileSystem
  }

  mutating func addContender(_ contender: Contender) {
    guard !contenders.contains(where: { $0.commandLine == contender.commandLine }) else { return }
    contenders.append(ComparisonReport.Description(contender))
  }

  mutating func add(_ work: DurableWork, _ contender: String, _ outcomes: [LoadOutcome]) {
    add(work, Self.throughput, contender, "requests/s", lower: false, outcomes.map(\.rate))
    othersLoads += outcomes.compactMap { $0.server.map { rounded($0.othersLoad) } }
    let cpu = outcomes.compactMap { outcome in
      outcome.server?.cpuMicroseconds(perRequestOf: outcome.tally.answered)
    }
    add(work, Self.cpu, contender, "µs", cpu)
    for (name, percentile) in [(Self.p50, 50.0), (Self.p99, 99)] {
      add(work, name, contender, "µs", outcomes.map { $0.tally.microseconds(percentile) })
    }
  }

  mutating func add(_ work: DurableWork, _ turns: [LogTurn]) {
    add(work, Contender.larder, turns.map(\.outcome))
    add(work, Self.compactions, Contender.larder, "compactions", turns.map { Double($0.compactions) })
    add(work, Self.compactedBytes, Contender.larder, "bytes/s", turns.map(\.compactedBytesPerSecond))
  }

  mutating func addBytes(reported: [Double], observed: [Double], garbage: [Double]) {
    add(.garbage, Self.writtenBytes, Contender.larder, "bytes", reported)
    add(.garbage, Self.writtenBytesObserved, Contender.larder, "bytes", observed)
    add(.garbage, Self.garbage, Contender.larder, "part", garbage)
  }

  mutating func addRestart(_ work: DurableWork, _ contender: String, _ seconds: [Double]) {
    add(work, Self.firstGet, contender, "s", seconds)
  }

  mutating func finish(seconds: Double) {
    self.seconds = rounded(seconds)
    othersLoads.sort()
    rows = GoalRow.all(of: self)
  }

  func figure(_ work: DurableWork, _ figure: String, _ contender: String = Contender.larder) -> MeasuredFigure? {
    figures.first { $0.work == work.name && $0.figure == figure && $0.contender == contender }
  }

  /// Whether compaction ran in all turns that should include it, and in no others.
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
    figures.append(MeasuredFigure(work.name, figure, of: contender, unit: unit, isBetterLower: lower, values))
  }
}

/// A work of the durable benchmark.
enum DurableWork: Hashable, Sendable {
  case always
  /// That many clients that wait for each reply.
  case clients(Int)
  case interval
  case get
  case getPipelined
  case quiet
  case compacting
  case garbage
  case restart
  case restartKilled

  /// The name in figures.
  var name: String {
    switch self {
    case .always: "durable set, 50 × 16"
    case .clients(1): "durable set, one client"
    case .clients(let count): "durable set, \(count) clients"
    case .interval: "set with interval:1s, 50 × 16"
    case .get: "get, 50 connections"
    case .getPipelined: "get, 50 × 16"
    case .quiet: "durable set at a constant rate"
    case .compacting: "durable set at a constant rate, while compacting"
    case .garbage: "overwriting random keys"
    case .restart: "restart after a clean end"
    case .restartKilled: "restart after SIGKILL"
    }
  }
}

extension DurableReport {
  /// The report as Markdown.
  var markdown: String {
    let contenders = contenders.map(\.markdown).joined(separator: "\n")
    return [heading, table, remarks, "## Contenders\n\n" + contenders].joined(separator: "\n\n") + "\n"
  }

  private var heading: String {
    """
    # Durable stores

    \(surroundings.markdown(fileSystem: fileSystem)) · \(Int(seconds)) s in all

    \(settings.text) \(disturbance)
    """
  }

  private var disturbance: String {
    guard let maximum = othersLoads.last else { return "" }
    let median = othersLoads[othersLoads.count / 2]
    // The kernel's work for the disk takes far less than that.
    let warning = median > 0.5 ? " **That is too much for meaningful figures.**" : ""
    return
      "Other processes, including kernel threads, used \(percent(median)) of a core in the median turn and at most "
      + "\(percent(maximum)).\(warning)"
  }

  private var table: String {
    rows.table { anchor, larder in anchor.contender == larder.contender ? "not compacting" : anchor.contender }
  }

  private var remarks: String {
    var lines = [
      "- Redis syncs its append-only file as its command line says, and rewrites it only before the restarts, because it "
        + "reads a rewritten file faster. Larder compacts during all works.",
      "- *\(Contender.syncedEcho)* is `bench-echo --sync`, one thread in C: it reads all clients that have sent something, "
        + "appends that to a preallocated file, calls fdatasync, and sends it back.",
      "- *write and fdatasync* is one thread that writes as many bytes as the log's record of a set, either appending to "
        + "a growing file or into preallocated space, as the log does.",
    ]
    if let text = compactionRemark { lines.append(text) }
    if let garbage = figure(.garbage, Self.garbage) {
      lines.append(
        "- Bytes written: the bytes that the log wrote, including compaction, divided by the bytes of keys and values put; "
          + "at full speed, while garbage was \(garbage.cell) of the log. The system counts whole pages, and each page every "
          + "time that it is written to the disk."
      )
    }
    if figure(.restart, Self.firstGet) != nil { lines.append(settings.restartRemark) }
    if figure(.clients(1), Self.throughput, Contender.directoryStore) != nil { lines.append(settings.directoryRemark) }
    return lines.joined(separator: "\n")
  }

  private var compactionRemark: String? {
    guard let rate = figure(.quiet, Self.throughput), let without = figure(.quiet, Self.compactions),
      let with = figure(.compacting, Self.compactions), let bytes = figure(.compacting, Self.compactedBytes)
    else { return nil }
    let outcome = hasComparedCompaction ? "" : " **So there is nothing to compare; try longer turns.**"
    return settings.compactionRemark(setsPerSecond: rate.median)
      + " Latencies count from the scheduled times. Turns without compaction had at most \(Int(without.highest)) "
      + "compactions; turns with it had at least \(Int(with.lowest)), which rewrote "
      + "\(decimal(bytes.median / 1e6, 1)) MB per second.\(outcome)"
  }
}
