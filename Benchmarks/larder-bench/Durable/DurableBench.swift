import Foundation
import Glibc
import Platform

/// A benchmark of durable stores, which compares them with peers in works that have goals.
struct DurableBench {
  let plan: DurablePlan
  let runner: BenchRunner
  private(set) var report: BenchReport

  static let bareAppending = "write and fdatasync, appending"
  static let barePreallocated = "write and fdatasync, preallocated"
  static let compactions = Quantity("compactions in a turn", "compactions")
  static let compactedBytes = Quantity("bytes compacted a second", "bytes/s")
  static let writtenBytes = Quantity("bytes written a byte put", "")
  static let writtenBytesObserved = Quantity("bytes written a byte put, as the system counts", "")
  static let garbage = Quantity("garbage in the log", "part")

  init(_ plan: DurablePlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
    report = BenchReport(
      "durable", title: "Durable stores", fileSystem: Mount(holding: runner.disk.path)?.description ?? "unknown")
  }

  mutating func run() throws -> BenchReport {
    for part in plan.parts {
      // Restarts use all processors, because no load runs meanwhile.
      try part == .restart ? measureRestart() : runner.onServers { try measure(part) }
    }
    report.finish(rows, sections: sections)
    return report
  }

  private mutating func measure(_ part: DurablePart) throws {
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

  /// Starts a server with its own data folder and loads the keys. Checks its replies if it is the first one of its kind.
  private mutating func start(_ contender: Contender, keys: Int) throws -> RunningServer {
    if report.add(contender) { try runner.check(contender) }
    return try runner.start(contender) { try load("put", $0, keys: keys) }
  }

  private func load(_ workload: String, _ server: RunningServer, keys: Int) throws -> LoadPlan {
    var load = try runner.load(workload, server)
    load.keys = keys
    return load
  }

  /// Measures the participants in turns.
  private mutating func measureInTurns(_ work: DurableWork, _ participants: [Participant]) throws {
    let turns = try runner.takeTurns(at: [work], participants) {
      "\($0.name): \($1.name)"
    } _: {
      try $1.runTurn()
    }
    for (participant, outcomes) in zip(participants, turns[0]) { report.add(work.name, participant.name, outcomes) }
  }
}

/// A participant in a work: a server, or a bare writer.
private struct Participant {
  let name: String
  let runTurn: () throws -> LoadOutcome
}

// MARK: Works that all contenders run in turns

extension DurableBench {
  private mutating func measureSets(_ work: DurableWork, durability: String, fsync: String) throws {
    let contenders = [try Contender.larder(engine: "log?durability=\(durability)"), Contender.redis(fsync: fsync)]
    let servers = try contenders.compactMap(\.self).map { try start($0, keys: plan.keys) }
    defer { runner.discard(servers) }
    try measureInTurns(work, servers.map { participant($0, "put", pipeline: DurablePlan.pipeline) })
  }

  private mutating func measureClients() throws {
    var servers = [try start(.makeSyncedEcho(), keys: 0)]
    defer { runner.discard(servers) }
    servers.append(try start(.larder(engine: Self.log), keys: plan.keys))
    let redis = try Contender.redis(fsync: "always").map { try start($0, keys: plan.keys) }
    defer { runner.discard([redis].compactMap(\.self)) }
    let bare = try [Self.bareAppending, Self.barePreallocated].map { name in
      var writer = try BareWriter(
        runner.disk.makePath("bare"), keySize: BenchKey.size, valueSize: plan.valueSize,
        isPreallocated: name == Self.barePreallocated)
      let turn = plan.turn
      return Participant(name: name) { try writer.run(for: turn) }
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
    defer { runner.discard([log]) }
    let memory = try start(.larder(Contender.memoryStore, engine: "memory"), keys: plan.keys)
    defer { runner.discard([memory]) }
    try measureInTurns(.get, [log, memory].map { participant($0, "get") })
    try measureInTurns(.getPipelined, [log, memory].map { participant($0, "get", pipeline: DurablePlan.pipeline) })
  }

  private mutating func measureDirectory() throws {
    let server = try start(.larder(Contender.directoryStore, engine: "directory"), keys: plan.keysOfDirectory)
    defer { runner.discard([server]) }
    try measureInTurns(.clients(1), [participant(server, "put", connections: 1, keys: plan.keysOfDirectory)])
    try measureInTurns(
      .always, [participant(server, "put", pipeline: DurablePlan.pipeline, keys: plan.keysOfDirectory)])
  }

  private func participant(
    _ server: RunningServer, _ workload: String, connections: Int? = nil, pipeline: Int = 1, keys: Int? = nil
  ) -> Participant {
    Participant(name: server.contender.name) {
      var load = try load(workload, server, keys: keys ?? plan.keys)
      load.connections = connections ?? plan.connections
      load.pipeline = pipeline
      return try runner.run(load, server)
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
      defer { runner.discard([server]) }
      for work in [DurableWork.quiet, .compacting] {
        // Overwrite all keys, and half of them again: from then on, any further garbage triggers compaction.
        if work == .compacting {
          runner.show("round \(round + 1) of \(plan.repeats): making garbage")
          _ = try overwrite(server, plan.keysOfCompaction, valueSize: plan.valueSizeOfCompaction, times: 1.5)
        }
        runner.show("round \(round + 1) of \(plan.repeats): \(work.name)")
        var load = try load("put", server, keys: plan.keysOfCompaction)
        load.pipeline = DurablePlan.pipeline
        load.rate = rate
        if work == .quiet { try waitUntilCompacted(server) }
        let before = try LogStatus(of: server)
        let outcome = try runner.run(load, server)
        rounds[work, default: []].append(LogTurn(outcome, before: before, after: try LogStatus(of: server)))
      }
    }
    for work in [DurableWork.quiet, .compacting] {
      let turns = rounds[work] ?? []
      report.add(work.name, Contender.larder, turns.map(\.outcome))
      report.figures.add(work.name, Self.compactions, turns.map { Double($0.compactions) })
      report.figures.add(work.name, Self.compactedBytes, turns.map(\.compactedBytesPerSecond))
    }
  }

  private mutating func startWithLargeValues() throws -> RunningServer {
    let server = try start(.larder(engine: Self.log), keys: 0)
    var load = try load("put", server, keys: plan.keysOfCompaction)
    load.valueSize = plan.valueSizeOfCompaction
    try load.loadKeys()
    return server
  }

  /// Determines the rate of sets per second for latency measurements.
  private mutating func latencyRate() throws -> Double {
    let server = try start(.larder(engine: Self.log), keys: plan.keys)
    defer { runner.discard([server]) }
    let peakRate = try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 3).rate
    let limit = DurablePlan.latencySetsOfKey * Double(plan.keysOfCompaction) / plan.turn.seconds
    return min(peakRate * DurablePlan.latencyLoad, limit)
  }

