/// A comparison, which runs the same work on every contender in turns, for several rounds.
struct ServerComparison {
  private let plan: ComparisonPlan
  private let contenders: [Contender]
  /// Larder with other numbers of workers and stores.
  private let workerSetups: [Contender]
  private let runner: BenchRunner
  private var report = BenchReport("compare", title: "Larder and its peers")
  /// The best peer's gets per second without pipelining, to which the rates of the latencies are relative.
  private var peakRate = 0.0
  /// The latencies of each contender's turns at a constant rate, all together.
  private var latencies: [LatencyReport] = []
  /// The numbers of turns measured, repeated because of other processes, and kept in spite of them.
  private var (measured, repeated, disturbed) = (0, 0, 0)

  static let cpuOfKey = Quantity("server CPU a key", "µs")
  static let memory = Quantity("memory an entry beyond key and value", "bytes")
  static let loading = "loading"
  static let compared = "get, at a constant rate"

  init(_ plan: ComparisonPlan, _ contenders: [Contender], _ runner: BenchRunner) throws {
    self.plan = plan
    self.contenders = contenders
    self.runner = runner
    workerSetups = try ComparisonPlan.workerSetups.map { try .larder(workers: $0.workers, stores: $0.stores) }
    for contender in contenders { report.add(contender) }
  }

  mutating func run() throws -> BenchReport {
    try runner.onServers { try measureAll() }
    report.finish([], sections: sections)
    return report
  }

  private mutating func measureAll() throws {
    for contender in contenders { try runner.check(contender) }
    try measureMemory()
    let servers = try start(contenders)
    try measure(ComparisonPlan.works, servers)
    let work = ComparisonPlan.works[0].name
    peakRate = (bestPeer(work, .throughput) ?? report.figures.find(work, .throughput))?.median ?? 1
    try measureLatency(servers)
    try measureLoadCurve(servers)
    runner.discard(servers)

    let setups = try start(workerSetups)
    defer { runner.discard(setups) }
    try measure(ComparisonPlan.workerWorks, setups)
  }

  private func start(_ contenders: [Contender]) throws -> [RunningServer] {
    try contenders.map { try runner.start($0) { try runner.load("get", $0) } }
  }

  private mutating func measure(_ works: [ComparisonPlan.Work], _ servers: [RunningServer]) throws {
    let turns = try runner.takeTurns(at: works, servers) {
      "\($0.name) on \($1.contender.name)"
    } _: { work, server in
      try supports(work, server) ? try runLoad(load(work, server), server) : nil
    }
    for (work, turns) in zip(works, turns) {
      let keys = Double(try Workload(work.workload).keysPerRequest)
      for (server, turns) in zip(servers, turns) {
        let (name, outcomes) = (server.contender.name, turns.compactMap(\.self))
        guard !outcomes.isEmpty else { continue }
        report.add(work.name, name, outcomes)
        guard keys > 1 else { continue }
        let cpu = outcomes.compactMap { $0.server?.cpuMicroseconds(perRequestOf: $0.tally.answered) }
        report.figures.add(work.name, Self.cpuOfKey, of: name, cpu.map { $0 / keys })
      }
    }
  }

  /// Measures latency percentiles at the same rate for all servers, below every peak.
  private mutating func measureLatency(_ servers: [RunningServer]) throws {
    let rounds = plan.repeats * ComparisonPlan.latencyTurns
    let turns = try runner.takeTurns(at: [Self.compared], servers, rounds: rounds) {
      "\($0) on \($1.contender.name)"
    } _: {
      var load = try runner.load("get", $1)
      load.rate = comparedRate
      load.duration = plan.turn / ComparisonPlan.latencyTurns
      load.warmUp = min(load.warmUp, load.duration / 5)
      return try runLoad(load, $1)
    }
    for (server, outcomes) in zip(servers, turns[0]) {
      let name = server.contender.name
      var tally = Tally()
      for outcome in outcomes { tally.add(outcome.tally) }
      let latency = tally.latencyReport
      latencies.append(latency)
      report.curves.append(Curve(plot: Plots.percentiles, contender: name, points: latency.plotPoints))
      for (quantity, percentile) in [(Quantity.p50, 50), (.p99, 99), (.p999, 99.9)] {
        report.figures.add(Self.compared, quantity, of: name, outcomes.map { $0.tally.microseconds(percentile) })
      }
    }
  }

