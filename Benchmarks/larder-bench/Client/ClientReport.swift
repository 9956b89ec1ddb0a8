/// The result of `larder-bench client`, as written to JSON.
struct ClientReport: Codable, Sendable {
  private var surroundings = Surroundings()
  private var rounds: Int
  private var keys: Int
  private var valueSize: Int
  private(set) var figures: [MeasuredFigure] = []

  static let rate = "calls"
  static let cpu = "client CPU a call"
  static let ratio = "calls ÷ those of as many C connections"
  /// The goal for that ratio, and the numbers of tasks that it applies to.
  static let leastRatio = 0.8
  static let tasksWithGoal = 2...8
  static let delay = "a change arrives after"
  static let longestDelay = "the slowest of 1,000 changes arrives after"

  static let hit = "a hit"
  static let cacheDelay = "another client's change is seen after, p50"
  static let longCacheDelay = "another client's change is seen after, p99"

  init(rounds: Int, keys: Int, valueSize: Int) {
    self.rounds = rounds
    self.keys = keys
    self.valueSize = valueSize
  }

  mutating func add(_ row: ClientRow, _ outcomes: [ClientBench.Outcome]) {
    figures.append(
      MeasuredFigure(
        row.work, Self.rate, of: row.contender, unit: "calls/s", isBetterLower: false, outcomes.map(\.callsPerSecond)))
    figures.append(
      MeasuredFigure(
        row.work, Self.cpu, of: row.contender, unit: "µs", isBetterLower: true, outcomes.map(\.cpuMicrosecondsPerCall)))
  }

  /// Adds the ratios of the library's turns to those of as many C connections in the same rounds.
  mutating func add(ratios: [Double], tasks: Int) {
    figures.append(
      MeasuredFigure(
        ClientRow.tasks(tasks).work, Self.ratio, of: Contender.larder, unit: "×", isBetterLower: false, ratios))
  }

  mutating func add(_ outcomes: [ObservationBench.Outcome]) {
    for (figure, values) in [(Self.delay, outcomes.map(\.median)), (Self.longestDelay, outcomes.map(\.longest))] {
      figures.append(
        MeasuredFigure(
          "observe \(ObservationBench.documentCount) documents", figure, of: Contender.larder, unit: "µs",
          isBetterLower: true, values))
    }
  }

  mutating func add(_ outcomes: [LiveCacheBench.Outcome]) {
    func add(_ work: String, _ figure: String, _ unit: String, _ values: [Double]) {
      figures.append(
        MeasuredFigure(work, figure, of: Contender.larder, unit: unit, isBetterLower: true, values))
    }
    add("InMemoryDataSource", Self.hit, "ns", outcomes.map(\.bareHit))
    add("LiveCacheRepository", Self.hit, "ns", outcomes.map(\.hit))
    add("LiveCacheRepository", Self.cacheDelay, "µs", outcomes.map(\.medianDelay))
    add("LiveCacheRepository", Self.longCacheDelay, "µs", outcomes.map(\.p99Delay))
  }

  var markdown: String {
    let rates = figures.filter { $0.figure == Self.rate }
    let rows = rates.map { rate in
      let cpu = figures.first { $0.contender == rate.contender && $0.work == rate.work && $0.figure == Self.cpu }
      return "| \(rate.contender) | \(rate.work) | \(rate.cell) | \(cpu?.cell ?? "–") |"
    }
    let comparisons = figures.filter { $0.figure == Self.ratio }.map { ratio in
      let tasks = Int(ratio.work.prefix { $0.isNumber }) ?? 0
      let (goal, reached) =
        Self.tasksWithGoal.contains(tasks)
        ? ("≥ \(decimal(Self.leastRatio, 2)) ×", ratio.median >= Self.leastRatio ? "yes" : "**no**") : ("–", "–")
      return [
        "\(tasks)", calls(Contender.larder, .tasks(tasks)), calls(BareClient.program, .connections(tasks)),
        "\(decimal(ratio.median, 2)) (\(decimal(ratio.lowest, 2))–\(decimal(ratio.highest, 2)))", goal, reached,
      ]
    }
    let comparison = MarkdownTable(
      [["Tasks", "Larder, calls per second", "C, calls per second", "Larder ÷ C", "Goal", "Reached"]] + comparisons
    ).text
    let delays = figures.filter { [Self.delay, Self.longestDelay].contains($0.figure) }.map {
      "| \($0.contender) | \($0.work) | \($0.figure) | \($0.cell) |"
    }
    let cached = figures.filter { [Self.hit, Self.cacheDelay, Self.longCacheDelay].contains($0.figure) }.map {
      "| \($0.work) | \($0.figure) | \($0.cell) | \($0.unit) |"
    }
    return """
      # The client library

      \(surroundings.markdown())

      Gets of \(grouped(Double(keys))) keys with values of \(valueSize) bytes over one Unix connection. Cells show the median of \
      \(rounds) rounds (lowest–highest), in which the clients take turns. CPU is that of the whole client process.

      | Client | Calls | Calls per second | Client CPU per call, in µs |
      |---|---|---:|---:|
      \(rows.joined(separator: "\n"))

      The same server's connections, as many as tasks, each with one call at a time from one thread in C \
      (`\(BareClient.program)`, which takes its turns right after those of the tasks). Ratios are of turns in the same round.

      \(comparison)

      One document after the other is written while a task observes \(ObservationBench.documentCount) that match. Times are from the beginning \
      of a put to its change.

      | Client | Work | | µs |
      |---|---|---|---:|
      \(delays.joined(separator: "\n"))

      One task reads \(LiveCacheBench.valueCount) values of 100 bytes from a cache. Then another client changes them one by one, a \
      millisecond apart, while the task reads on after pauses of \(Int(LiveCacheBench.pause / .microseconds(1))) µs. Times are from the beginning of a put to the first read that returns the \
      new value.

      | Source | | | |
      |---|---|---:|---|
      \(cached.joined(separator: "\n"))

      """
  }

  /// The calls a second of a row, as a cell.
  private func calls(_ contender: String, _ row: ClientRow) -> String {
    figures.first { $0.contender == contender && $0.work == row.work && $0.figure == Self.rate }?.cell ?? "–"
  }
}

/// A row of the table: a client and its concurrency.
enum ClientRow: Equatable {
  case tasks(Int)
  case connections(Int)
  case redisBenchmark(pipeline: Int)

  var contender: String {
    switch self {
    case .tasks: Contender.larder
    case .connections: BareClient.program
    case .redisBenchmark: "redis-benchmark"
    }
  }

  var work: String {
    switch self {
    case .tasks(let count): count == 1 ? "1 task, one call at a time" : "\(count) tasks"
    case .connections(let count): count == 1 ? "1 connection, one call at a time" : "\(count) connections"
    case .redisBenchmark(let pipeline): pipeline == 1 ? "one call at a time" : "\(pipeline) pipelined"
    }
  }
}
