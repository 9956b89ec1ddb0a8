import Foundation
import Platform

/// Runs the same work against every contender, in turn, and again.
struct Comparison {
  let plan: ComparisonPlan
  let contenders: [Contender]
  private let folder: TemporaryFolder
  private let display: LiveProgress
  private let start = Clocks.now()
  /// Turns, by which their random numbers differ.
  private var turns = 0
  /// Turns taken, taken once more because other processes disturbed them, and kept although they did.
  private var (taken, retaken, disturbed) = (0, 0, 0)

  init(_ plan: ComparisonPlan, _ contenders: [Contender], in folder: TemporaryFolder, display: LiveProgress) {
    self.plan = plan
    self.contenders = contenders
    self.folder = folder
    self.display = display
  }

  mutating func run() throws -> ComparisonReport {
    // What this thread starts keeps to the same processors: the servers, and not the generator, which says otherwise.
    let all = try ProcessorSet.ofThread()
    try plan.processors?.servers.confineThread()
    defer { try? all.confineThread() }
    var report = ComparisonReport(plan, contenders)
    for contender in contenders { try check(contender) }
    try measureMemory(&report)

    let servers = try start(contenders)
    try measure(plan.works, servers, &report)
    let peak = report.bestPeerPeak ?? report.larderPeak
    report.peakRate = peak
    try measureLatency(servers, peak: peak, &report)
    try measureLoadCurve(servers, peak: peak, &report)
    for server in servers { server.stop() }

    let setups = try ComparisonPlan.workerSetups.map { try Contender.larder(workers: $0.workers, stores: $0.stores) }
    report.workerSetups = setups.map(\.name)
    try measure(plan.workerWorks, start(setups), &report)
    (report.turns, report.retakenTurns, report.disturbedTurns) = (taken, retaken, disturbed)
    report.seconds = rounded(Double(Clocks.now() - start) / 1e9)
    return report
  }

  /// On a server of its own, so that what it writes is in no one's way.
  private func check(_ contender: Contender) throws {
    show("checking \(contender.name)")
    let server = try RunningServer(contender, in: folder)
    do { try TargetCheck(address: server.address).run(contender.protocolName) } catch {
      throw BenchError("\(contender.name) does not answer correctly: \(error)")
    }
    server.stop()
  }

  private mutating func start(_ contenders: [Contender]) throws -> [RunningServer] {
    try contenders.map { contender in
      show("loading \(contender.name)")
      let server = try RunningServer(contender, in: folder)
      try load(plan.works[0], server).loadKeys()
      return server
    }
  }

  /// Each server's turn at each work, again and again; who begins changes.
  private mutating func measure(
    _ works: [ComparisonPlan.Work], _ servers: [RunningServer], _ report: inout ComparisonReport
  ) throws {
    var samples: [String: [String: [LoadOutcome]]] = [:]
    for round in 0..<plan.repeats {
      for work in works {
        for server in servers.rotated(by: round) where try isAble(server, work) {
          show("round \(round + 1) of \(plan.repeats): \(work.name) on \(server.contender.name)")
          let outcome = try take(load(work, server), server)
          samples[work.name, default: [:]][server.contender.name, default: []].append(outcome)
        }
      }
    }
    for work in works {
      let keys = try Workload(work.workload).keysInGetMany
      for server in servers {
        guard let outcomes = samples[work.name]?[server.contender.name] else { continue }
        report.add(work.name, server.contender.name, outcomes, keys: keys)
      }
    }
  }

  /// The percentiles at one rate for all, below anyone's peak.
  private mutating func measureLatency(
    _ servers: [RunningServer], peak: Double, _ report: inout ComparisonReport
  ) throws {
    let work = plan.works[0]
    var tallies: [String: Tally] = [:]
    var outcomes: [String: [LoadOutcome]] = [:]
    for round in 0..<plan.repeats * ComparisonPlan.latencyTurns {
      for server in servers.rotated(by: round) {
        show("round \(round + 1) of \(plan.repeats * ComparisonPlan.latencyTurns): latency of \(server.contender.name)")
        var load = try load(work, server)
        load.rate = peak * ComparisonPlan.comparedLoad
        load.duration = plan.turn / ComparisonPlan.latencyTurns
        load.warmUp = min(load.warmUp, load.duration / 5)
        let outcome = try take(load, server)
        tallies[server.contender.name, default: Tally()].add(outcome.tally)
        outcomes[server.contender.name, default: []].append(outcome)
      }
    }
    for contender in contenders {
      guard let tally = tallies[contender.name], let outcomes = outcomes[contender.name] else { continue }
      report.addLatency(contender.name, tally, outcomes)
    }
  }