  /// Measures latency at rates up to and beyond saturation.
  private mutating func measureLoadCurve(_ servers: [RunningServer]) throws {
    func median(_ outcomes: [LoadOutcome], _ value: (LoadOutcome) -> Double) -> Double {
      rounded(outcomes.map(value).sorted()[outcomes.count / 2])
    }
    let turns = try runner.takeTurns(at: plan.loadSteps, servers, rounds: min(3, plan.repeats)) {
      "load curve, \(percent($0)) of the best peer's peak: \($1.contender.name)"
    } _: {
      var load = try runner.load("get", $1)
      load.rate = peakRate * $0
      load.duration = plan.turn / 2
      return try runLoad(load, $1)
    }
    for (index, server) in servers.enumerated() {
      // Thousands of requests scheduled per second, p99, p50, and thousands of requests answered.
      let points = zip(plan.loadSteps, turns).map { step, turns in
        let outcomes = turns[index]
        return [
          rounded(peakRate * step / 1_000), median(outcomes) { $0.tally.microseconds(99) },
          median(outcomes) { $0.tally.microseconds(50) }, median(outcomes) { $0.rate / 1_000 },
        ]
      }
      report.curves.append(Curve(plot: Plots.load, contender: server.contender.name, points: points))
    }
  }

  /// Measures the memory per entry beyond key and value as growth of the resident set. The first entries do not count,
  /// because they include one-time allocations.
  private mutating func measureMemory() throws {
    for contender in contenders where contender.protocolName != .echo {
      runner.show("memory of \(plan.entriesInMemory) entries: \(contender.name)")
      let server = try runner.start(contender)
      defer { runner.discard([server]) }
      var load = try runner.load("get", server)
      let first = plan.entriesInMemory / 100
      load.keys = first
      try load.loadKeys()
      let before = server.probe.sample()?.residentBytes ?? 0
      load.keys = first + plan.entriesInMemory
      try load.loadKeys(from: first)
      let after = server.probe.sample()?.residentBytes ?? 0
      let each = Double(after - before) / Double(plan.entriesInMemory)
      report.figures.add(
        Self.loading, Self.memory, of: contender.name, [each - Double(BenchKey.size + plan.valueSize)])
    }
  }

  private func load(_ work: ComparisonPlan.Work, _ server: RunningServer) throws -> LoadPlan {
    var load = try runner.load(work.workload, server)
    load.pipeline = work.pipeline
    return load
  }

  /// Runs a load, and repeats it if other processes used much CPU time meanwhile, unless that happens all the time.
  private mutating func runLoad(_ load: LoadPlan, _ server: RunningServer) throws -> LoadOutcome {
    var outcome = try runner.run(load, server)
    measured += 1
    while let use = outcome.server, use.othersLoad > ServerUse.disturbanceThreshold {
      guard Double(repeated) < 10 + 0.25 * Double(measured) else {
        disturbed += 1
        break
      }
      repeated += 1
      outcome = try runner.run(load, server)
    }
    return outcome
  }

  private func supports(_ work: ComparisonPlan.Work, _ server: RunningServer) throws -> Bool {
    let operations = try Workload(work.workload).operations
    switch server.contender.protocolName {
    case .larder: return true
    case .resp, .memcached: return operations.isDisjoint(with: [.page, .scan])
    case .echo: return operations.isSubset(of: [.get, .put])
    }
  }

  private func bestPeer(_ work: String, _ quantity: Quantity) -> MeasuredFigure? {
    report.figures.bestPeer(work, quantity, among: contenders.map(\.name))
  }

