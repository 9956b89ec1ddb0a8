import Histogram

/// The outcome of a load.
struct LoadOutcome: Sendable {
  let tally: Tally
  /// The time from the first request to the last reply.
  let seconds: Double
  /// The load of the busiest generator thread, in cores.
  let generatorLoad: Double
  /// The CPU time of all threads except busy waiting, in seconds.
  let generatorSeconds: Double
  /// Nil if the server's process is unknown.
  let server: ServerUse?

  init(threads: [ThreadOutcome], before: ServerUsageProbe.Sample?, after: ServerUsageProbe.Sample?) {
    var tally = Tally()
    for thread in threads { tally.add(thread.tally) }
    self.tally = tally
    let start = threads.map(\.start).min() ?? 0
    let end = threads.map(\.end).max() ?? 0
    seconds = max(1e-9, Double(end - start) / 1e9)
    let busy = threads.map(\.busySeconds)
    generatorSeconds = busy.reduce(0, +)
    generatorLoad = (busy.max() ?? 0) / seconds
    if let before, let after {
      server = ServerUse(before: before, after: after, seconds: seconds)
    } else {
      server = nil
    }
  }

  /// Answered requests per second.
  var rate: Double { Double(tally.answered) / seconds }
}

extension LoadPlan {
  /// Runs the plan with the load loop specialized for its protocol.
  func run(probe: ServerUsageProbe?, onProgress: (LoadSnapshot) -> Void = { _ in }) throws -> LoadOutcome {
    switch protocolName {
    case .larder: try Load<LarderTarget>(self).run(probe: probe, onProgress: onProgress)
    case .resp: try Load<RespTarget>(self).run(probe: probe, onProgress: onProgress)
    case .memcached: try Load<MemcachedTarget>(self).run(probe: probe, onProgress: onProgress)
    case .echo: try Load<EchoTarget>(self).run(probe: probe, onProgress: onProgress)
    }
  }

  /// Writes all keys from `first` on.
  func loadKeys(from first: Int = 0, onProgress: (LoadSnapshot) -> Void = { _ in }) throws {
    switch protocolName {
    case .larder: try Load<LarderTarget>(self).loadKeys(from: first, onProgress: onProgress)
    case .resp: try Load<RespTarget>(self).loadKeys(from: first, onProgress: onProgress)
    case .memcached: try Load<MemcachedTarget>(self).loadKeys(from: first, onProgress: onProgress)
    case .echo: break
    }
  }
}

/// A thread's counts.
struct Tally: Sendable {
  /// Latencies in nanoseconds up to ten minutes, with three significant digits.
  private var latencies = Histogram<UInt64>(
    highestTrackableValue: Tally.maxLatency, numberOfSignificantValueDigits: .three)
  private static let maxLatency: UInt64 = 600_000_000_000

  /// Requests with a reply of any kind.
  var answered = 0
  var entries = 0
  var misses = 0
  var refusals = 0
  var protocolErrors = 0
  var lostConnections = 0
  /// Requests without a reply at the end of the run.
  var unanswered = 0
  /// Requests whose scheduled time came but that were never sent.
  var unsent = 0

  private var latenciesCountFrom: UInt64 = 0

  // Runs of equal latencies are recorded at once: requests sent together whose replies arrive together.
  private var latency: UInt64 = 0
  private var repeatCount: UInt64 = 0

  /// Excludes requests that are sent or scheduled before a time from the latencies.
  mutating func countLatencies(from time: UInt64) { latenciesCountFrom = time }

  @inline(__always)
  mutating func count(_ reply: TargetReply) {
    entries &+= Int(reply.entries)
    misses &+= Int(reply.misses)
    switch reply.failure {
    case nil: break
    case .refused: refusals &+= 1
    case .unexpected: protocolErrors &+= 1
    }
  }

  /// Records the reply to a request.
  @inline(__always)
  mutating func record(since: UInt64, now: UInt64) {
    answered &+= 1
    guard since >= latenciesCountFrom else { return }
    let elapsed = now > since ? now &- since : 0
    if elapsed == latency {
      repeatCount &+= 1
    } else {
      flush()
      latency = elapsed
      repeatCount = 1
    }
  }

  mutating func flush() {
    guard repeatCount > 0 else { return }
    latencies.record(min(latency, Self.maxLatency), count: repeatCount)
    repeatCount = 0
  }

  mutating func add(_ other: Tally) {
    var other = other
    other.flush()
    flush()
    latencies.add(other.latencies)
    answered += other.answered
    entries += other.entries
    misses += other.misses
    refusals += other.refusals
    protocolErrors += other.protocolErrors
    lostConnections += other.lostConnections
    unanswered += other.unanswered
    unsent += other.unsent
  }

  /// Returns a percentile of the latencies, in microseconds.
  func microseconds(_ percentile: Double) -> Double { Double(latencies.valueAtPercentile(percentile)) / 1_000 }

  var latencyReport: LatencyReport { LatencyReport(latencies) }

  /// Whether anything went wrong. Misses are not failures.
  var hasFailures: Bool { refusals + protocolErrors + lostConnections + unanswered > 0 }
}

extension Tally {
  /// A description of misses and failures.
  var failures: String {
    [
      (misses, "misses"), (refusals, "refused requests"), (protocolErrors, "malformed replies"),
      (lostConnections, "lost connections"), (unanswered, "unanswered requests"),
    ].filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", ")
  }
}
