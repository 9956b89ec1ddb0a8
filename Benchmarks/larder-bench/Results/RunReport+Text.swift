import Foundation

extension RunReport {
  /// The result for people.
  var text: String {
    var lines = [
      "\(workload) on \(target)",
      "  \(settings.connections) connections, pipeline \(settings.pipeline), \(settings.keys) keys (\(settings.distribution)), values of "
        + "\(settings.valueSize) bytes, " + (settings.rate.map { "\(Int($0)) requests/s planned" } ?? "closed loop")
        + ", \(settings.threads) thread\(settings.threads == 1 ? "" : "s"), seed \(settings.seed)",
      "",
      "  requests     \(requests) in \(decimal(seconds, 2)) s, \(grouped(requestsPerSecond))/s"
        + (entries > requests ? ", \(grouped(Double(entries) / max(seconds, 1e-9))) entries/s" : ""),
      "  latency µs   " + latencyLine,
      "  errors       misses \(errors.misses)   errors \(errors.errors)   protocol \(errors.protocol)"
        + (errors.lostConnections > 0 ? "   lost connections \(errors.lostConnections)" : "")
        + (errors.unanswered > 0 ? "   unanswered \(errors.unanswered)" : "")
        + (errors.unsent > 0 ? "   planned and not sent \(errors.unsent)" : ""),
    ]
    if let server {
      lines.append(
        "  server       \(decimal(server.cpuMicrosecondsPerRequest, 3)) µs CPU a request"
          + (server.cpuMicrosecondsPerKey.map { " (\(decimal($0, 3)) a key)" } ?? "")
          + ", \(percent(server.load)) of a core, \(decimal(Double(server.residentBytes) / 1_048_576, 1)) MiB resident, context switches "
          + "\(server.voluntaryContextSwitches) voluntary, \(server.involuntaryContextSwitches) not")
    }
    lines.append(
      "  generator    \(decimal(generator.cpuMicrosecondsPerRequest, 3)) µs CPU a request, busiest thread \(percent(generator.load)) of a core"
    )
    lines.append(
      "  made by      \(surroundings.commit), Linux \(surroundings.kernel), \(surroundings.cores) × \(surroundings.processor), load average "
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

func decimal(_ value: Double, _ places: Int) -> String { String(format: "%.\(places)f", value) }

func percent(_ part: Double) -> String { "\(Int((part * 100).rounded()))%" }

/// A number with three significant digits at least, and its thousands apart.
func grouped(_ value: Double) -> String {
  guard value >= 100 else { return decimal(value, value >= 10 ? 1 : value >= 1 ? 2 : 3) }
  var digits = String(Int(value.rounded()))
  var groups: [String] = []
  while digits.count > 3 {
    groups.insert(String(digits.suffix(3)), at: 0)
    digits.removeLast(3)
  }
  return ([digits] + groups).joined(separator: ",")
}
