import Foundation
import Testing

@testable import larder_bench

/// Every part of `larder-bench compare` with large requests, on real servers, with few values and short turns.
@Suite(.serialized, .timeLimit(.minutes(2))) struct LargeTests {
  @Test func `All large-value workloads are measured, and all rows have their anchors`() throws {
    var plan = LargePlan()
    (plan.repeats, plan.turn, plan.rest) = (1, .milliseconds(200), .milliseconds(10))
    plan.loads = [
      LargeLoad(valueSize: 64 << 10, keys: 20, connections: 5), LargeLoad(valueSize: 300_000, keys: 5, connections: 2),
    ]
    plan.neighborSize = 500_000
    plan.bursts.overwritten = LargeLoad(valueSize: 64 << 10, keys: 20, connections: 2)
    (plan.bursts.halfFrames, plan.bursts.halfFrameSize) = (4, 1 << 20)
    (plan.bursts.unreadReplies, plan.bursts.unread) = (3, LargeLoad(valueSize: 1_000, keys: 1_000, connections: 2))
    var bench = LargeBench(plan, try BenchRunner(plan, disk: Programs.folder))
    let report = try bench.run()

    let contenders = try Contender.overTCP()
    let peers = contenders.count - 1
    // A disk that stalls takes root and loop devices; otherwise the report says why it was not measured.
    let canStall = report.contenders.count > contenders.count
    #expect(canStall || report.markdown.contains("A disk that stalls was not measured"))
    #expect(report.rows.count == 8 + contenders.count + 5 + (canStall ? 2 : 0))
    for row in report.rows {
      #expect(row.larder.lowest >= 0 && row.larder.lowest <= row.larder.highest, "\(row.title)")
      #expect(row.goal == nil || row.isReached != nil || peers == 0, "\(row.title)")
    }
    for load in plan.loads {
      for (work, contender) in contenders.flatMap({ contender in ["get", "put"].map { ($0, contender.name) } }) {
        for quantity in [Quantity.cpu, .throughput, .p99] {
          let figure = try #require(report.figures.find(load.name(work), quantity, of: contender))
          #expect(figure.lowest > 0, "\(figure.name)")
        }
      }
    }
    for contender in contenders {
      let large = try #require(
        report.figures.find(PacedWork.besideLargeGets.name, LargeBench.largeGets, of: contender.name))
      #expect(large.median > 0)
      #expect(report.markdown.contains(contender.commandLine))
    }
    expectEqual(try JSONDecoder().decode(BenchResult.self, from: Data(try JSON.encode(report.result).utf8)), report)
  }

  @Test func `A connection checks the values that it gets`() throws {
    let folder = try TemporaryFolder()
    for contender in try Contender.overTCP() {
      let server = try RunningServer(contender, in: folder)
      switch contender.protocolName {
      case .resp: try checkValues(RespTarget.self, server)
      default: try checkValues(LarderTarget.self, server)
      }
    }
  }

  private func checkValues<T: Target>(_ type: T.Type, _ server: RunningServer) throws {
    var connection = try ValueConnection<T>(to: server.address)
    let value = [UInt8](repeating: 7, count: 100_000)
    try connection.put(value, at: 1)
    let (found, none) = (
      try connection.get(1, valueSize: value.count), try connection.get(2, valueSize: value.count)
    )
    #expect(found == value && none == nil)
    // A value of another size, or none, is not what was asked for.
    let (other, missing) = (
      try connection.getRequest(1, valueSize: 99_999), try connection.getRequest(2, valueSize: 1)
    )
    do {
      try connection.check(other)
      Issue.record("a value of another size passes")
    } catch is BenchError {}
    do {
      try connection.check(missing)
      Issue.record("a missing value passes")
    } catch is BenchError {}
    try connection.check(connection.getRequest(1, valueSize: value.count))
  }

  @Test func `The latency of a late request counts from its time`() {
    var times = PacedTimes(rate: 1_000)
    usleep(10_000)
    let (first, second) = (times.wait(), times.wait())
    #expect(second - first == 1_000_000 && second < Clocks.now())
  }

  @Test func `Sizes have the unit that suits them`() {
    #expect(
      [100, 1_024, 65_536, 1 << 20, 10_000_000].map(byteText) == ["100 bytes", "1 KiB", "64 KiB", "1 MiB", "10 MB"])
  }

  @Test func `Small requests are compared alone`() throws {
    let result = try BenchProcess.run(["compare", "--work", "small", "large"])
    #expect(result.status == 64 && result.errors.contains("--work small can't be combined"))
  }
}
