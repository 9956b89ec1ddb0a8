import Foundation
import Testing

@testable import larder_bench

@Suite(.serialized, .timeLimit(.minutes(1))) struct ComparisonTests {
  @Test func `A comparison has all its tables and figures`() throws {
    var plan = ComparisonPlan()
    plan.repeats = 2
    plan.turn = .milliseconds(20)
    plan.keys = 1_000
    plan.entriesInMemory = 20_000
    plan.loadSteps = [0.5, 1]
    plan.connections = 5
    let contenders = try Contender.installed()
    let folder = try TemporaryFolder()
    var comparison = Comparison(plan, contenders, in: folder, display: LiveProgress())
    let report = try comparison.run()

    for work in plan.works {
      let figure = try #require(report.figure(work.name, ComparisonReport.cpu, Contender.larder))
      #expect(figure.lowest > 0 && figure.lowest <= figure.median && figure.median <= figure.highest)
    }
    for contender in contenders {
      #expect(report.figure("get, no pipelining", ComparisonReport.throughput, contender.name) != nil)
      #expect(report.latencies[contender.name] != nil)
      #expect(report.loadCurve.count { $0.contender == contender.name } == 2)
      #expect(report.markdown.contains(contender.commandLine))
    }
    let decoded = try JSONDecoder().decode(ComparisonReport.self, from: Data(try JSON.encode(report).utf8))
    #expect(decoded.markdown == report.markdown)

    if Plots.isPossible {
      try Plots(report: report, folder: folder.path).write()
      for name in Plots.names {
        let plot = try String(contentsOfFile: "\(folder.path)/\(name)", encoding: .utf8)
        #expect(plot.contains("</svg>") && plot.contains("larder") && plot.contains("µs"))
      }
    }
  }

  @Test func `Larder and the echo are the first contenders`() throws {
    let contenders = try Contender.installed()
    #expect(contenders.prefix(2).map(\.name) == [Contender.larder, Contender.echo])
  }

  @Test func `The client library is measured`() throws {
    let folder = try TemporaryFolder()
    let result = try BenchProcess.run([
      "client", "--tasks", "1,16", "--turn", "50ms", "--repeat", "1", "--keys", "1000", "--results", folder.path,
    ])
    #expect(result.status == 0)
    let report = try JSON.decode(ClientReport.self, from: "\(folder.path)/client.json")
    #expect(report.figures.filter { $0.contender == Contender.larder }.count == 12)
    #expect(
      report.figures.filter { $0.contender == BareClient.program && $0.figure == ClientReport.rate }.map(\.work)
        == ["1 connection, one call at a time", "16 connections"])
    #expect(report.figures.filter { $0.figure == ClientReport.ratio }.count == 2)
    #expect(report.figures.allSatisfy { $0.median > 0 })
  }

  @Test func `With --target, the client needs no server beside the program`() throws {
    let larder = try #require(try Contender.installed().first { $0.name == Contender.larder })
    let sockets = try TemporaryFolder()
    let server = try RunningServer(larder, in: sockets)
    defer {
      server.stop()
      sockets.remove()
    }
    // contrib/microbench runs a copy in a folder of its own.
    let folder = try TemporaryFolder(in: Programs.folder)
    let copy = "\(folder.path)/larder-bench"
    try FileManager.default.linkItem(atPath: BenchProcess.path, toPath: copy)
    let result = try BenchProcess.run(
      ["client", "--target", "larder:\(server.address)", "--tasks", "2", "--keys", "100", "--calls", "100"],
      program: copy)
    #expect(result.status == 0 && result.output.isEmpty && result.errors.isEmpty, "\(result.errors)")
  }

  @Test func `Micro-benchmarks run`() throws {
    let result = try BenchProcess.run(["micro", "--operations", "200", "--entries", "1000"])
    #expect(result.status == 0 && result.errors.isEmpty)
    #expect(try BenchProcess.run(["micro", "--list"]).output.split(separator: "\n").count == MicroBenchmark.all.count)
  }
}
