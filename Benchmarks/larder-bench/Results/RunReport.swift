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
  var figures: Figures

  struct Settings: Codable, Sendable {
    private var connections: Int
    var pipeline: Int
    private var threads: Int
    private var keys: Int
    private var valueSize: Int
    private var distribution: Distribution
    /// The start, in which latencies are ignored.
    private var secondsOfWarmUp: Double
    /// The scheduled requests per second; nil for a closed loop.
    private var rate: Double?
    var seed: UInt64

    init(_ plan: LoadPlan) {
      connections = plan.connections
      pipeline = plan.pipeline
      threads = plan.threads
      keys = plan.keys
      valueSize = plan.valueSize
      distribution = plan.effectiveDistribution
      secondsOfWarmUp = rounded(plan.warmUp.seconds)
      rate = plan.rate
      seed = plan.seed
    }

    var text: String {
      "\(connections) connections, pipeline \(pipeline), \(keys) keys (\(distribution)), values of \(valueSize) bytes, "
        + (rate.map { "\(Int($0)) requests/s scheduled" } ?? "closed loop")
        + ", \(threads) thread\(threads == 1 ? "" : "s"), seed \(seed)"
    }

    /// What follows the latencies: the duration of the warm-up, if any.
    var warmUpRemark: String {
      secondsOfWarmUp > 0 ? "   (after \(decimal(secondsOfWarmUp * 1_000, 0)) ms)" : ""
    }
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
    private var unsent: Int

    init(_ tally: Tally) {
      misses = tally.misses
      errors = tally.refusals
      `protocol` = tally.protocolErrors
      lostConnections = tally.lostConnections
      unanswered = tally.unanswered
      unsent = tally.unsent
    }

    var text: String {
      "misses \(misses)   errors \(errors)   protocol \(`protocol`)"
        + (lostConnections > 0 ? "   lost connections \(lostConnections)" : "")
        + (unanswered > 0 ? "   unanswered \(unanswered)" : "")
        + (unsent > 0 ? "   scheduled but not sent \(unsent)" : "")
    }
  }

  struct ServerReport: Codable, Sendable {
    var cpuMicrosecondsPerRequest: Double
    /// For requests with several keys; nil otherwise.
    private var cpuMicrosecondsPerKey: Double?
    /// The load in cores.
    private var load: Double
    var residentBytes: Int
    private var voluntaryContextSwitches: Int
    private var involuntaryContextSwitches: Int
    /// The load by other processes, in cores.
    private var othersLoad: Double

    /// - Parameter keys: The number of keys per request.
    init(_ use: ServerUse, requests: Int, keys: Int) {
      let cpu = use.cpuMicroseconds(perRequestOf: requests)
      cpuMicrosecondsPerRequest = rounded(cpu)
      cpuMicrosecondsPerKey = keys > 1 ? rounded(cpu / Double(keys)) : nil
      load = rounded(use.load)
      residentBytes = use.residentBytes
      voluntaryContextSwitches = use.voluntarySwitches
      involuntaryContextSwitches = use.involuntarySwitches
      othersLoad = rounded(use.othersLoad)
    }

    var text: String {
      "\(decimal(cpuMicrosecondsPerRequest, 3)) µs CPU per request"
        + (cpuMicrosecondsPerKey.map { " (\(decimal($0, 3)) per key)" } ?? "")
        + ", \(percent(load)) of a core, \(decimal(Double(residentBytes) / 1_048_576, 1)) MiB resident, context switches "
        + "\(voluntaryContextSwitches) voluntary, \(involuntaryContextSwitches) involuntary"
    }
  }

  struct GeneratorReport: Codable, Sendable {
    var cpuMicrosecondsPerRequest: Double
    /// The load of the busiest thread, in cores.
    private var load: Double
    private var isLimit: Bool

    init(_ outcome: LoadOutcome) {
      cpuMicrosecondsPerRequest = rounded(outcome.generatorSeconds * 1e6 / Double(max(1, outcome.tally.answered)))
      load = rounded(outcome.generatorLoad)
      isLimit = outcome.generatorIsLimit
    }

    var text: String {
      "\(decimal(cpuMicrosecondsPerRequest, 3)) µs CPU per request, busiest thread \(percent(load)) of a core"
    }
  }
}

extension RunReport {
  init(_ plan: LoadPlan, _ outcome: LoadOutcome, surroundings: Surroundings) {
    let tally = outcome.tally
    target = "\(plan.protocolName.rawValue):\(plan.address)"
    workload = plan.workload.name
    settings = Settings(plan)
    self.surroundings = surroundings
    seconds = rounded(outcome.seconds)
    requests = tally.answered
    requestsPerSecond = rounded(outcome.rate)
    entries = tally.entries
    latencyMicroseconds = tally.latencyReport
    errors = Errors(tally)
    server = outcome.server.map {
      ServerReport($0, requests: tally.answered, keys: plan.workload.keysPerRequest)
    }
    generator = GeneratorReport(outcome)
    warnings = outcome.warnings(plan)
    figures = Figures()
    figures = Figures(makeFigures(plan))
  }

  private func makeFigures(_ plan: LoadPlan) -> [MeasuredFigure] {
    let work = "\(workload), pipeline \(plan.pipeline)" + (plan.rate.map { ", \(Int($0))/s" } ?? "")
    let name = plan.protocolName.rawValue
    let values: [(Quantity, Double?)] = [
      (.throughput, requestsPerSecond), (.p50, latencyMicroseconds.p50), (.p99, latencyMicroseconds.p99),
      (.cpu, server?.cpuMicrosecondsPerRequest),
    ]
    return values.compactMap { quantity, value in
      value.map { MeasuredFigure(work, quantity, of: name, [$0]) }
    }
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
      "  " + settings.text,
      "",
      "  requests     \(requests) in \(decimal(seconds, 2)) s, \(grouped(requestsPerSecond))/s"
        + (entries > requests ? ", \(grouped(Double(entries) / max(seconds, 1e-9))) entries/s" : ""),
      "  latency µs   " + latencyMicroseconds.text + settings.warmUpRemark,
      "  errors       " + errors.text,
    ]
    if let server { lines.append("  server       " + server.text) }
    lines.append("  generator    " + generator.text)
    lines.append("  measured by  " + surroundings.text)
    lines += warnings.map { "  warning      \($0)" }
    return lines.joined(separator: "\n")
  }
}