  /// The requests per second at which latencies are compared.
  private var comparedRate: Double { peakRate * ComparisonPlan.comparedLoad }
}

// MARK: The report

extension ServerComparison {
  private var sections: [String] {
    let works = ComparisonPlan.works.map(\.name)
    return [
      setting,
      table("Server CPU per request, in µs", .cpu, works),
      table("Server CPU per key, in µs", Self.cpuOfKey, works),
      table("Requests per second in a closed loop", .throughput, works),
      latencyTable,
      workerTable,
      table("Memory per entry beyond key and value, in bytes", Self.memory, [Self.loading]),
    ]
  }

  private var setting: String {
    """
    \(plan.connections) connections over Unix sockets, \(grouped(Double(plan.keys))) uniform keys of \(BenchKey.size) \
    bytes, values of \(plan.valueSize) bytes, one generator thread\(runner.isPinned ? " with its own processor" : ""). \
    In each of \(plan.repeats) rounds, every contender had a turn of \(decimal(plan.turn.seconds, 2)) s at each work. \
    Cells show the median of the rounds (lowest–highest). Of \(measured) turns, \(repeated) were repeated because other \
    processes used more than \(percent(ServerUse.disturbanceThreshold)) of a core; \(disturbed) were kept in spite of that.
    """
  }

  private func table(_ title: String, _ quantity: Quantity, _ works: [String]) -> String {
    let names = contenders.map(\.name)
    var rows = [["Work"] + names + ["Larder ÷ best peer", "over RESP ÷ best peer", "Larder ÷ echo"]]
    for work in works {
      guard let larder = report.figures.find(work, quantity) else { continue }
      rows.append(
        [work] + names.map { cell(work, quantity, $0) } + [
          ratio(larder, bestPeer(work, quantity)),
          report.figures.find(work, quantity, of: Contender.larderOverRESP).map { ratio($0, bestPeer(work, quantity)) }
            ?? "–",
          ratio(larder, report.figures.find(work, quantity, of: Contender.echo)),
        ])
    }
    return "## \(title)\n\n" + MarkdownTable(rows).text
  }

  private var latencyTable: String {
    let rows = zip(contenders.map(\.name), latencies).map { name, latency in
      [name] + latency.cells + [cell(Self.compared, .p99, name)]
    }
    return """
      ## Latency of get in µs, at \(percent(ComparisonPlan.comparedLoad)) of the best peer's peak: \
      \(grouped(comparedRate)) requests per second

      \(MarkdownTable([["Contender"] + LatencyReport.columns + ["p99 by turn"]] + rows).text)

      Latency counts from the scheduled time of each request, so that stalls are not hidden. The columns cover all turns \
      together, except the last one, which shows the median of the turns: a pause of the virtual machine for some \
      milliseconds raises the maximum of every turn, and the p99 of some.
      """
  }

  /// Server CPU per request and throughput with one and with two workers.
  private var workerTable: String {
    let names = workerSetups.map(\.name)
    var rows = [["Work"] + names.map { "\($0): µs" } + names.map { "\($0): requests/s" }]
    for work in ComparisonPlan.workerWorks.map(\.name) {
      rows.append([work] + names.map { cell(work, .cpu, $0) } + names.map { cell(work, .throughput, $0) })
    }
    return "## More workers: server CPU per request, and requests per second\n\n" + MarkdownTable(rows).text
  }

  private func cell(_ work: String, _ quantity: Quantity, _ contender: String) -> String {
    report.figures.find(work, quantity, of: contender)?.cell() ?? "–"
  }

  private func ratio(_ one: MeasuredFigure, _ other: MeasuredFigure?) -> String {
    guard let other, other.median != 0 else { return "–" }
    let name = other.contender == Contender.echo ? "" : " (\(other.contender))"
    return decimal(one.median / other.median, 2) + name
  }
}
