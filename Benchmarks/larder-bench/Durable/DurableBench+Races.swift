/// The works that all contenders do in turn.
extension DurableBench {
  mutating func measureSets(_ work: DurableWork, durability: String, fsync: String) throws {
    let contenders = [try Contender.larder(engine: "log?durability=\(durability)"), Contender.redis(fsync: fsync)]
    let servers = try contenders.compactMap(\.self).map { try start($0, keys: plan.keys) }
    defer { end(servers) }
    try race(work, servers.map { racer($0, "put", pipeline: DurablePlan.pipeline) })
  }

  mutating func measureSingleClient() throws {
    let contenders = [try Contender.larder(engine: "log?durability=always"), Contender.redis(fsync: "always")]
    let servers = try contenders.compactMap(\.self).map { try start($0, keys: plan.keys) }
    defer { end(servers) }
    let bare = try [DurableReport.bareAppending, DurableReport.barePreallocated].map { name in
      var writer = try BareWriter(
        disk.makePath("bare"), keySize: BenchKey.size, valueSize: plan.valueSize,
        isPreallocated: name == DurableReport.barePreallocated)
      let turn = plan.turn
      return Racer(name: name) { _ in try writer.run(for: turn) }
    }
    try race(.single, servers.map { racer($0, "put", connections: 1) } + bare)
  }

  mutating func measureGets() throws {
    let log = try start(.larder(engine: "log"), keys: plan.keys)
    defer { end([log]) }
    let memory = try start(.larder(Contender.memoryStore, engine: "memory"), keys: plan.keys)
    defer { end([memory]) }
    try race(.get, [log, memory].map { racer($0, "get") })
    try race(.getPipelined, [log, memory].map { racer($0, "get", pipeline: DurablePlan.pipeline) })
  }

  mutating func measureDirectory() throws {
    let server = try start(.larder(Contender.directoryStore, engine: "directory"), keys: plan.keysOfDirectory)
    defer { end([server]) }
    try race(.single, [racer(server, "put", connections: 1, keys: plan.keysOfDirectory)])
    try race(.always, [racer(server, "put", pipeline: DurablePlan.pipeline, keys: plan.keysOfDirectory)])
  }

  private func racer(
    _ server: RunningServer, _ workload: String, connections: Int = DurablePlan.connections, pipeline: Int = 1,
    keys: Int? = nil
  ) -> Racer {
    Racer(name: server.contender.name) { seed in
      var load = try plan.load(workload, server, keys: keys ?? plan.keys, seed: seed)
      load.connections = connections
      load.pipeline = pipeline
      return try take(load, server)
    }
  }
}
