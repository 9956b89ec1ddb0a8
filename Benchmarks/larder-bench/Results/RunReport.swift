/// The result of `larder-bench run`, as JSON has it.
struct RunReport: Codable, Sendable {
  var target: String
  var workload: String
  var settings: Settings
  var surroundings: Surroundings
  var seconds: Double
  var requests: Int
  var requestsPerSecond: Double
  /// Entries that came back, for workloads that read.
  var entries: Int
  var latencyMicroseconds: LatencyReport
  var errors: Errors
  var server: ServerReport?
  var generator: GeneratorReport
  var warnings: [String]
  var figures: [MeasuredFigure]

  struct Settings: Codable, Sendable {
    var connections: Int
    var pipeline: Int
    var threads: Int
    var keys: Int
    var valueSize: Int
    var distribution: Distribution
    /// The beginning, which does not count in the latencies.
    var secondsOfWarmUp: Double
    /// Requests a second that were planned; nil for a closed loop.
    var rate: Double?
    var seed: UInt64
  }

  struct Errors: Codable, Sendable {
    /// Keys without a value. In some workloads they are no fault.
    var misses: Int
    /// Requests that the server did not carry out.
    var errors: Int
    /// Replies that were not understood, or not of the form asked for.
    var `protocol`: Int
    var lostConnections: Int
    var unanswered: Int
    /// Requests that were planned and could not be sent before the end.
    var unsent: Int
  }

  struct ServerReport: Codable, Sendable {
    var cpuMicrosecondsPerRequest: Double
    /// For requests of many keys; else nil.
    var cpuMicrosecondsPerKey: Double?
    /// The part of one core.
    var load: Double
    var residentBytes: Int
    var voluntaryContextSwitches: Int
    var involuntaryContextSwitches: Int
    /// The part of one core that other processes took.
    var othersLoad: Double
  }

  struct GeneratorReport: Codable, Sendable {
    var cpuMicrosecondsPerRequest: Double
    /// The busiest thread's part of a core.
    var load: Double
    var isLimit: Bool
  }
}

extension RunReport {
  init(_ plan: LoadPlan, _ outcome: LoadOutcome, surroundings: Surroundings) {
    let tally = outcome.tally
    let count = Double(max(1, tally.answered))
    target = "\(plan.protocolName.rawValue):\(plan.address)"
    workload = plan.workload.name
    settings = Settings(
      connections: plan.connections, pipeline: plan.pipeline, threads: plan.threads, keys: plan.keys,
      valueSize: plan.valueSize, distribution: plan.effectiveDistribution,
      secondsOfWarmUp: rounded(plan.warmUp.seconds), rate: plan.rate, seed: plan.seed)
    self.surroundings = surroundings
    seconds = rounded(outcome.seconds)
    requests = tally.answered
    requestsPerSecond = rounded(outcome.rate)
    entries = tally.entries
    latencyMicroseconds = LatencyReport(tally.latencies)
    errors = Errors(
      misses: tally.misses, errors: tally.refusals, protocol: tally.protocolErrors,
      lostConnections: tally.lostConnections, unanswered: tally.unanswered, unsent: tally.unsent)
    server = outcome.server.map { use in
      let cpu = use.cpuSeconds * 1e6 / count
      let keys = plan.workload.keysInGetMany
      return ServerReport(
        cpuMicrosecondsPerRequest: rounded(cpu), cpuMicrosecondsPerKey: keys > 1 ? rounded(cpu / Double(keys)) : nil,
        load: rounded(use.load), residentBytes: use.residentBytes, voluntaryContextSwitches: use.voluntarySwitches,
        involuntaryContextSwitches: use.involuntarySwitches, othersLoad: rounded(use.othersLoad))
    }
    generator = GeneratorReport(
      cpuMicrosecondsPerRequest: rounded(outcome.generatorSeconds * 1e6 / count), load: rounded(outcome.generatorLoad),
      isLimit: outcome.generatorIsLimit)
    warnings = outcome.warnings(plan)
    figures = []
    figures = makeFigures(plan)
  }

  private func makeFigures(_ plan: LoadPlan) -> [MeasuredFigure] {
    let work = "\(workload), pipeline \(plan.pipeline)" + (plan.rate.map { ", \(Int($0))/s" } ?? "")
    let name = plan.protocolName.rawValue
    func figure(_ figure: String, _ unit: String, _ value: Double, lower: Bool = true) -> MeasuredFigure {
      MeasuredFigure(work, figure, of: name, unit: unit, isBetterLower: lower, [value])
    }
    var figures = [
      figure("throughput", "requests/s", requestsPerSecond, lower: false),
      figure("p50 latency", "µs", latencyMicroseconds.p50),
      figure("p99 latency", "µs", latencyMicroseconds.p99),
    ]
    if let server { figures.append(figure("server CPU a request", "µs", server.cpuMicrosecondsPerRequest)) }
    return figures
  }
}

extension LoadOutcome {
  /// Whether a thread of the generator was at its end while the server was not.
  var generatorIsLimit: Bool {
    guard generatorLoad >= 0.9 else { return false }
    return server.map { $0.load < 0.9 } ?? (generatorLoad >= 0.95)
  }

  func warnings(_ plan: LoadPlan) -> [String] {
    var warnings: [String] = []
    let percent = { (part: Double) in "\(Int((part * 100).rounded()))%" }
    if generatorIsLimit {
      let other = server.map { ", the server \(percent($0.load))" } ?? " (the server's is unknown: give --server-pid)"
      warnings.append(
        "The generator is the limit: its thread used \(percent(generatorLoad)) of a core\(other). Throughput and latency "
          + "say little about the server; its CPU a request does. More --threads need more cores.")
    }
    if let server, server.othersLoad > ServerUse.disturbance {
      warnings.append(
        "Other processes used \(percent(server.othersLoad)) of a core meanwhile; latencies and throughput suffer from that."
      )
    }
    if let rate = plan.rate, self.rate < rate * 0.98 {
      warnings.append(
        "The planned rate was not reached: \(Int(self.rate)) of \(Int(rate)) requests a second were answered, and the latencies grow "
          + "with the length of the run.")
    }
    if tally.unanswered > 0 { warnings.append("\(tally.unanswered) requests were never answered.") }
    if tally.lostConnections > 0 { warnings.append("\(tally.lostConnections) connections ended before the run did.") }
    return warnings
  }
}
