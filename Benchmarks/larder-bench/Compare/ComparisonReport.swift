/// The result of `larder-bench compare`, as JSON has it.
struct ComparisonReport: Codable, Sendable {
  var surroundings = Surroundings()
  var settings: Settings
  var contenders: [Description]
  /// Seconds that the comparison took in all.
  var seconds = 0.0
  /// Turns that were measured, repeated because other processes took more than a fifth of a core, and kept although they did.
  var turns = 0
  var retakenTurns = 0
  var disturbedTurns = 0
  /// Gets a second, without pipelining, that the best peer answered: what the rates of the latencies are parts of.
  var peakRate = 0.0
  var figures: [MeasuredFigure] = []
  /// Larder with other numbers of workers and stores, as they are named in the figures.
  var workerSetups: [String] = []
  /// The percentiles at `comparedLoad` of that peak, over all rounds.
  var latencies: [String: LatencyReport] = [:]
  var loadCurve: [LoadPoint] = []

  struct Settings: Codable, Sendable {
    var repeats: Int
    /// Whether the generator had a processor to itself.
    var isPinned: Bool
    var secondsOfATurn: Double
    /// The beginning of each turn, which does not count in the latencies.
    var secondsOfWarmUp: Double
    var connections: Int
    var keys: Int
    var valueSize: Int
    var entriesInMemory: Int
    var comparedLoad: Double
    var seed: UInt64
  }

  struct Description: Codable, Sendable {
    var name: String
    var version: String
    var commandLine: String
  }

  struct LoadPoint: Codable, Sendable {
    var contender: String
    var plannedPerSecond: Double
    var answeredPerSecond: Double
    /// Microseconds from the planned time.
    var p50: Double
    var p99: Double
  }

  static let cpu = "server CPU a request"
  static let cpuOfKey = "server CPU a key"
  static let throughput = "throughput"
  static let p50 = "p50 latency"
  static let p99 = "p99 latency"
  static let p999 = "p99.9 latency"
  static let memory = "memory an entry beyond key and value"
  static let loading = "loading"
  static let compared = "get, at a constant rate"

  init(_ plan: ComparisonPlan, _ contenders: [Contender]) {
    settings = Settings(
      repeats: plan.repeats, isPinned: plan.processors != nil, secondsOfATurn: plan.turn.seconds,
      secondsOfWarmUp: plan.warmUp.seconds,
      connections: plan.connections, keys: plan.keys,
      valueSize: plan.valueSize, entriesInMemory: plan.entriesInMemory, comparedLoad: ComparisonPlan.comparedLoad,
      seed: plan.seed)
    self.contenders = contenders.map {
      Description(name: $0.name, version: $0.version, commandLine: $0.commandLine)
    }
  }

  mutating func add(_ work: String, _ contender: String, _ outcomes: [LoadOutcome], keys: Int) {
    func figure(_ figure: String, _ unit: String, lower: Bool = true, _ value: (LoadOutcome) -> Double) {
      figures.append(
        MeasuredFigure(work, figure, of: contender, unit: unit, isBetterLower: lower, outcomes.map(value)))
    }
    let cpu = { (outcome: LoadOutcome) in
      (outcome.server?.cpuSeconds ?? 0) * 1e6 / Double(max(1, outcome.tally.answered))
    }
    figure(Self.cpu, "µs", cpu)
    if keys > 1 { figure(Self.cpuOfKey, "µs") { cpu($0) / Double(keys) } }
    figure(Self.throughput, "requests/s", lower: false) { $0.rate }
    figure(Self.p50, "µs") { Double($0.tally.latencies.valueAtPercentile(50)) / 1_000 }
    figure(Self.p99, "µs") { Double($0.tally.latencies.valueAtPercentile(99)) / 1_000 }
  }

  mutating func addLatency(_ contender: String, _ tally: Tally, _ outcomes: [LoadOutcome]) {
    latencies[contender] = LatencyReport(tally.latencies)
    for (name, percentile) in [(Self.p50, 50), (Self.p99, 99), (Self.p999, 99.9)] {
      figures.append(
        MeasuredFigure(
          Self.compared, name, of: contender, unit: "µs", isBetterLower: true,
          outcomes.map { Double($0.tally.latencies.valueAtPercentile(percentile)) / 1_000 }))
    }
  }

  /// The medians of some turns at one rate.
  mutating func addLoadPoint(_ contender: String, planned: Double, _ outcomes: [LoadOutcome]) {
    func median(_ value: (LoadOutcome) -> Double) -> Double {
      let sorted = outcomes.map(value).sorted()
      return sorted.isEmpty ? 0 : rounded(sorted[sorted.count / 2])
    }
    loadCurve.append(
      LoadPoint(
        contender: contender, plannedPerSecond: rounded(planned), answeredPerSecond: median(\.rate),
        p50: median { Double($0.tally.latencies.valueAtPercentile(50)) / 1_000 },
        p99: median { Double($0.tally.latencies.valueAtPercentile(99)) / 1_000 }))
  }

  mutating func addMemory(_ contender: String, beyondKeyAndValue bytes: Double) {
    figures.append(
      MeasuredFigure(Self.loading, Self.memory, of: contender, unit: "bytes", isBetterLower: true, [bytes]))
  }

  func figure(_ work: String, _ figure: String, _ contender: String) -> MeasuredFigure? {
    figures.first { $0.work == work && $0.figure == figure && $0.contender == contender }
  }

  /// The best of the peers, which are all but Larder and the echo.
  func bestPeer(_ work: String, _ figure: String) -> MeasuredFigure? {
    let names = contenders.map(\.name).filter { $0 != Contender.larder && $0 != Contender.echo }
    let peers = figures.filter { $0.work == work && $0.figure == figure && names.contains($0.contender) }
    return peers.first?.isBetterLower == true
      ? peers.min { $0.median < $1.median } : peers.max { $0.median < $1.median }
  }

  private static let peakWork = ComparisonPlan().works[0].name
  var bestPeerPeak: Double? { bestPeer(Self.peakWork, Self.throughput)?.median }
  var larderPeak: Double { figure(Self.peakWork, Self.throughput, Contender.larder)?.median ?? 1 }
}
