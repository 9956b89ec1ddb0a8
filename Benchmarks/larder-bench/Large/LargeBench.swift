import Platform

/// A comparison of large requests: what they cost, and what they cost others.
struct LargeBench {
  let plan: LargePlan
  let runner: BenchRunner
  private(set) var report = BenchReport("large", title: "Large requests")
  /// The works that were not measured, with the reasons.
  private(set) var notes: [String] = []

  static let generatorLoad = Quantity("load of the generator", "cores")
  static let largeGets = Quantity("large gets", "per second", isBetterLower: false)

  init(_ plan: LargePlan, _ runner: BenchRunner) {
    self.plan = plan
    self.runner = runner
  }

  mutating func run() throws -> BenchReport {
    let contenders = try Contender.overTCP().filter { plan.includesPeers || !$0.isPeer }
    try runner.onServers {
      for contender in contenders {
        report.add(contender)
        try runner.check(
          contender, sizes: [1] + plan.loads.map(\.valueSize) + [plan.neighborSize], keysPerSize: 3)
      }
      for part in plan.parts {
        switch part {
        case .large: for load in plan.loads { try measure(load, contenders) }
        case .isolation: try measureIsolation(contenders)
        case .memory: try measureMemory(contenders)
        case .stall: try measureStall()
        }
      }
    }
    report.finish(rows, sections: sections)
    return report
  }

  // MARK: Large values in a closed loop

  private mutating func measure(_ load: LargeLoad, _ contenders: [Contender]) throws {
    let servers = try contenders.map { try runner.start($0) { try load.turn("put", $0, runner) } }
    defer { runner.discard(servers) }
    let works = ["get", "put"]
    let turns = try runner.takeTurns(at: works, servers) {
      "\(load.name($0)): \($1.contender.name)"
    } _: { work, server in
      try runner.run(load.turn(work, server, runner), server)
    }
    for (work, turns) in zip(works, turns) {
      for (contender, outcomes) in zip(contenders, turns) {
        report.add(load.name(work), contender.name, outcomes)
        report.figures.add(load.name(work), Self.generatorLoad, of: contender.name, outcomes.map(\.generatorLoad))
      }
    }
  }

  // MARK: Small gets beside large ones

  private mutating func measureIsolation(_ contenders: [Contender]) throws {
    let servers = try contenders.map { contender in
      runner.show("loading \(contender.name)")
      let server = try runner.start(contender)
      try gets(of: server).load()
      return server
    }
    defer { runner.discard(servers) }
    let works = [PacedWork.alone, .besideLargeGets]
    let turns = try runner.takeTurns(at: works, servers) {
      "\($0.name): \($1.contender.name)"
    } _: { work, server -> (tally: Tally, largeGetsPerSecond: Double) in
      let (gets, seed) = (gets(of: server), runner.nextSeed())
      return try runner.onGenerator {
        guard case .besideLargeGets = work else { return (tally: try gets.run(seed: seed), largeGetsPerSecond: 0) }
        return try gets.runBesideLargeGets(seed: seed)
      }
    }
    for (work, turns) in zip(works, turns) {
      for (contender, turns) in zip(contenders, turns) { addLatencies(work, contender.name, turns.map(\.tally)) }
    }
    for (contender, turns) in zip(contenders, turns[1]) {
      report.figures.add(
        PacedWork.besideLargeGets.name, Self.largeGets, of: contender.name, turns.map(\.largeGetsPerSecond))
    }
  }

  private func gets(of server: RunningServer) -> any NeighborGets {
    switch server.contender.protocolName {
    case .resp: ValueNeighborGets<RespTarget>(plan, at: server.address)
    case .larder, .memcached, .echo: ValueNeighborGets<LarderTarget>(plan, at: server.address)
    }
  }

  private mutating func addLatencies(_ work: PacedWork, _ contender: String, _ tallies: [Tally]) {
    for (quantity, percentile) in [(Quantity.p50, 50), (.p99, 99), (.p999, 99.9)] {
      report.figures.add(work.name, quantity, of: contender, tallies.map { $0.microseconds(percentile) })
    }
  }

  // MARK: Memory after bursts, and a disk that stalls

  private mutating func measureMemory(_ contenders: [Contender]) throws {
    var bench = MemoryBursts(plan, runner)
    for contender in contenders {
      runner.show("overwriting large values: \(contender.name)")
      try bench.overwrite(contender)
    }
    runner.show("sending half frames")
    try bench.sendHalfFrames(contenders[0])
    runner.show("reading no replies")
    try bench.leaveRepliesUnread(contenders[0])
    runner.show("resting for \(Int(plan.rest.seconds)) s")
    report.figures.add(bench.measureAfterRest())
  }

  private mutating func measureStall() throws {
    runner.show("preparing a disk that stalls")
    let server: StallingServer
    do { server = try StallingServer(sockets: runner.sockets, disk: runner.disk) } catch {
      return notes.append("A disk that stalls was not measured: \(error).")
    }
    defer { server.stop() }
    report.add(server.contender)
    let stores = StallingServer.healthyStores
    let gets = stores.map {
      PacedValueGets<LarderTarget>(
        address: server.address, store: $0, keys: 0..<LargePlan.smallKeys, valueSize: LargePlan.smallSize,
        rate: LargePlan.smallRate)
    }
    for gets in gets { try gets.load() }
    let states = [false, true]
    let turns = try runner.takeTurns(at: states, [gets]) { isStalled, _ in
      "gets \(isStalled ? "while a disk stalls" : "of healthy stores")"
    } _: { isStalled, gets in
      let stall = isStalled ? try server.stall() : nil
      let tallies = try gets.map { gets in
        let seed = runner.nextSeed()
        return try runner.onGenerator { try gets.run(for: plan.pacedTurn / stores.count, seed: seed) }
      }
      try stall?.end()
      return tallies
    }
    for (isStalled, turns) in zip(states, turns) {
      for (index, store) in stores.enumerated() {
        addLatencies(.stall(store: store, isStalled: isStalled), Contender.larder, turns[0].map { $0[index] })
      }
    }
  }
}
