import Platform

/// The parameters of a run.
struct LoadPlan: Sendable {
  var address: Address
  var protocolName: TargetProtocol
  var workload: Workload
  var connections = 50
  var pipeline = 1
  var threads = 1
  var keys = 200_000
  var valueSize = 100
  /// When to stop: after this many requests, or else after `duration`.
  var requests: Int?
  var duration: Duration = .seconds(10)
  /// The duration from the start during which latencies are ignored. The scheduler takes some milliseconds to give the
  /// server and the generator a core each, which would be the 99th percentile of a short run.
  var warmUp: Duration = .zero
  /// The total number of requests per second; nil for a closed loop.
  var rate: Double?
  var distribution: Distribution?
  var seed: UInt64 = 1
  /// The processors of the generator's threads; nil for any.
  var processors: ProcessorSet?
  /// Larder's stores, over which the connections are distributed.
  var stores = ["bench"]
  /// The time for which the server may be silent while replies are outstanding.
  var timeout: Duration = .seconds(10)

  /// The distribution of the keys: the plan's, or else the workload's. YCSB D always uses its own.
  var effectiveDistribution: Distribution {
    workload.distribution == .latest ? .latest : distribution ?? workload.distribution
  }
}

/// A protocol of servers.
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
