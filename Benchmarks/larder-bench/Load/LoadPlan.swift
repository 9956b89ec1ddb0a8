import Platform

/// What a run is to do, and how.
struct LoadPlan: Sendable {
  var address: Address
  var protocolName: TargetProtocol
  var workload: Workload
  var connections = 50
  var pipeline = 1
  var threads = 1
  var keys = 200_000
  var valueSize = 100
  /// When to end: after so many requests, or so long.
  var requests: Int?
  var duration: Duration = .seconds(10)
  /// At the start, latencies do not count for so long: the scheduler takes some milliseconds until the server and the generator each have
  /// a core, and in a short run that would be its 99th percentile.
  var warmUp: Duration = .zero
  /// Requests a second in all; nil for as many as the server answers.
  var rate: Double?
  var distribution: Distribution?
  var seed: UInt64 = 1
  /// The processors that the generator's threads keep to; nil for any.
  var processors: ProcessorSet?
  /// Larder's stores; the connections use them in turn.
  var stores = ["bench"]
  /// How long the server may be silent while it owes replies.
  var patience: Duration = .seconds(10)

  /// The keys' distribution: what the run says, else what the workload does. YCSB D is about its own.
  var effectiveDistribution: Distribution {
    workload.distribution == .latest ? .latest : distribution ?? workload.distribution
  }
}

/// How servers are spoken to.
enum TargetProtocol: String, CaseIterable, Codable, Sendable {
  case larder
  case resp
  case memcached
  case echo
}

extension Duration {
  var seconds: Double {
    let (seconds, attoseconds) = components
    return Double(seconds) + Double(attoseconds) * 1e-18
  }

  var nanoseconds: UInt64 { UInt64(max(0, seconds) * 1e9) }
}
