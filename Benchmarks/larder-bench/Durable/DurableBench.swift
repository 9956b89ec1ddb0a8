import Foundation
import Glibc
import Platform

/// A benchmark of durable stores, which compares them with peers in works that have goals.
struct DurableBench {
  private let plan: DurablePlan
  /// The folder of the sockets, whose paths must be short.
  private let sockets: TemporaryFolder
  /// The folder of the servers' data.
  private let disk: TemporaryFolder
  private var report: DurableReport
  private let display: LiveProgress
  private let start = Clocks.now()
  /// The number of turns so far, which makes their random numbers differ.
  private var turns: UInt64 = 0

  init(_ plan: DurablePlan, sockets: TemporaryFolder, disk: TemporaryFolder, display: LiveProgress) {
    self.plan = plan
    self.sockets = sockets
    self.disk = disk
    self.display = display
    report = DurableReport(plan, fileSystem: Mount(holding: disk.path)?.description ?? "unknown")
  }

  mutating func run() throws -> DurableReport {
    let all = try ProcessorSet.ofCurrentThread()
    defer { try? all.restrictCurrentThread() }
    for part in plan.parts {
      // Processes inherit this thread's processors. Restarts use all of them, because no load runs meanwhile.
      try (part == .restart ? all : plan.processors?.servers ?? all).restrictCurrentThread()
      switch part {
      case .always: try measureSets(.always, durability: "always", fsync: "always")
      case .clients: try measureClients()
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

  /// Starts a server with its own data folder, checks its replies and loads the keys.
  private mutating func start(_ contender: Contender, keys: Int) throws -> RunningServer {
    show("loading \(contender.name)")
    report.addContender(contender)
    let data = disk.makePath(contender.protocolName.rawValue)
    let server = try RunningServer(contender, in: sockets, data: data)
    do { try TargetCheck(address: server.address).run(contender.protocolName) } catch {
      throw BenchError("\(contender.name) does not answer correctly: \(error)")
    }
    try plan.load("put", server, keys: keys, seed: plan.seed).loadKeys()
    return server
  }

  /// Stops servers and removes their data.
  private func discard(_ servers: [RunningServer]) {
    for server in servers {
      server.stop()
      if let data = server.data { try? FileManager.default.removeItem(atPath: data) }
    }
  }

  /// Measures the participants in rounds. Each round starts with a different participant.
  private mutating func measureInTurns(_ work: DurableWork, _ participants: [Participant]) throws {
    var outcomes: [String: [LoadOutcome]] = [:]
    for round in 0..<plan.repeats {
      for participant in participants.rotated(by: round) {
        show("round \(round + 1) of \(plan.repeats): \(work.name): \(participant.name)")
        outcomes[participant.name, default: []].append(try participant.runTurn(nextSeed()))
      }
    }
    for participant in participants { report.add(work, participant.name, outcomes[participant.name] ?? []) }
  }

  /// Runs a load on a server.
  /// - Throws: `BenchError` if a request fails or a key is missing.
  private func runLoad(_ load: LoadPlan, _ server: RunningServer) throws -> LoadOutcome {
    let outcome = try load.run(probe: server.probe)
    guard !outcome.tally.hasFailures, outcome.tally.misses == 0 else {
      throw BenchError("\(server.contender.name) failed in \(load.workload.name): \(outcome.tally.failures)")
    }
    return outcome
  }

  private mutating func nextSeed() -> UInt64 {
    turns += 1
    return plan.seed &+ turns
  }

  private func show(_ text: String) {
    display.show("\(Int(Double(Clocks.now() - start) / 1e9)) s  \(text)")
  }
}

/// A participant in a work: a server, or a bare writer.
private struct Participant {
  let name: String
  /// Runs one turn with the given seed.
  let runTurn: (UInt64) throws -> LoadOutcome
}

// MARK: Works that all contenders run in turns

extension DurableBench {
  private mutating func measureSets(_ work: DurableWork, durability: String, fsync: String) throws {
    let contenders = [try Contender.larder(engine: "log?durability=\(durability)"), Contender.redis(fsync: fsync)]
    let servers = try contenders.compactMap(\.self).map { try start($0, keys: plan.keys) }
    defer { discard(servers) }
    try measureInTurns(work, servers.map { participant($0, "put", pipeline: DurablePlan.pipeline) })
  }

  private mutating func measureClients() throws {
    var servers = [try start(.makeSyncedEcho(), keys: 0)]
    defer { discard(servers) }
    servers.append(try start(.larder(engine: Self.log), keys: plan.keys))
    let redis = try Contender.redis(fsync: "always").map { try start($0, keys: plan.keys) }
    defer { discard([redis].compactMap(\.self)) }
    let bare = try [DurableReport.bareAppending, DurableReport.barePreallocated].map { name in
      var writer = try BareWriter(
        disk.makePath("bare"), keySize: BenchKey.size, valueSize: plan.valueSize,
        isPreallocated: name == DurableReport.barePreallocated)
      let turn = plan.turn
      return Participant(name: name) { _ in try writer.run(for: turn) }
    }
    for count in DurablePlan.clientCounts {
      let isAlone = count == 1
      let compared = servers + (isAlone ? [redis].compactMap(\.self) : [])
      try measureInTurns(
        .clients(count), compared.map { participant($0, "put", connections: count) } + (isAlone ? bare : []))
    }
  }

  private mutating func measureGets() throws {
    let log = try start(.larder(engine: "log"), keys: plan.keys)
    defer { discard([log]) }
    let memory = try start(.larder(Contender.memoryStore, engine: "memory"), keys: plan.keys)
    defer { discard([memory]) }
    try measureInTurns(.get, [log, memory].map { participant($0, "get") })
    try measureInTurns(.getPipelined, [log, memory].map { participant($0, "get", pipeline: DurablePlan.pipeline) })
  }

  private mutating func measureDirectory() throws {
    let server = try start(.larder(Contender.directoryStore, engine: "directory"), keys: plan.keysOfDirectory)
    defer { discard([server]) }
    try measureInTurns(.clients(1), [participant(server, "put", connections: 1, keys: plan.keysOfDirectory)])
    try measureInTurns(
      .always, [participant(server, "put", pipeline: DurablePlan.pipeline, keys: plan.keysOfDirectory)])
  }

  private func participant(
    _ server: RunningServer, _ workload: String, connections: Int = DurablePlan.connections, pipeline: Int = 1,
    keys: Int? = nil
  ) -> Participant {
    Participant(name: server.contender.name) { seed in
      var load = try plan.load(workload, server, keys: keys ?? plan.keys, seed: seed)
      load.connections = connections
      load.pipeline = pipeline
      return try runLoad(load, server)
    }
  }
}

// MARK: The costs of a log beyond its commits: compaction and written bytes

extension DurableBench {
  private static let log = "log?durability=always"

  /// Measures sets at a constant rate on a new store per round, first without garbage and then during steady
  /// compaction.
  private mutating func measureCompaction() throws {
    let rate = try latencyRate()
    var rounds: [DurableWork: [LogTurn]] = [:]
    for round in 0..<plan.repeats {
      let server = try startWithLargeValues()
      defer { discard([server]) }
      for work in [DurableWork.quiet, .compacting] {
        // Overwrite all keys, and half of them again: from then on, any further garbage triggers compaction.
        if work == .compacting {
          show("round \(round + 1) of \(plan.repeats): making garbage")
          _ = try overwrite(server, plan.keysOfCompaction, valueSize: plan.valueSizeOfCompaction, times: 1.5)
        }
        show("round \(round + 1) of \(plan.repeats): \(work.name)")
        var load = try plan.load("put", server, keys: plan.keysOfCompaction, seed: nextSeed())
        load.pipeline = DurablePlan.pipeline
        load.rate = rate
        if work == .quiet { try waitUntilCompacted(server) }
        let before = try LogStatus(of: server)
        let outcome = try runLoad(load, server)
        rounds[work, default: []].append(LogTurn(outcome, before: before, after: try LogStatus(of: server)))
      }
    }
    for work in [DurableWork.quiet, .compacting] { report.add(work, rounds[work] ?? []) }
  }

  private mutating func startWithLargeValues() throws -> RunningServer {
    let server = try start(.larder(engine: Self.log), keys: 0)
    var load = try plan.load("put", server, keys: plan.keysOfCompaction, seed: plan.seed)
    load.valueSize = plan.valueSizeOfCompaction
    try load.loadKeys()
    return server
  }

  /// Determines the rate of sets per second for latency measurements.
  private mutating func latencyRate() throws -> Double {
    let server = try start(.larder(engine: Self.log), keys: plan.keys)
    defer { discard([server]) }
    let peakRate = try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 3).rate
    let limit = DurablePlan.latencySetsOfKey * Double(plan.keysOfCompaction) / plan.turn.seconds
    return min(peakRate * DurablePlan.latencyLoad, limit)
  }

  /// Writes random keys at full speed, `times` as many as there are keys.
  private mutating func overwrite(
    _ server: RunningServer, _ keys: Int, valueSize: Int, times: Double
  ) throws -> LoadOutcome {
    var load = try plan.load("put", server, keys: keys, seed: nextSeed())
    load.valueSize = valueSize
    load.pipeline = DurablePlan.pipeline
    load.requests = Int(Double(keys) * times)
    return try runLoad(load, server)
  }

  /// Waits until compaction has processed the garbage of the initial load.
  private func waitUntilCompacted(_ server: RunningServer) throws {
    var last = -1
    for _ in 0..<100 {
      let bytes = try LogStatus(of: server).compactionBytes
      if bytes == last { return }
      last = bytes
      usleep(100_000)
    }
  }

  /// Overwrites random keys until the share of garbage is steady, then counts the bytes that further sets write.
  private mutating func measureBytes() throws {
    let server = try start(.larder(engine: Self.log), keys: plan.keys)
    defer { discard([server]) }
    _ = try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 3)
    let putByteCount = Double(BenchKey.size + plan.valueSize)
    var reported: [Double] = []
    var observed: [Double] = []
    var garbage: [Double] = []
    for round in 0..<plan.repeats {
      show("round \(round + 1) of \(plan.repeats): \(DurableWork.garbage.name)")
      let (before, observedBefore) = (try LogStatus(of: server), server.probe.writtenBytes)
      let puts = Double(try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 5).tally.answered)
      let (after, observedAfter) = (try LogStatus(of: server), server.probe.writtenBytes)
      reported.append(Double(after.writtenBytes - before.writtenBytes) / (puts * putByteCount))
      if let observedBefore, let observedAfter {
        observed.append(Double(observedAfter - observedBefore) / (puts * putByteCount))
      }
      garbage.append(after.garbage)
    }
    report.addBytes(reported: reported, observed: observed, garbage: garbage)
  }
}

