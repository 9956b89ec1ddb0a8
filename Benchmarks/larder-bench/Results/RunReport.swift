import Foundation

/// The result of `larder-bench run`, as written to JSON.
struct RunReport: Codable, Sendable {
  private var target: String
  private var workload: String
  var settings: Settings
  private var surroundings: Surroundings
  private var seconds: Double
  var requests: Int
  var requestsPerSecond: Double
  /// The number of returned entries, for workloads that read.
  var entries: Int
  var latencyMicroseconds: LatencyReport
  var errors: Errors
  var server: ServerReport?
  var generator: GeneratorReport
  private var warnings: [String]
  var figures: [MeasuredFigure]

  struct Settings: Codable, Sendable {
    var connections: Int
    var pipeline: Int
    var threads: Int
    var keys: Int
    var valueSize: Int
    var distribution: Distribution
    /// The start, in which latencies are ignored.
    var secondsOfWarmUp: Double
    /// The scheduled requests per second; nil for a closed loop.
    var rate: Double?
    var seed: UInt64
  }

  struct Errors: Codable, Sendable {
    /// Missing keys, which are expected in some workloads.
    var misses: Int
    /// Requests that the server refused.
    var errors: Int
    /// Malformed or unexpected replies.
    var `protocol`: Int
    var lostConnections: Int
    var unanswered: Int
    /// Requests that were scheduled but not sent before the end.
    var unsent: Int
  }

  struct ServerReport: Codable, Sendable {
    var cpuMicrosecondsPerRequest: Double
    /// For requests with several keys; nil otherwise.
    var cpuMicrosecondsPerKey: Double?
    /// The load in cores.
    var load: Double
    var residentBytes: Int
    var voluntaryContextSwitches: Int
    var involuntaryContextSwitches: Int
    /// The load by other processes, in cores.
    var othersLoad: Double
  }

  struct GeneratorReport: Codable, Sendable {
    var cpuMicrosecondsPerRequest: Double
    /// The load of the busiest thread, in cores.
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
  /// Whether a generator thread was saturated while the server was not.
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
        "The generator is the bottleneck: its thread used \(percent(generatorLoad)) of a core\(other). Throughput and latency "
          + "say little about the server; its CPU per request does. More --threads need more cores.")
    }
    if let server, server.othersLoad > ServerUse.disturbanceThreshold {
      warnings.append(
        "Other processes used \(percent(server.othersLoad)) of a core, which affects latency and throughput."
      )
    }
    if let rate = plan.rate, self.rate < rate * 0.98 {
      warnings.append(
        "The server did not reach the scheduled rate: it answered \(Int(self.rate)) of \(Int(rate)) requests per second, so "
          + "that latencies grow with the length of the run.")
    }
    if tally.unanswered > 0 { warnings.append("\(tally.unanswered) requests got no reply.") }
    if tally.lostConnections > 0 {
      warnings.append("\(tally.lostConnections) connections closed before the run ended.")
    }
    return warnings
  }
}

extension RunReport {
  /// The report as text.
  var text: String {
    var lines = [
      "\(workload) on \(target)",
      "  \(settings.connections) connections, pipeline \(settings.pipeline), \(settings.keys) keys (\(settings.distribution)), values of "
        + "\(settings.valueSize) bytes, " + (settings.rate.map { "\(Int($0)) requests/s scheduled" } ?? "closed loop")
        + ", \(settings.threads) thread\(settings.threads == 1 ? "" : "s"), seed \(settings.seed)",
      "",
      "  requests     \(requests) in \(decimal(seconds, 2)) s, \(grouped(requestsPerSecond))/s"
        + (entries > requests ? ", \(grouped(Double(entries) / max(seconds, 1e-9))) entries/s" : ""),
      "  latency µs   " + latencyLine,
      "  errors       misses \(errors.misses)   errors \(errors.errors)   protocol \(errors.protocol)"
        + (errors.lostConnections > 0 ? "   lost connections \(errors.lostConnections)" : "")
        + (errors.unanswered > 0 ? "   unanswered \(errors.unanswered)" : "")
        + (errors.unsent > 0 ? "   scheduled but not sent \(errors.unsent)" : ""),
    ]
    if let server {
      lines.append(
        "  server       \(decimal(server.cpuMicrosecondsPerRequest, 3)) µs CPU per request"
          + (server.cpuMicrosecondsPerKey.map { " (\(decimal($0, 3)) per key)" } ?? "")
          + ", \(percent(server.load)) of a core, \(decimal(Double(server.residentBytes) / 1_048_576, 1)) MiB resident, context switches "
          + "\(server.voluntaryContextSwitches) voluntary, \(server.involuntaryContextSwitches) involuntary")
    }
    lines.append(
      "  generator    \(decimal(generator.cpuMicrosecondsPerRequest, 3)) µs CPU per request, busiest thread \(percent(generator.load)) of a core"
    )
    lines.append(
      "  measured by  \(surroundings.commit), Linux \(surroundings.kernel), \(surroundings.cores) × \(surroundings.processor), load average "
        + "\(decimal(surroundings.loadAverage, 2)), \(surroundings.date)")
    lines += warnings.map { "  warning      \($0)" }
    return lines.joined(separator: "\n")
  }

  private var latencyLine: String {
    let latency = latencyMicroseconds
    return [
      ("p50", latency.p50), ("p90", latency.p90), ("p99", latency.p99), ("p99.9", latency.p999),
      ("p99.99", latency.p9999),
      ("max", latency.max),
    ].map { "\($0.0) \(decimal($0.1, 1))" }.joined(separator: "   ")
      + (settings.secondsOfWarmUp > 0 ? "   (after \(decimal(settings.secondsOfWarmUp * 1_000, 0)) ms)" : "")
  }
}
