import Glibc

/// How long a server takes from its start until it answers a get.
extension DurableBench {
  mutating func measureRestart() throws {
    let contenders = [try Contender.larder(engine: "log?durability=always"), Contender.redis(fsync: "always")]
    var servers = try contenders.compactMap(\.self).map { try start($0, keys: plan.keysOfRestart) }
    defer { end(servers) }
    for server in servers where server.contender.protocolName == .resp { try rewriteFile(of: server) }
    for (work, signal) in [(DurableWork.restart, SIGTERM), (.restartKilled, SIGKILL)] {
      var times: [String: [Double]] = [:]
      for round in 0..<plan.repeats {
        for index in Array(servers.indices).rotated(by: round) {
          let name = servers[index].contender.name
          show("round \(round + 1) of \(plan.repeats): \(work.rawValue): \(name)")
          let time: Double
          (servers[index], time) = try restart(servers[index], after: signal)
          times[name, default: []].append(time)
        }
      }
      for server in servers { report.addRestart(work, server.contender.name, times[server.contender.name] ?? []) }
    }
  }

  /// Ends the server just after it has written, and starts it again.
  private mutating func restart(_ server: RunningServer, after signal: Int32) throws -> (RunningServer, Double) {
    let keys = plan.keysOfRestart
    try plan.load("put", server, keys: keys, seed: plan.seed).loadKeys(from: keys - keys / 100)
    let isLarder = server.contender.protocolName == .larder
    let entries = isLarder ? try LogStatus(of: server).entries : 0
    server.stop(by: signal)
    var random = Random(seed: nextSeed())
    let key = random.below(UInt64(keys))
    let begin = Clocks.now()
    let again = try RunningServer(server.contender, in: sockets, data: server.data)
    let check = TargetCheck(address: again.address)
    while !check.finds(key, valueSize: plan.valueSize, server.contender.protocolName) {
      guard Clocks.now() - begin < 60_000_000_000 else {
        throw BenchError("\(server.contender.name) has not found a key within a minute of its start")
      }
      usleep(500)
    }
    let time = Double(Clocks.now() - begin) / 1e9
    if isLarder {
      let found = try LogStatus(of: again).entries
      guard found == entries else { throw BenchError("\(found) entries are there after a start, of \(entries) before") }
    }
    return (again, time)
  }

  /// Has Redis write its file anew, as it does by itself in time: it reads that faster.
  private func rewriteFile(of server: RunningServer) throws {
    show("rewriting the file of \(server.contender.name)")
    let line = try SetupLine(to: server.address)
    let target = RespTarget(store: "", valueSize: 0, keysInGetMany: 1)
    func ask(_ command: String) throws -> String {
      let answer = try line.ask(Array("\(command)\r\n".utf8)) { bytes in
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
    throw BenchError("\(server.contender.name) does not finish writing its file")
  }
}
