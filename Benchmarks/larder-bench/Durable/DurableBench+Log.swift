import Glibc

/// What a log costs beside its commits: compaction, and the bytes that it writes.
extension DurableBench {
  private static let log = "log?durability=always"

  /// In each round a fresh store has sets at a constant rate, first while there is nothing to compact, and again when there always is.
  mutating func measureCompaction() throws {
    let rate = try rateOfLatencies()
    var rounds: [DurableWork: [LogTurn]] = [:]
    for round in 0..<plan.repeats {
      let server = try startWithLargeValues()
      defer { end([server]) }
      for work in [DurableWork.quiet, .compacting] {
        // All anew, and half of it once more: from then on all garbage that is made is one too much.
        if work == .compacting {
          show("round \(round + 1) of \(plan.repeats): making garbage")
          _ = try overwrite(server, plan.keysOfCompaction, valueSize: plan.valueSizeOfCompaction, times: 1.5)
        }
        show("round \(round + 1) of \(plan.repeats): \(work.rawValue)")
        var load = try plan.load("put", server, keys: plan.keysOfCompaction, seed: nextSeed())
        load.pipeline = DurablePlan.pipeline
        load.rate = rate
        if work == .quiet { try waitUntilTidy(server) }
        let before = try LogStatus(of: server)
        let outcome = try take(load, server)
        rounds[work, default: []].append(LogTurn(outcome, before: before, after: try LogStatus(of: server)))
      }
    }
    for work in [DurableWork.quiet, .compacting] { report.add(work, rounds[work] ?? []) }
  }

  private mutating func startWithLargeValues() throws -> RunningServer {
    let server = try start(.larder(engine: Self.log), keys: 0)
    var load = try plan.load("put", server, keys: plan.keysOfCompaction, seed: plan.seed)
    load.valueSize = plan.valueSizeOfCompaction
    try load.loadKeys()
    return server
  }

  /// Sets a second at which latencies are taken.
  private mutating func rateOfLatencies() throws -> Double {
    let server = try start(.larder(engine: Self.log), keys: plan.keys)
    defer { end([server]) }
    let peak = try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 3).rate
    let most = DurablePlan.latencySetsOfKey * Double(plan.keysOfCompaction) / plan.turn.seconds
    return min(peak * DurablePlan.latencyLoad, most)
  }

  /// Writes random keys at full speed, so many times as many as there are.
  private mutating func overwrite(
    _ server: RunningServer, _ keys: Int, valueSize: Int, times: Double
  ) throws -> LoadOutcome {
    var load = try plan.load("put", server, keys: keys, seed: nextSeed())
    load.valueSize = valueSize
    load.pipeline = DurablePlan.pipeline
    load.requests = Int(Double(keys) * times)
    return try take(load, server)
  }

  /// Waits until what the loading of the keys left behind is tidied up.
  private func waitUntilTidy(_ server: RunningServer) throws {
    var last = -1
    for _ in 0..<100 {
      let bytes = try LogStatus(of: server).compactionBytes
      if bytes == last { return }
      last = bytes
      usleep(100_000)
    }
  }

  /// Overwrites random keys until half of the log is garbage all the time, and counts what further sets have written.
  mutating func measureBytes() throws {
    let server = try start(.larder(engine: Self.log), keys: plan.keys)
    defer { end([server]) }
    _ = try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 3)
    let byteCountOfPut = Double(BenchKey.size + plan.valueSize)
    var told: [Double] = []
    var seen: [Double] = []
    var garbage: [Double] = []
    for round in 0..<plan.repeats {
      show("round \(round + 1) of \(plan.repeats): \(DurableWork.garbage.rawValue)")
      let (before, seenBefore) = (try LogStatus(of: server), server.probe.writtenBytes)
      let puts = Double(try overwrite(server, plan.keys, valueSize: plan.valueSize, times: 5).tally.answered)
      let (after, seenAfter) = (try LogStatus(of: server), server.probe.writtenBytes)
      told.append(Double(after.writtenBytes - before.writtenBytes) / (puts * byteCountOfPut))
      if let seenBefore, let seenAfter { seen.append(Double(seenAfter - seenBefore) / (puts * byteCountOfPut)) }
      garbage.append(Double(after.deadBytes) / Double(max(1, after.bytes)))
    }
    report.addBytes(told: told, seen: seen, garbage: garbage)
  }
}

/// A turn at a log, and what the log did meanwhile.
struct LogTurn {
  let outcome: LoadOutcome
  let compactions: Int
  let compactedBytesPerSecond: Double

  init(_ outcome: LoadOutcome, before: LogStatus, after: LogStatus) {
    self.outcome = outcome
    compactions = after.compactions - before.compactions
    compactedBytesPerSecond = Double(after.compactionBytes - before.compactionBytes) / outcome.seconds
  }
}