// MARK: The time from a server's start until it replies to a get

extension DurableBench {
  private mutating func measureRestart() throws {
    let contenders = [try Contender.larder(engine: "log?durability=always"), Contender.redis(fsync: "always")]
    var servers = try contenders.compactMap(\.self).map { try start($0, keys: plan.keysOfRestart) }
    defer { discard(servers) }
    for server in servers where server.contender.protocolName == .resp { try rewriteFile(of: server) }
    for (work, signal) in [(DurableWork.restart, SIGTERM), (.restartKilled, SIGKILL)] {
      var times: [String: [Double]] = [:]
      for round in 0..<plan.repeats {
        for index in Array(servers.indices).rotated(by: round) {
          let name = servers[index].contender.name
          show("round \(round + 1) of \(plan.repeats): \(work.name): \(name)")
          let time: Double
          (servers[index], time) = try restart(servers[index], after: signal)
          times[name, default: []].append(time)
        }
      }
      for server in servers { report.addRestart(work, server.contender.name, times[server.contender.name] ?? []) }
    }
  }

  /// Stops the server right after writes and starts it again. Returns the new server and the time until its first get.
  private mutating func restart(_ server: RunningServer, after signal: Int32) throws -> (RunningServer, Double) {
    let keys = plan.keysOfRestart
    try plan.load("put", server, keys: keys, seed: plan.seed).loadKeys(from: keys - keys / 100)
    let isLarder = server.contender.protocolName == .larder
    let entries = isLarder ? try LogStatus(of: server).entries : 0
    server.stop(by: signal)
    var random = Random(seed: nextSeed())
    let key = random.below(UInt64(keys))
    let startTime = Clocks.now()
    let restarted = try RunningServer(server.contender, in: sockets, data: server.data)
    let check = TargetCheck(address: restarted.address)
    while !check.canRead(key, valueSize: plan.valueSize, server.contender.protocolName) {
      guard Clocks.now() - startTime < 60_000_000_000 else {
        throw BenchError("\(server.contender.name) did not return a key within a minute of its start")
      }
      usleep(500)
    }
    let time = Double(Clocks.now() - startTime) / 1e9
    if isLarder {
      let found = try LogStatus(of: restarted).entries
      guard found == entries else { throw BenchError("\(found) of \(entries) entries exist after a restart") }
    }
    return (restarted, time)
  }

  /// Makes Redis rewrite its append-only file, which it then reads faster. By default Redis does so automatically.
  private func rewriteFile(of server: RunningServer) throws {
    show("rewriting the append-only file of \(server.contender.name)")
    let connection = try SetupConnection(to: server.address)
    let target = RespTarget(store: "", valueSize: 0, keysPerRequest: 1)
    func ask(_ command: String) throws -> String {
      let answer = try connection.exchange(Array("\(command)\r\n".utf8)) { bytes in
        if case .reply(let reply) = target.scan(bytes, at: 0) { reply.end } else { nil }
      }
      return String(decoding: answer, as: UTF8.self)
    }
    _ = try ask("BGREWRITEAOF")
    for _ in 0..<600 {
      let state = try ask("INFO persistence")
      if state.contains("aof_rewrite_in_progress:0"), state.contains("aof_rewrite_scheduled:0") { return }
      usleep(100_000)
    }
    throw BenchError("\(server.contender.name) does not finish rewriting its file")
  }
}
