import Foundation
import Platform

/// A comparison, which runs the same work on every contender in turns, for several rounds.
struct Comparison {
  private let plan: ComparisonPlan
  private let contenders: [Contender]
  private let folder: TemporaryFolder
  private let display: LiveProgress
  private let start = Clocks.now()
  /// The number of loads so far, which makes their random numbers differ.
  private var loadCount = 0
  /// The numbers of turns measured, repeated because of other processes, and kept in spite of them.
  private var (measured, repeated, disturbed) = (0, 0, 0)

  init(_ plan: ComparisonPlan, _ contenders: [Contender], in folder: TemporaryFolder, display: LiveProgress) {
    self.plan = plan
    self.contenders = contenders
    self.folder = folder
    self.display = display
  }

  mutating func run() throws -> ComparisonReport {
    // Processes inherit this thread's processors: the servers do, and the generator's threads set their own.
    let all = try ProcessorSet.ofCurrentThread()
    try plan.processors?.servers.restrictCurrentThread()
    defer { try? all.restrictCurrentThread() }
    let setups = try ComparisonPlan.workerSetups.map { try Contender.larder(workers: $0.workers, stores: $0.stores) }
    var report = ComparisonReport(plan, contenders, workerSetups: setups)
    for contender in contenders { try check(contender) }
    try measureMemory(&report)

    let servers = try start(contenders)
    try measure(plan.works, servers, &report)
    let peakRate = report.determinePeakRate()
    try measureLatency(servers, peakRate: peakRate, &report)
    try measureLoadCurve(servers, peakRate: peakRate, &report)
    for server in servers { server.stop() }

    try measure(plan.workerWorks, start(setups), &report)
    report.finish(
      turns: measured, retaken: repeated, disturbed: disturbed, seconds: Double(Clocks.now() - start) / 1e9)
    return report
  }

  /// Checks a contender on a separate server, so that the written keys do not interfere with measurements.
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

  /// Measures each work on each server, in rounds that start with a different server each time.
  private mutating func measure(
    _ works: [ComparisonPlan.Work], _ servers: [RunningServer], _ report: inout ComparisonReport
  ) throws {
    var samples: [String: [String: [LoadOutcome]]] = [:]
    for round in 0..<plan.repeats {
      for work in works {
        for server in servers.rotated(by: round) where try supports(work, server) {
          show("round \(round + 1) of \(plan.repeats): \(work.name) on \(server.contender.name)")
          let outcome = try runLoad(load(work, server), server)
          samples[work.name, default: [:]][server.contender.name, default: []].append(outcome)
        }
      }
    }
    for work in works {
      let keys = try Workload(work.workload).keysPerRequest
      for server in servers {
        guard let outcomes = samples[work.name]?[server.contender.name] else { continue }
        report.add(work.name, server.contender.name, outcomes, keys: keys)
      }
    }
  }

  /// Measures latency percentiles at the same rate for all servers, below every peak.
  private mutating func measureLatency(
    _ servers: [RunningServer], peakRate: Double, _ report: inout ComparisonReport
  ) throws {
    let work = plan.works[0]
    var tallies: [String: Tally] = [:]
    var outcomes: [String: [LoadOutcome]] = [:]
    for round in 0..<plan.repeats * ComparisonPlan.latencyTurns {
      for server in servers.rotated(by: round) {
        show("round \(round + 1) of \(plan.repeats * ComparisonPlan.latencyTurns): latency of \(server.contender.name)")
        var load = try load(work, server)
        load.rate = peakRate * ComparisonPlan.comparedLoad
        load.duration = plan.turn / ComparisonPlan.latencyTurns
        load.warmUp = min(load.warmUp, load.duration / 5)
        let outcome = try runLoad(load, server)
        tallies[server.contender.name, default: Tally()].add(outcome.tally)
        outcomes[server.contender.name, default: []].append(outcome)
      }
    }
    for contender in contenders {
      guard let tally = tallies[contender.name], let outcomes = outcomes[contender.name] else { continue }
      report.addLatency(contender.name, tally, outcomes)
    }
  }

  /// Measures latency at rates up to and beyond saturation.
  private mutating func measureLoadCurve(
    _ servers: [RunningServer], peakRate: Double, _ report: inout ComparisonReport
  ) throws {
    for fraction in plan.loadSteps {
      var outcomes: [String: [LoadOutcome]] = [:]
      for round in 0..<min(3, plan.repeats) {
        for server in servers.rotated(by: round) {
          show("load curve, \(percent(fraction)) of the best peer's peak: \(server.contender.name)")
          var load = try load(plan.works[0], server)
          load.rate = peakRate * fraction
          load.duration = plan.turn / 2
          outcomes[server.contender.name, default: []].append(try runLoad(load, server))
        }
      }
      for contender in contenders {
        report.addLoadPoint(contender.name, planned: peakRate * fraction, outcomes[contender.name] ?? [])
      }
    }
  }

  /// Measures the memory per entry beyond key and value as growth of the resident set. The first entries do not count,
  /// because they include one-time allocations.
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
    loadCount += 1
    return try plan.load(work, on: server.contender, at: server.address, number: loadCount)
  }

  /// Runs a load, and repeats it if other processes used much CPU time meanwhile, unless that happens all the time.
  private mutating func runLoad(_ load: LoadPlan, _ server: RunningServer) throws -> LoadOutcome {
    var outcome = try load.run(probe: server.probe)
    measured += 1
    while let use = outcome.server, use.othersLoad > ServerUse.disturbanceThreshold {
      guard Double(repeated) < 10 + 0.25 * Double(measured) else {
        disturbed += 1
        break
      }
      repeated += 1
      outcome = try load.run(probe: server.probe)
    }
    guard !outcome.tally.hasFailures, outcome.tally.misses == 0 else {
      throw BenchError("\(server.contender.name) failed in \(load.workload.name): \(outcome.tally.failures)")
    }
    return outcome
  }

  private func supports(_ work: ComparisonPlan.Work, _ server: RunningServer) throws -> Bool {
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
  /// Returns the elements rotated to the left.
  func rotated(by distance: Int) -> Self {
    guard !isEmpty else { return [] }
    let first = distance % count
    return Array(self[first...] + self[..<first])
  }
}
