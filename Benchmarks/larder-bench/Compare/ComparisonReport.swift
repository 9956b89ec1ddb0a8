/// The result of `larder-bench compare`, as written to JSON.
struct ComparisonReport: Codable, Sendable {
  private var surroundings = Surroundings()
  private var settings: Settings
  private var contenders: [Description]
  /// The total duration, in seconds.
  private var seconds = 0.0
  /// The numbers of turns measured, repeated because other processes used more than a fifth of a core, and kept in
  /// spite of that.
  private var turns = 0
  private var retakenTurns = 0
  private var disturbedTurns = 0
  /// The best peer's gets per second without pipelining, to which the rates of the latencies are relative.
  private var peakRate = 0.0
  private var figures: [MeasuredFigure] = []
  /// The names, in figures, of Larder with other numbers of workers and stores.
  private var workerSetups: [String]
  /// The percentiles at the fraction `comparedLoad` of that peak, over all rounds.
  private(set) var latencies: [String: LatencyReport] = [:]
  private(set) var loadCurve: [LoadPoint] = []

  private struct Settings: Codable, Sendable {
    let repeats: Int
    /// Whether the generator had its own processor.
    private let isPinned: Bool
    private let secondsOfATurn: Double
    /// The start of each turn, in which latencies are ignored.
    private let secondsOfWarmUp: Double
    private let connections: Int
    private let keys: Int
    private let valueSize: Int
    private let entriesInMemory: Int
    let comparedLoad: Double
    private let seed: UInt64

    init(_ plan: ComparisonPlan) {
      repeats = plan.repeats
      isPinned = plan.processors != nil
      secondsOfATurn = plan.turn.seconds
      secondsOfWarmUp = plan.warmUp.seconds
      connections = plan.connections
      keys = plan.keys
      valueSize = plan.valueSize
      entriesInMemory = plan.entriesInMemory
      comparedLoad = ComparisonPlan.comparedLoad
      seed = plan.seed
    }

    var text: String {
      """
      \(connections) connections over Unix sockets, \(grouped(Double(keys))) uniform keys of \(BenchKey.size) \
      bytes, values of \(valueSize) bytes, one generator thread\(isPinned ? " with its own processor" : ""). \
      In each of \(repeats) rounds, every contender had a turn of \(decimal(secondsOfATurn, 2)) s at each work. \
      Cells show the median of the rounds (lowest–highest).
      """
    }
  }

  /// A contender as a reader needs it for repeating the measurement.
  struct Description: Codable, Sendable {
    let name: String
    private let version: String
    let commandLine: String

    init(_ contender: Contender) {
      name = contender.name
      version = contender.version
      commandLine = contender.commandLine
    }

    var markdown: String { "- \(name)\(version.isEmpty ? "" : " (\(version))"): `\(commandLine)`" }
  }

  /// The medians of turns at one rate.
  struct LoadPoint: Codable, Sendable {
    let contender: String
    private let plannedPerSecond: Double
    private let answeredPerSecond: Double
    /// Microseconds from the scheduled time.
    private let p50: Double
    private let p99: Double

    init(_ contender: String, planned: Double, _ outcomes: [LoadOutcome]) {
      func median(_ value: (LoadOutcome) -> Double) -> Double {
        let sorted = outcomes.map(value).sorted()
        return sorted.isEmpty ? 0 : rounded(sorted[sorted.count / 2])
      }
      self.contender = contender
      plannedPerSecond = rounded(planned)
      answeredPerSecond = median(\.rate)
      p50 = median { $0.tally.microseconds(50) }
      p99 = median { $0.tally.microseconds(99) }
    }

    /// The 99th percentile by scheduled rate, even where that rate was not reached.
    var plotPoint: (x: Double, y: Double) { (plannedPerSecond / 1_000, p99) }
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

  /// - Parameter workerSetups: Larder with other numbers of workers and stores.
  init(_ plan: ComparisonPlan, _ contenders: [Contender], workerSetups: [Contender]) {
    settings = Settings(plan)
    self.contenders = contenders.map(Description.init)
    self.workerSetups = workerSetups.map(\.name)
  }

  mutating func add(_ work: String, _ contender: String, _ outcomes: [LoadOutcome], keys: Int) {
    func figure(_ figure: String, _ unit: String, lower: Bool = true, _ value: (LoadOutcome) -> Double) {
      figures.append(
        MeasuredFigure(work, figure, of: contender, unit: unit, isBetterLower: lower, outcomes.map(value)))
    }
    let cpu = { (outcome: LoadOutcome) in
      outcome.server?.cpuMicroseconds(perRequestOf: outcome.tally.answered) ?? 0
    }
    figure(Self.cpu, "µs", cpu)
    if keys > 1 { figure(Self.cpuOfKey, "µs") { cpu($0) / Double(keys) } }
    figure(Self.throughput, "requests/s", lower: false) { $0.rate }
    figure(Self.p50, "µs") { $0.tally.microseconds(50) }
    figure(Self.p99, "µs") { $0.tally.microseconds(99) }
  }

  mutating func addLatency(_ contender: String, _ tally: Tally, _ outcomes: [LoadOutcome]) {
    latencies[contender] = tally.latencyReport
    for (name, percentile) in [(Self.p50, 50), (Self.p99, 99), (Self.p999, 99.9)] {
      figures.append(
        MeasuredFigure(
          Self.compared, name, of: contender, unit: "µs", isBetterLower: true,
          outcomes.map { $0.tally.microseconds(percentile) }))
    }
  }

