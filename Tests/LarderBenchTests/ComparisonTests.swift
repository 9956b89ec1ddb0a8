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
    var comparison = try ServerComparison(plan, contenders, BenchRunner(plan))
    let report = try comparison.run()
    try report.write(to: folder.path)
    let results = "\(folder.path)/\(BenchResult.fileName)"
    let result = try #require(try BenchResult.all(in: results)["compare"])

    for work in ComparisonPlan.works {
      let figure = try #require(report.figures.find(work.name, .cpu))
      #expect(figure.lowest > 0 && figure.lowest <= figure.median && figure.median <= figure.highest)
    }
    for contender in contenders {
      #expect(report.figures.find("get, no pipelining", .throughput, of: contender.name) != nil)
      #expect(report.markdown.contains("\n| \(contender.name) | "))
      let curves = result.curves.filter { $0.contender == contender.name }
      #expect(curves.map(\.plot) == [Plots.percentiles, Plots.load])
      #expect(curves[0].points.count > 3 && curves[1].points.count == 2)
      #expect(report.markdown.contains(contender.commandLine))
    }
    expectEqual(result, report)
    #expect(try String(contentsOfFile: "\(folder.path)/compare.md", encoding: .utf8) == report.markdown)

    if Plots.isPossible {
      let drawn = try BenchProcess.run(["plot", results, "--output", folder.path])
      #expect(drawn.status == 0, "\(drawn.errors)")
      for name in Plots.names {
        let plot = try String(contentsOfFile: "\(folder.path)/\(name)", encoding: .utf8)
        #expect(plot.contains("</svg>") && plot.contains("larder") && plot.contains("µs"))
      }
    }
  }

  @Test func `Results of several families share a file, in which each figure of a work takes a line`() throws {
    let folder = try TemporaryFolder()
    for (family, value) in [("one", 1.0), ("two", 2), ("one", 3)] {
      var report = BenchReport(family, title: family)
      report.figures.add("get", .cpu, of: "redis", [4, 6, 5])
      report.figures.add("get", .cpu, [value])
      report.finish([], sections: ["text"])
      try report.write(to: folder.path)
    }
    let path = "\(folder.path)/\(BenchResult.fileName)"
    let results = try BenchResult.all(in: path)
    #expect(results.keys.sorted() == ["one", "two"])
    #expect(results["one"]?.figures.find("get", .cpu)?.median == 3)
    #expect(results["two"]?.figures.find("get", .cpu, of: "redis")?.cell() == "5.00 (4.00–6.00)")
    let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
    #expect(lines.count { $0.contains("server CPU a request") && $0.contains("larder") } == 2)
    let text = try String(contentsOfFile: "\(folder.path)/two.md", encoding: .utf8)
    #expect(text.hasPrefix("# two\n\n") && text.hasSuffix("\n\ntext\n"))
  }

  @Test func `Larder and the echo are the first contenders`() throws {
    let contenders = try Contender.installed()
    #expect(contenders.prefix(2).map(\.name) == [Contender.larder, Contender.echo])
  }

  @Test func `The client library is measured`() throws {
    let folder = try TemporaryFolder()
    let result = try BenchProcess.run([
      "client", "--tasks", "1,16", "--slice", "50ms", "--repeat", "1", "--keys", "1000", "--results", folder.path,
    ])
    #expect(result.status == 0)
    let client = try #require(try BenchResult.all(in: "\(folder.path)/\(BenchResult.fileName)")["client"])
    let figures = client.figures.all
    #expect(figures.filter { $0.contender == Contender.larder }.count == 12)
    #expect(
      figures.filter { $0.contender == BareClient.program && $0.quantity == ClientComparison.rate }.map(\.work)
        == ["1 connection, one call at a time", "16 connections"])
    #expect(figures.filter { $0.quantity == ClientComparison.ratio }.count == 2)
    #expect(figures.allSatisfy { $0.median > 0 })
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

/// Expects that a result that was read from a file has what the report has.
func expectEqual(_ result: BenchResult, _ report: BenchReport) {
  #expect(result.figures.all.sorted { $0.name < $1.name } == report.figures.all.sorted { $0.name < $1.name })
  #expect(result.goals.map(\.title) == report.rows.map(\.title))
  #expect(result.goals.map(\.ratio) == report.rows.map(\.ratio))
  #expect(result.goals.map(\.isReached) == report.rows.map(\.isReached))
}
