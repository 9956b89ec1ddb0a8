import Foundation
import Platform

/// Measures durable stores beside their peers, by the work that they have goals for.
struct DurableBench {
  let plan: DurablePlan
  /// Where sockets are, whose paths must be short, and where the servers keep their data.
  let sockets: TemporaryFolder
  let disk: TemporaryFolder
  var report: DurableReport
  private let display: LiveProgress
  private let start = Clocks.now()
  /// Turns, by which their random numbers differ.
  private var turns: UInt64 = 0

  init(_ plan: DurablePlan, sockets: TemporaryFolder, disk: TemporaryFolder, display: LiveProgress) {
    self.plan = plan
    self.sockets = sockets
    self.disk = disk
    self.display = display
    report = DurableReport(plan, fileSystem: Mount(holding: disk.path)?.description ?? "unknown")
  }

  mutating func run() throws -> DurableReport {
    let all = try ProcessorSet.ofThread()
    defer { try? all.confineThread() }
    for part in plan.parts {
      // What this thread starts keeps to the same processors. A start has them all: nothing else is at work then.
      try (part == .restart ? all : plan.processors?.servers ?? all).confineThread()
      switch part {
      case .always: try measureSets(.always, durability: "always", fsync: "always")
      case .single: try measureSingleClient()
      case .interval: try measureSets(.interval, durability: "interval:1s", fsync: "everysec")
      case .get: try measureGets()
      case .compaction: try measureCompaction()
      case .bytes: try measureBytes()
      case .restart: try measureRestart()
      case .directory: try measureDirectory()
      }
    }
    report.finish(seconds: Double(Clocks.now() - start) / 1e9)
    return report
  }

  /// A server with a folder of its own, which answers correctly and has the keys.
  mutating func start(_ contender: Contender, keys: Int) throws -> RunningServer {
    show("loading \(contender.name)")
    report.note(contender)
    let data = disk.makePath(contender.protocolName.rawValue)
    let server = try RunningServer(contender, in: sockets, data: data)
    do { try TargetCheck(address: server.address).run(contender.protocolName) } catch {
      throw BenchError("\(contender.name) does not answer correctly: \(error)")
    }
    try plan.load("put", server, keys: keys, seed: plan.seed).loadKeys()
    return server
  }

  /// Ends servers for good, and removes what they kept.
  func end(_ servers: [RunningServer]) {
    for server in servers {
      server.stop()
      if let data = server.data { try? FileManager.default.removeItem(atPath: data) }
    }
  }

  /// Each racer's turns, again and again; who begins changes.
  mutating func race(_ work: DurableWork, _ racers: [Racer]) throws {
    var outcomes: [String: [LoadOutcome]] = [:]
    for round in 0..<plan.repeats {
      for racer in racers.rotated(by: round) {
        show("round \(round + 1) of \(plan.repeats): \(work.rawValue): \(racer.name)")
        outcomes[racer.name, default: []].append(try racer.takeTurn(nextSeed()))
      }
    }
    for racer in racers { report.add(work, racer.name, outcomes[racer.name] ?? []) }
  }

  /// Runs a load on a server, of which everything must be answered.
  func take(_ load: LoadPlan, _ server: RunningServer) throws -> LoadOutcome {
    let outcome = try load.run(probe: server.probe)
    guard !outcome.tally.hasFailures, outcome.tally.misses == 0 else {
      throw BenchError("\(server.contender.name) failed at \(load.workload.name): \(outcome.tally.failures)")
    }
    return outcome
  }

  mutating func nextSeed() -> UInt64 {
    turns += 1
    return plan.seed &+ turns
  }

  func show(_ text: String) {
    display.show("\(Int(Double(Clocks.now() - start) / 1e9)) s  \(text)")
  }
}

/// Who takes turns at a work.
struct Racer {
  let name: String
  /// With the seed of the turn's random numbers.
  let takeTurn: (UInt64) throws -> LoadOutcome
}
