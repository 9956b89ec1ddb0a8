import Foundation
import Testing

@testable import larder_bench

/// Every part of `larder-bench durable` on real servers, with few keys and short turns.
@Suite(.serialized, .timeLimit(.minutes(2))) struct DurableTests {
  @Test func `All durable workloads are measured, and all rows have their anchors`() throws {
    let report = try measure(DurablePart.allCases)
    let hasRedis = Contender.redis(fsync: "always") != nil
    #expect(report.rows.count >= 15)
    for row in report.rows {
      #expect(row.larder.lowest > 0 && row.larder.lowest <= row.larder.median, "\(row.title)")
      #expect(row.larder.median <= row.larder.highest, "\(row.title)")
      if let anchor = row.anchor {
        let ratio = try #require(row.ratio)
        #expect(abs(ratio * anchor.median - row.larder.median) <= row.larder.median * 0.01, "\(row.title)")
      }
    }
    #expect(report.rows.count { $0.anchor?.contender == Contender.redis } == (hasRedis ? 7 : 0))
    // Whether compaction runs in such short turns depends on timing.
    let hasComparedCompaction = report.rows.contains { $0.larder.work == DurableWork.compacting.name && $0.goal != nil }
    #expect(report.rows.count { $0.goal != nil } == (hasComparedCompaction ? 16 : 15))

    for contender in report.contenders { #expect(report.markdown.contains(contender.commandLine)) }
    expectEqual(try JSONDecoder().decode(BenchResult.self, from: Data(try JSON.encode(report.result).utf8)), report)
  }

  @Test func `A log writes little more than its records`() throws {
    let report = try measure([.bytes])
    let reported = try #require(report.figures.find(DurableWork.garbage.name, DurableBench.writtenBytes))
    // A record takes 140 bytes for a key and value of 116, and compaction rewrites the live records of a segment.
    #expect(reported.lowest >= 140.0 / 116 - 0.001 && reported.highest < 4)
    let garbage = try #require(report.figures.find(DurableWork.garbage.name, DurableBench.garbage))
    #expect(garbage.lowest >= 0 && garbage.highest < 1)
  }

  @Test func `Servers restart with their data`() throws {
    let report = try measure([.restart])
    for work in [DurableWork.restart, .restartKilled] {
      let time = try #require(report.figures.find(work.name, .firstGet))
      #expect(time.lowest > 0.000_5 && time.highest < 60)
    }
  }

  @Test func `A bare writer's file contains everything it wrote`() throws {
    let folder = try TemporaryFolder(in: Programs.folder)
    for isPreallocated in [false, true] {
      let path = folder.makePath("bare")
      var writer = try BareWriter(path, keySize: 16, valueSize: 100, isPreallocated: isPreallocated)
      let first = try writer.run(for: .milliseconds(20))
      let second = try writer.run(for: .milliseconds(20))
      let writes = first.tally.answered + second.tally.answered
      let contents = try #require(FileManager.default.contents(atPath: path))
      #expect(first.tally.answered > 0 && contents.count { $0 != 0 } == writes * 140)
      #expect(isPreallocated ? contents.count >= 64 << 20 : contents.count == writes * 140)
    }
  }

  @Test func `The minimal durable server has in its file what it has sent back`() throws {
    let (sockets, disk) = (try TemporaryFolder(), try TemporaryFolder(in: Programs.folder))
    let server = try RunningServer(.makeSyncedEcho(), in: sockets, data: disk.makePath("data"))
    var load = LoadPlan(address: server.address, protocolName: .echo, workload: try Workload("put"))
    load.connections = 5
    load.pipeline = 3
    load.requests = 1_000
    let outcome = try load.run(probe: server.probe)
    #expect(outcome.tally.answered == 1_000 && !outcome.tally.hasFailures)
    server.stop(by: SIGKILL)
    let contents = try #require(FileManager.default.contents(atPath: "\(server.data ?? "")/file"))
    let text = String(decoding: contents.prefix(1_000_000), as: Unicode.ASCII.self)
    #expect(text.hasPrefix("larder-bench") && text.ranges(of: "key:").count == 1_000)
    #expect(contents.count == 64 << 20)
  }

  @Test func `A goal is met at exactly its limit`() {
    func row(_ larder: Double, _ anchor: Double?, _ goal: Goal?) -> GoalRow {
      func figure(_ value: Double) -> MeasuredFigure {
        MeasuredFigure("set", .throughput, of: Contender.larder, [value])
      }
      return GoalRow(figure(larder), against: anchor.map(figure), goal)
    }
    #expect(row(150, 100, .atLeast(1.5)).isReached == true)
    #expect(row(149, 100, .atLeast(1.5)).isReached == false)
    #expect(row(60, 100, .atMost(0.6)).isReached == true)
    #expect(row(61, 100, .atMost(0.6)).isReached == false)
    #expect(row(0.35, 0.1, .atMost(figure: 0.35)).isReached == true)
    #expect(row(0.351, 9, .atMost(figure: 0.35)).isReached == false)
    #expect(row(150, nil, .atLeast(1.5)).isReached == nil)
    #expect(row(150, 100, nil).isReached == nil)
  }

  @Test func `The command measures the given parts and leaves no files behind`() throws {
    let folder = try TemporaryFolder(in: Programs.folder)
    let (directory, results) = ("\(folder.path)/data", "\(folder.path)/results")
    let result = try BenchProcess.run([
      "durable", "--quick", "--repeat", "1", "--slice", "20ms", "--only", "directory", "--directory", directory,
      "--results", results,
    ])
    #expect(result.status == 0)
    let durable = try #require(try BenchResult.all(in: "\(results)/\(BenchResult.fileName)")["durable"])
    #expect(durable.goals.count == 2 && durable.goals.allSatisfy { $0.title.contains(Contender.directoryStore) })
    #expect(try String(contentsOfFile: "\(results)/durable.md", encoding: .utf8) + "\n" == result.output)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory).isEmpty)
  }

  @Test(.enabled(if: Mount(holding: "/dev/shm")?.kind == "tmpfs"))
  func `A folder on a memory file system is refused`() throws {
    let result = try BenchProcess.run(["durable", "--directory", "/dev/shm"])
    #expect(result.status == 1 && result.output.isEmpty && result.errors.contains("/dev/shm is on a tmpfs"))
  }

  @Test func `The mount of a folder is found`() {
    #expect(Mount(holding: "/proc/self")?.kind == "proc")
    #expect(Mount(holding: "/")?.isMemory != nil)
  }

  private func measure(_ parts: [DurablePart]) throws -> BenchReport {
    var plan = DurablePlan()
    plan.parts = parts
    plan.repeats = 1
    plan.turn = .milliseconds(50)
    plan.keys = 2_000
    plan.keysOfCompaction = 4_000
    plan.keysOfRestart = 2_000
    plan.keysOfDirectory = 50
    var bench = DurableBench(plan, try BenchRunner(plan, disk: Programs.folder))
    return try bench.run()
  }
}
