import Foundation
import Glibc
import Platform
import Testing

@testable import larder_bench

/// Short loads on real servers of this build, and on installed peers.
@Suite(.serialized, .timeLimit(.minutes(1))) struct LoadTests {
  @Test(arguments: [
    "get", "put", "mixed:95", "get-many:100", "page", "ycsb-a", "ycsb-b", "ycsb-c", "ycsb-d", "ycsb-e", "ycsb-f",
  ])
  func `Every workload runs against Larder`(workload: String) throws {
    try with(Contender.larder) { server in
      let report = try run(server, workload, requests: 2_000)
      try checkSanity(report, requests: 2_000)
      if workload == "get-many:100" { #expect(report.entries == 200_000) }
      if workload == "page" { #expect(report.entries > 2_000 * 15 && report.entries <= 2_000 * 20) }
    }
  }

  @Test(arguments: ["redis", "valkey", "memcached"]) func `Peers do the same work`(name: String) throws {
    guard try Contender.installed().contains(where: { $0.name == name }) else { return }
    try with(name) { server in
      for workload in ["get", "put", "mixed:50", "get-many:100", "ycsb-a", "ycsb-d", "ycsb-f"] {
        try checkSanity(run(server, workload, requests: 1_000), requests: 1_000)
      }
      #expect(throws: BenchError.self) { try run(server, "page", requests: 10) }
    }
  }

  @Test func `Every server returns the values that were written`() throws {
    for contender in try Contender.installed() {
      try with(contender.name) { try TargetCheck(address: $0.address).run(contender.protocolName) }
    }
  }

  @Test func `Deep pipelines and several threads answer every request`() throws {
    try with(Contender.larder) { server in
      let report = try run(server, "mixed:50", requests: 20_001) {
        $0.pipeline = 100
        $0.threads = 2
        $0.connections = 7
      }
      try checkSanity(report, requests: 20_001)
    }
  }

  @Test func `Missing keys are misses, not errors`() throws {
    try with(Contender.larder) { server in
      let outcome = try plan(server, "get", requests: 500).run(probe: nil)
      #expect(outcome.tally.misses == 500 && !outcome.tally.hasFailures)
    }
  }

  @Test func `A stall shows in the percentiles at a constant rate`() throws {
    try with(Contender.echo) { server in
      var plan = try plan(server, "get", requests: 1_000)
      plan.rate = 1_000
      plan.connections = 4
      // The server stops for 300 ms of the second: requests scheduled meanwhile wait for up to that long.
      let outcome = try whileStalling(server, from: 0.3, to: 0.6) { try plan.run(probe: server.probe) }
      let latency = outcome.tally.latencyReport
      #expect(outcome.tally.answered == 1_000)
      #expect(latency.p90 > 150_000 && latency.p90 < 2_000_000)
      #expect(latency.max > 250_000)

      // A closed loop hides the same stall: only one request per connection is in flight.
      plan.rate = nil
      plan.requests = nil
      plan.duration = .seconds(1)
      let closed = try whileStalling(server, from: 0.3, to: 0.6) { try plan.run(probe: server.probe) }
      #expect(closed.tally.latencyReport.p99 < 100_000)
    }
  }

  @Test func `The generator keeps a constant rate`() throws {
    try with(Contender.echo) { server in
      var plan = try plan(server, "get", requests: 2_000)
      plan.rate = 5_000
      let outcome = try plan.run(probe: server.probe)
      #expect(outcome.tally.answered == 2_000)
      #expect((0.39...5).contains(outcome.seconds))
    }
  }

  @Test func `A killed server ends the run and counts as lost connections`() throws {
    try with(Contender.echo) { server in
      var plan = try plan(server, "get", requests: 1_000_000_000)
      plan.requests = nil
      plan.duration = .seconds(5)
      let number = server.probe.process
      Thread.detachNewThread {
        usleep(100_000)
        kill(number, SIGKILL)
      }
      let outcome = try plan.run(probe: nil)
      #expect(outcome.tally.lostConnections == plan.connections)
      #expect(outcome.seconds < 2)
    }
  }

  @Test func `The command prints only the report to a pipe`() throws {
    try with(Contender.larder) { server in
      let arguments = [
        "run", "--target", "larder:\(server.address)", "--workload", "mixed:95", "--connections", "10", "--pipeline",
        "16",
        "--keys", "1000", "--requests", "5000", "--server-pid", "\(server.probe.process)",
      ]
      let json = try BenchProcess.run(arguments + ["--json"])
      #expect(json.status == 0 && json.errors.isEmpty)
      let report = try JSONDecoder().decode(RunReport.self, from: Data(json.output.utf8))
      try checkSanity(report, requests: 5_000)
      #expect(report.settings.pipeline == 16 && report.settings.seed == 1)

      let text = try BenchProcess.run(arguments)
      #expect(text.status == 0 && text.errors.isEmpty)
      for word in ["p99.99", "misses 0", "µs CPU per request", "context switches", "seed 1", "Linux"] {
        #expect(text.output.contains(word))
      }
    }
  }

  @Test func `A wrong protocol or address fails immediately`() throws {
    try with(Contender.larder) { server in
      let result = try BenchProcess.run(["run", "--target", "resp:\(server.address)", "--workload", "get"])
      #expect(result.status == 4 && result.errors.hasPrefix("larder-bench: ") && result.output.isEmpty)
    }
    let unreachable = try BenchProcess.run(["run", "--target", "larder:unix:/nonexistent", "--workload", "get"])
    #expect(unreachable.status == 4 && unreachable.errors.contains("can't connect"))
  }

  private func checkSanity(_ report: RunReport, requests: Int) throws {
    #expect(report.requests == requests)
    #expect(report.errors.misses == 0 && report.errors.errors == 0 && report.errors.protocol == 0)
    #expect(report.errors.unanswered == 0 && report.errors.lostConnections == 0)
    let latency = report.latencyMicroseconds
    #expect(latency.p50 > 0 && latency.p50 <= latency.p90 && latency.p90 <= latency.p99)
    #expect(latency.p99 <= latency.p999 && latency.p999 <= latency.p9999 && latency.p9999 <= latency.max)
    #expect(report.requestsPerSecond > 100)
    let server = try #require(report.server)
    #expect(server.cpuMicrosecondsPerRequest > 0 && server.residentBytes > 1 << 20)
    #expect(report.generator.cpuMicrosecondsPerRequest > 0)
    #expect(report.figures.all.count == 4)
    // The report survives a round trip through JSON.
    let decoded = try JSONDecoder().decode(RunReport.self, from: Data(try JSON.encode(report).utf8))
    #expect(decoded.figures.all == report.figures.all && decoded.latencyMicroseconds == latency)
  }

  private func run(
    _ server: RunningServer, _ workload: String, requests: Int, _ configure: (inout LoadPlan) -> Void = { _ in }
  ) throws -> RunReport {
    var plan = try plan(server, workload, requests: requests)
    configure(&plan)
    try plan.loadKeys()
    return RunReport(plan, try plan.run(probe: server.probe), surroundings: surroundings)
  }

  private let surroundings = Surroundings()

  private func plan(_ server: RunningServer, _ workload: String, requests: Int) throws -> LoadPlan {
    var plan = LoadPlan(
      address: server.address, protocolName: server.contender.protocolName, workload: try Workload(workload))
    plan.requests = requests
    plan.keys = 1_000
    plan.connections = 5
    return plan
  }

  private func with(_ name: String, _ body: (RunningServer) throws -> Void) throws {
    let folder = try TemporaryFolder()
    let contender = try #require(try Contender.installed().first { $0.name == name })
    let server = try RunningServer(contender, in: folder)
    defer { server.stop() }
    try body(server)
  }

  private func whileStalling<R>(_ server: RunningServer, from: Double, to: Double, _ body: () throws -> R) throws -> R {
    let number = server.probe.process
    Thread.detachNewThread {
      usleep(UInt32(from * 1e6))
      kill(number, SIGSTOP)
      usleep(UInt32((to - from) * 1e6))
      kill(number, SIGCONT)
    }
    return try body()
  }
}
