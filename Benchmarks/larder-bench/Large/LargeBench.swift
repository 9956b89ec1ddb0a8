import Platform

/// A comparison of large requests: what they cost, and what they cost others.
struct LargeBench {
  private let plan: LargePlan
  /// The folder of the sockets, whose paths must be short.
  private let sockets: TemporaryFolder
  /// The folder, on a disk, of the servers' data.
  private let disk: TemporaryFolder
  private let display: LiveProgress
  private let start = Clocks.now()
  private var report: LargeReport
  /// The number of turns so far, which makes their random numbers differ.
  private var turns: UInt64 = 0

  init(_ plan: LargePlan, sockets: TemporaryFolder, disk: TemporaryFolder, display: LiveProgress) {
    self.plan = plan
    self.sockets = sockets
    self.disk = disk
    self.display = display
    report = LargeReport(plan)
  }

  mutating func run() throws -> LargeReport {
    let all = try ProcessorSet.ofCurrentThread()
    defer { try? all.restrictCurrentThread() }
    // Processes inherit this thread's processors.
    try plan.processors?.servers.restrictCurrentThread()
    let contenders = try Contender.overTCP().filter { plan.includesPeers || !$0.isPeer }
    for contender in contenders { try check(contender) }
    for part in plan.parts {
      switch part {
      case .large: for load in plan.loads { try measure(load, contenders) }
      case .isolation: try measureIsolation(contenders)
      case .memory: try measureMemory(contenders)
      case .stall: try measureStall()
      }
    }
    report.finish(seconds: Double(Clocks.now() - start) / 1e9)
    return report
  }

  /// Checks a contender on a separate server, so that the written keys do not interfere with measurements.
  private mutating func check(_ contender: Contender) throws {
    show("checking \(contender.name)")
    report.addContender(contender)
    let server = try RunningServer(contender, in: sockets)
    defer { server.stop() }
    let sizes = [1] + plan.loads.map(\.valueSize) + [plan.neighborSize]
    do {
      try TargetCheck(address: server.address, sizes: sizes, keysPerSize: 3).run(contender.protocolName)
    } catch {
      throw BenchError("\(contender.name) does not answer correctly: \(error)")
    }
  }

  private mutating func nextSeed() -> UInt64 {
    turns += 1
    return plan.seed &+ turns
  }

  private func show(_ text: String) {
    display.show("\(Int(Double(Clocks.now() - start) / 1e9)) s  \(text)")
  }

  /// Runs `body` on the generator's processor, as all threads that it creates.
  private func onGenerator<R>(_ body: () throws -> R) throws -> R {
    try plan.processors?.generator.restrictCurrentThread()
    defer { try? plan.processors?.servers.restrictCurrentThread() }
    return try body()
  }
}

// MARK: Large values in a closed loop

extension LargeBench {
  private mutating func measure(_ load: LargeLoad, _ contenders: [Contender]) throws {
    let servers = try contenders.map { contender in
      show("loading \(contender.name)")
      let server = try RunningServer(contender, in: sockets)
      try plan.load("put", load, server, seed: plan.seed).loadKeys()
      return server
    }
    defer { for server in servers { server.stop() } }
    var outcomes: [String: [String: [LoadOutcome]]] = [:]
    for round in 0..<plan.repeats {
      for work in ["get", "put"] {
        for server in servers.rotated(by: round) {
          show("round \(round + 1) of \(plan.repeats): \(load.name(work)): \(server.contender.name)")
          let outcome = try plan.load(work, load, server, seed: nextSeed()).run(probe: server.probe)
          guard !outcome.tally.hasFailures, outcome.tally.misses == 0 else {
            throw BenchError("\(server.contender.name) failed in \(load.name(work)): \(outcome.tally.failures)")
          }
          outcomes[work, default: [:]][server.contender.name, default: []].append(outcome)
        }
      }
    }
    for work in ["get", "put"] {
      for contender in contenders { report.add(load.name(work), contender.name, outcomes[work]?[contender.name] ?? []) }
    }
  }
}