  /// Adds the medians of turns at one rate.
  mutating func addLoadPoint(_ contender: String, planned: Double, _ outcomes: [LoadOutcome]) {
    loadCurve.append(LoadPoint(contender, planned: planned, outcomes))
  }

  mutating func addMemory(_ contender: String, beyondKeyAndValue bytes: Double) {
    figures.append(
      MeasuredFigure(Self.loading, Self.memory, of: contender, unit: "bytes", isBetterLower: true, [bytes]))
  }

  func figure(_ work: String, _ figure: String, _ contender: String) -> MeasuredFigure? {
    figures.first { $0.work == work && $0.figure == figure && $0.contender == contender }
  }

  /// Returns the figure of the best peer, that is, of any contender except Larder and the echo.
  func bestPeer(_ work: String, _ figure: String) -> MeasuredFigure? {
    let names = contenderNames.filter { $0 != Contender.larder && $0 != Contender.echo }
    let peers = figures.filter { $0.work == work && $0.figure == figure && names.contains($0.contender) }
    return peers.first?.isBetterLower == true
      ? peers.min { $0.median < $1.median } : peers.max { $0.median < $1.median }
  }

  /// Determines the peak from the throughputs measured so far, and returns it. Without peers, it is Larder's own.
  mutating func determinePeakRate() -> Double {
    let work = ComparisonPlan().works[0].name
    peakRate =
      bestPeer(work, Self.throughput)?.median ?? figure(work, Self.throughput, Contender.larder)?.median ?? 1
    return peakRate
  }

  mutating func finish(turns: Int, retaken: Int, disturbed: Int, seconds: Double) {
    (self.turns, retakenTurns, disturbedTurns) = (turns, retaken, disturbed)
    self.seconds = rounded(seconds)
  }

  var contenderNames: [String] { contenders.map(\.name) }

  /// The number of rounds.
  var rounds: Int { settings.repeats }

  /// The requests per second at which latencies are compared.
  var comparedRate: Double { peakRate * settings.comparedLoad }
}

extension ComparisonReport {
  /// The report as Markdown.
  var markdown: String {
    let works = distinct(figures.filter { $0.figure == Self.cpu }.map(\.work))
    return [
      heading,
      table("Server CPU per request, in µs", Self.cpu, works),
      table("Server CPU per key, in µs", Self.cpuOfKey, works),
      table("Requests per second in a closed loop", Self.throughput, works),
      latencyTable,
      workerTable,
      table("Memory per entry beyond key and value, in bytes", Self.memory, [Self.loading]),
      contenderList,
    ].joined(separator: "\n\n") + "\n"
  }

  private var heading: String {
    """
    # Larder and its peers

    \(surroundings.markdown()) · \(Int(seconds)) s in all

    \(settings.text) Of \(turns) turns, \(retakenTurns) were repeated because other processes used more than \(percent(ServerUse.disturbanceThreshold)) of a core; \(disturbedTurns) were kept in spite of that.
    """
  }

  private func table(_ title: String, _ name: String, _ works: [String]) -> String {
    let names = contenderNames
    var rows = [["Work"] + names + ["Larder ÷ best peer", "Larder ÷ echo"]]
    for work in works {
      guard let larder = figure(work, name, Contender.larder) else { continue }
      rows.append(
        [work] + names.map { cell(figure(work, name, $0)) } + [
          ratio(larder, bestPeer(work, name)), ratio(larder, figure(work, name, Contender.echo)),
        ])
    }
    return "## \(title)\n\n" + MarkdownTable(rows).text
  }

  private var latencyTable: String {
    var rows = [["Contender"] + LatencyReport.columns + ["p99 by turn"]]
    for contender in contenderNames {
      guard let latency = latencies[contender] else { continue }
      rows.append([contender] + latency.cells + [cell(figure(Self.compared, Self.p99, contender))])
    }
    return """
      ## Latency of get in µs, at \(percent(settings.comparedLoad)) of the best peer's peak: \
      \(grouped(comparedRate)) requests per second

      \(MarkdownTable(rows).text)

      Latency counts from the scheduled time of each request, so that stalls are not hidden. The columns cover all turns \
      together, except the last one, which shows the median of the turns: a pause of the virtual machine for some \
      milliseconds raises the maximum of every turn, and the p99 of some.
      """
  }

  /// Server CPU per request and throughput with one and with two workers.
  private var workerTable: String {
    var rows = [["Work"] + workerSetups.map { "\($0): µs" } + workerSetups.map { "\($0): requests/s" }]
    for work in distinct(figures.filter { $0.contender == workerSetups.first }.map(\.work)) {
      rows.append(
        [work] + workerSetups.map { cell(figure(work, Self.cpu, $0)) }
          + workerSetups.map { cell(figure(work, Self.throughput, $0)) })
    }
    return "## More workers: server CPU per request, and requests per second\n\n" + MarkdownTable(rows).text
  }

  private var contenderList: String { "## Contenders\n\n" + contenders.map(\.markdown).joined(separator: "\n") }

  private func cell(_ figure: MeasuredFigure?) -> String { figure?.cell ?? "–" }

  private func ratio(_ one: MeasuredFigure, _ other: MeasuredFigure?) -> String {
    guard let other, other.median != 0 else { return "–" }
    let name = other.contender == Contender.echo ? "" : " (\(other.contender))"
    return decimal(one.median / other.median, 2) + name
  }
}
