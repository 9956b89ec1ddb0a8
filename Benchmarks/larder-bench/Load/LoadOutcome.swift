/// What a load came to.
struct LoadOutcome: Sendable {
  let tally: Tally
  /// From the first request to the last answer.
  let seconds: Double
  /// How busy the busiest thread was, as a part of one core.
  let generatorLoad: Double
  /// CPU seconds of all threads, without what was spent waiting for the next planned time.
  let generatorSeconds: Double
  /// Nil when the server's process is not known.
  let server: ServerUse?

  init(shares: [LoadShare], before: ServerProbe.Sample?, after: ServerProbe.Sample?) {
    var tally = Tally()
    for share in shares { tally.add(share.tally) }
    self.tally = tally
    let start = shares.map(\.start).min() ?? 0
    let end = shares.map(\.end).max() ?? 0
    seconds = max(1e-9, Double(end - start) / 1e9)
    let busy = shares.map { Double($0.cpuNanoseconds - min($0.cpuNanoseconds, $0.idleNanoseconds)) / 1e9 }
    generatorSeconds = busy.reduce(0, +)
    generatorLoad = (busy.max() ?? 0) / seconds
    if let before, let after {
      server = ServerUse(before: before, after: after, seconds: seconds)
    } else {
      server = nil
    }
  }

  /// Requests a second that were answered.
  var rate: Double { Double(tally.answered) / seconds }
}

/// What a server's process used during a load.
struct ServerUse: Sendable {
  let cpuSeconds: Double
  /// The part of one core; more than 1 with several threads.
  let load: Double
  let residentBytes: Int
  let voluntarySwitches: Int
  let involuntarySwitches: Int
  /// What all other processes used, as a part of one core: they disturb what is measured.
  let othersLoad: Double

  /// From this part of a core on, the work of others counts as a disturbance.
  static let disturbance = 0.2

  init(before: ServerProbe.Sample, after: ServerProbe.Sample, seconds: Double) {
    cpuSeconds = Double(after.cpuNanoseconds - before.cpuNanoseconds) / 1e9
    load = cpuSeconds / seconds
    residentBytes = after.residentBytes
    voluntarySwitches = after.voluntarySwitches - before.voluntarySwitches
    involuntarySwitches = after.involuntarySwitches - before.involuntarySwitches
    let own = after.ownSeconds - before.ownSeconds
    othersLoad = max(0, after.machineSeconds - before.machineSeconds - own - cpuSeconds) / seconds
  }
}

extension LoadPlan {
  /// Runs the plan with the load loop that is made for its protocol.
  func run(probe: ServerProbe?, watch: (LoadSnapshot) -> Void = { _ in }) throws -> LoadOutcome {
    switch protocolName {
    case .larder: try Load<LarderTarget>(self).run(probe: probe, watch: watch)
    case .resp: try Load<RespTarget>(self).run(probe: probe, watch: watch)
    case .memcached: try Load<MemcachedTarget>(self).run(probe: probe, watch: watch)
    case .echo: try Load<EchoTarget>(self).run(probe: probe, watch: watch)
    }
  }

  /// Writes all keys, from `from` on.
  func loadKeys(from: Int = 0, watch: (LoadSnapshot) -> Void = { _ in }) throws {
    switch protocolName {
    case .larder: try Load<LarderTarget>(self).loadKeys(from: from, watch: watch)
    case .resp: try Load<RespTarget>(self).loadKeys(from: from, watch: watch)
    case .memcached: try Load<MemcachedTarget>(self).loadKeys(from: from, watch: watch)
    case .echo: break
    }
  }
}