// MARK: Small gets beside large ones

extension LargeBench {
  private mutating func measureIsolation(_ contenders: [Contender]) throws {
    let servers = try contenders.map { contender in
      show("loading \(contender.name)")
      let server = try RunningServer(contender, in: sockets)
      try gets(of: server).load()
      return server
    }
    defer { for server in servers { server.stop() } }
    var (alone, beside): ([String: [Tally]], [String: [Tally]]) = ([:], [:])
    var rates: [String: [Double]] = [:]
    for round in 0..<plan.repeats {
      for server in servers.rotated(by: round) {
        let name = server.contender.name
        show("round \(round + 1) of \(plan.repeats): small gets of \(name)")
        let (gets, seed) = (gets(of: server), nextSeed())
        alone[name, default: []].append(try onGenerator { try gets.run(seed: seed) })
        show("round \(round + 1) of \(plan.repeats): small gets of \(name) beside large ones")
        let neighborSeed = nextSeed()
        let turn = try onGenerator { try gets.runBesideLargeGets(seed: neighborSeed) }
        beside[name, default: []].append(turn.tally)
        rates[name, default: []].append(turn.largeGetsPerSecond)
      }
    }
    for contender in contenders.map(\.name) {
      report.add(.alone, contender, alone[contender] ?? [])
      report.add(.besideLargeGets, contender, beside[contender] ?? [], largeGetsPerSecond: rates[contender] ?? [])
    }
  }

  private func gets(of server: RunningServer) -> any NeighborGets {
    switch server.contender.protocolName {
    case .resp: ValueNeighborGets<RespTarget>(plan, at: server.address)
    case .larder, .memcached, .echo: ValueNeighborGets<LarderTarget>(plan, at: server.address)
    }
  }
}

// MARK: Memory after bursts, and a disk that stalls

extension LargeBench {
  private mutating func measureMemory(_ contenders: [Contender]) throws {
    var bench = MemoryBursts(plan, in: sockets)
    for contender in contenders {
      show("overwriting large values: \(contender.name)")
      try bench.overwrite(contender)
    }
    show("sending half frames")
    try bench.sendHalfFrames(contenders[0])
    show("reading no replies")
    try bench.leaveRepliesUnread(contenders[0])
    show("resting for \(Int(plan.rest.seconds)) s")
    for figure in bench.measureAfterRest() { report.add(figure) }
  }

  private mutating func measureStall() throws {
    show("preparing a disk that stalls")
    let server: StallingServer
    do { server = try StallingServer(sockets: sockets, disk: disk) } catch {
      return report.addNote("A disk that stalls was not measured: \(error).")
    }
    defer { server.stop() }
    report.addContender(server.contender)
    let stores = StallingServer.healthyStores
    let gets = stores.map {
      PacedValueGets<LarderTarget>(
        address: server.address, store: $0, keys: 0..<LargePlan.smallKeys, valueSize: LargePlan.smallSize,
        rate: LargePlan.smallRate)
    }
    for gets in gets { try gets.load() }
    var tallies: [Bool: [String: [Tally]]] = [:]
    for round in 0..<plan.repeats {
      for isStalled in [false, true] {
        show("round \(round + 1) of \(plan.repeats): gets \(isStalled ? "while a disk stalls" : "of healthy stores")")
        let stall = isStalled ? try server.stall() : nil
        for (store, gets) in zip(stores, gets) {
          let seed = nextSeed()
          let tally = try onGenerator { try gets.run(for: plan.pacedTurn / stores.count, seed: seed) }
          tallies[isStalled, default: [:]][store, default: []].append(tally)
        }
        try stall?.end()
      }
    }
    for isStalled in [false, true] {
      for store in stores {
        report.add(.stall(store: store, isStalled: isStalled), Contender.larder, tallies[isStalled]?[store] ?? [])
      }
    }
  }
}