  /// Latency at rates up to and past the knee.
  private mutating func measureLoadCurve(
    _ servers: [RunningServer], peak: Double, _ report: inout ComparisonReport
  ) throws {
    for part in plan.loadSteps {
      var outcomes: [String: [LoadOutcome]] = [:]
      for round in 0..<min(3, plan.repeats) {
        for server in servers.rotated(by: round) {
          show("load curve, \(percent(part)) of the best peer's peak: \(server.contender.name)")
          var load = try load(plan.works[0], server)
          load.rate = peak * part
          load.duration = plan.turn / 2
          outcomes[server.contender.name, default: []].append(try take(load, server))
        }
      }
      for contender in contenders {
        report.addLoadPoint(contender.name, planned: peak * part, outcomes[contender.name] ?? [])
      }
    }
  }

  /// What a server takes for its entries, beyond keys and values, by the growth of its resident memory. The first entries are not
  /// counted, with which everything comes that a server needs just once.
  private mutating func measureMemory(_ report: inout ComparisonReport) throws {
    for contender in contenders where contender.protocolName != .echo {
      show("memory of \(plan.entriesInMemory) entries: \(contender.name)")
      let server = try RunningServer(contender, in: folder)
      var load = try load(plan.works[0], server)
      let first = plan.entriesInMemory / 100
      load.keys = first
      try load.loadKeys()
      let before = server.probe.sample()?.residentBytes ?? 0
      load.keys = first + plan.entriesInMemory
      try load.loadKeys(from: first)
      let after = server.probe.sample()?.residentBytes ?? 0
      server.stop()
      let each = Double(after - before) / Double(plan.entriesInMemory)
      report.addMemory(contender.name, beyondKeyAndValue: each - Double(BenchKey.size + plan.valueSize))
    }
  }

  private mutating func load(_ work: ComparisonPlan.Work, _ server: RunningServer) throws -> LoadPlan {
    turns += 1
    return try plan.load(work, on: server.contender, at: server.address, turn: turns)
  }

  /// Runs a load, and again when other processes took much of the machine meanwhile, as long as that does not happen all the time.
  private mutating func take(_ load: LoadPlan, _ server: RunningServer) throws -> LoadOutcome {
    var outcome = try load.run(probe: server.probe)
    taken += 1
    while let use = outcome.server, use.othersLoad > ServerUse.disturbance {
      guard Double(retaken) < 10 + 0.25 * Double(taken) else {
        disturbed += 1
        break
      }
      retaken += 1
      outcome = try load.run(probe: server.probe)
    }
    guard !outcome.tally.hasFailures, outcome.tally.misses == 0 else {
      throw BenchError("\(server.contender.name) failed at \(load.workload.name): \(outcome.tally.failures)")
    }
    return outcome
  }

  private func isAble(_ server: RunningServer, _ work: ComparisonPlan.Work) throws -> Bool {
    let operations = try Workload(work.workload).operations
    switch server.contender.protocolName {
    case .larder: return true
    case .resp, .memcached: return operations.isDisjoint(with: [.page, .scan])
    case .echo: return operations.isSubset(of: [.get, .put])
    }
  }

  private func show(_ text: String) {
    display.show("\(Int(Double(Clocks.now() - start) / 1e9)) s  \(text)")
  }
}

extension Array {
  /// The same elements, of which another one is the first.
  func rotated(by turns: Int) -> Self {
    guard !isEmpty else { return [] }
    let first = turns % count
    return Array(self[first...] + self[..<first])
  }
}