  /// Writes random keys at full speed, `times` as many as there are keys.
  private func overwrite(
    _ server: RunningServer, _ keys: Int, valueSize: Int, times: Double
  ) throws -> LoadOutcome {
    var load = try load("put", server, keys: keys)
    load.valueSize = valueSize
    load.pipeline = DurablePlan.pipeline
    load.requests = Int(Double(keys) * times)
    return try runner.run(load, server)
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
    defer { runner.discard([server]) }
    _ = try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 3)
    let putByteCount = Double(BenchKey.size + plan.valueSize)
    var reported: [Double] = []
    var observed: [Double] = []
    var garbage: [Double] = []
    for round in 0..<plan.repeats {
      runner.show("round \(round + 1) of \(plan.repeats): \(DurableWork.garbage.name)")
      let (before, observedBefore) = (try LogStatus(of: server), server.probe.writtenBytes)
      let puts = Double(try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 5).tally.answered)
      let (after, observedAfter) = (try LogStatus(of: server), server.probe.writtenBytes)
      reported.append(Double(after.writtenBytes - before.writtenBytes) / (puts * putByteCount))
      if let observedBefore, let observedAfter {
        observed.append(Double(observedAfter - observedBefore) / (puts * putByteCount))
      }
      garbage.append(after.garbage)
    }
    let work = DurableWork.garbage.name
    report.figures.add(work, Self.writtenBytes, reported)
    report.figures.add(work, Self.writtenBytesObserved, observed)
    report.figures.add(work, Self.garbage, garbage)
  }
}

// MARK: The time from a server's start until it replies to a get

extension DurableBench {
  private mutating func measureRestart() throws {
    let contenders = [try Contender.larder(engine: Self.log), Contender.redis(fsync: "always")]
    var servers = try contenders.compactMap(\.self).map { try start($0, keys: plan.keysOfRestart) }
    defer { runner.discard(servers) }
    for server in servers where server.contender.protocolName == .resp { try rewriteFile(of: server) }
    let works = [(DurableWork.restart, SIGTERM), (.restartKilled, SIGKILL)]
    let names = servers.map(\.contender.name)
    for (work, signal) in works {
      let turns = try runner.takeTurns(at: [work], Array(servers.indices)) {
        "\($0.name): \(names[$1])"
      } _: { _, index in
        let (server, time) = try restart(servers[index], after: signal)
        servers[index] = server
        return time
      }
      for (name, times) in zip(names, turns[0]) { report.figures.add(work.name, .firstGet, of: name, times) }
    }
  }

  /// Stops the server right after writes and starts it again. Returns the new server and the time until its first get.
  private func restart(_ server: RunningServer, after signal: Int32) throws -> (RunningServer, Double) {
    let keys = plan.keysOfRestart
    try load("put", server, keys: keys).loadKeys(from: keys - keys / 100)
    let isLarder = server.contender.protocolName == .larder
    let entries = isLarder ? try LogStatus(of: server).entries : 0
    server.stop(by: signal)
    var random = Random(seed: runner.nextSeed())
    let key = random.below(UInt64(keys))
    let startTime = Clocks.now()
    let restarted = try RunningServer(server.contender, in: runner.sockets, data: server.data)
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
    runner.show("rewriting the append-only file of \(server.contender.name)")
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
