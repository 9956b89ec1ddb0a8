import Glibc
import Platform
import SimulatedDisk
import Testing

@testable import Storage

/// The log against a dictionary, on a disk that crashes and fails.
struct LogModelTests {
  @Test func `whatever crashes, what was synced is there and nothing is invented`() throws {
    for seed in SeededGenerator.seeds(12) {
      var run = LogRun(seed: seed)
      do {
        for _ in 0..<6 { try run.life() }
      } catch {
        Issue.record("LARDER_SEED=\(seed): \(error)")
        return
      }
    }
  }

  @Test func `a crash at every call of one run`() throws {
    var number = 1
    while true {
      var run = LogRun(seed: 11)
      run.crashAt = number
      try run.life()
      if !run.hasCrashed { break }
      run.crashAt = nil
      try run.life()
      number += SeededGenerator.isThorough ? 1 : 19
    }
    #expect(number > 100)
  }

  @Test(arguments: [EIO, ENOSPC]) func `a failure of every call`(_ code: Int32) throws {
    var number = 1
    while true {
      var run = LogRun(seed: 12)
      run.crashAt = number
      run.code = code
      run.lasts = false
      try run.life()
      if !run.hasCrashed { break }
      try run.life()
      number += SeededGenerator.isThorough ? 1 : 19
    }
    #expect(number > 100)
  }
}

/// What a test finds wrong, with the seed that shows it.
struct Wrong: Error, CustomStringConvertible {
  let description: String
}

/// Lives of one log, a crash between each two.
struct LogRun {
  let disk: SimulatedDisk
  var random: SeededGenerator
  /// The entries at each revision since the last start, and the first of them.
  var states: [[String: Plain]] = [[:]]
  var firstRevision: UInt64 = 0
  /// What was told to be on the disk.
  var durable: UInt64 = 0
  var now: UInt64 = 1_000
  /// After how many calls the life ends; nil for a random number.
  var crashAt: Int?
  var code = EIO
  var lasts = true
  var hasCrashed = false
  var compactions: UInt64 = 0

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    disk = SimulatedDisk(seed: seed &* 31)
  }

  var revision: UInt64 { firstRevision + UInt64(states.count) - 1 }

  func visible(_ entries: [String: Plain]) -> [String: Plain] {
    entries.filter { $0.value.expiry == 0 || $0.value.expiry > now }
  }

  /// Starts, works, and crashes.
  mutating func life() throws {
    let calls = crashAt ?? Int.random(in: 1...400, using: &random)
    disk.fault = .init(number: calls, errno: code, lasts: lasts)
    let callsBefore = disk.callCount
    do {
      let log = try OpenLog(disk, now: now)
      try check(log)
      for _ in 0..<(crashAt == nil ? 200 : 60) { try work(log) }
    } catch let error as EngineError {
      if case .failed(let what) = error, !what.contains("("), what.contains("damaged") {
        throw Wrong(description: what)
      }
    } catch is SystemError {
    } catch let failure as StoredValueError {
      if case .damaged = failure { throw failure }
    } catch let error as LogError {
      if case .damaged = error { throw error }
    }
    hasCrashed = disk.callCount - callsBefore >= calls
    if Bool.random(using: &random) { disk.kill() } else { disk.crash() }
    disk.fault = nil
    let log = try OpenLog(disk, now: now)
    try check(log)
    disk.kill()
  }

  /// Compares what was recovered with what may be, and takes it for the truth from now on.
  private mutating func check(_ log: OpenLog) throws {
    let revision = log.revision
    guard revision >= durable else {
      throw Wrong(description: "revision \(revision) is there, and \(durable) was synced")
    }
    guard revision >= firstRevision, revision <= self.revision else {
      throw Wrong(description: "revision \(revision) was invented: \(self.revision) was the last")
    }
    let expected = visible(states[Int(revision - firstRevision)])
    let entries = try log.entries(now: now)
    guard entries == expected else {
      let keys = Set(entries.keys).union(expected.keys).filter { entries[$0] != expected[$0] }
      throw Wrong(
        description: "at revision \(revision): "
          + keys.map { "\($0) is \(entries[$0].map { "\($0)" } ?? "-") not \(expected[$0].map { "\($0)" } ?? "-")" }
          .joined(separator: "; "))
    }
    log.store.access { $0.validateOrder() }
    states = [expected]
    firstRevision = revision
    durable = revision
  }

  private mutating func work(_ log: OpenLog) throws {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<10: try commit(log)
    case 10..<12:
      // Any segments may be rewritten, worth it or not.
      let engine = log.engine
      guard engine.compaction == nil, !engine.sealed.isEmpty else { return }
      let first = Int.random(in: engine.sealed.indices, using: &random)
      let run = first..<min(engine.sealed.count, first + Int.random(in: 1...2, using: &random))
      engine.survey = nil
      _ = try engine.begin(run, log.store, revision: log.revision)
    case 12..<18:
      for _ in 0..<Int.random(in: 1...8, using: &random) where try !log.performMaintenance() { break }
    case 18: now += UInt64.random(in: 0...100, using: &random)
    default:
      let now = now
      _ = log.store.access { $0.expire(now: now) }
    }
    compactions = max(compactions, log.engine.figures.first { $0.name == "log_compactions_total" }!.value)
  }

  private mutating func commit(_ log: OpenLog) throws {
    var works: [Work] = []
    for _ in 0..<Int.random(in: 1...5, using: &random) {
      let work = nextWork()
      var entries = states.last!
      works.append(work)
      work.apply(to: &entries, revision: revision + 1)
      states.append(entries)
    }
    let syncs = Int.random(in: 0..<3, using: &random) > 0
    do {
      try log.commit(works, syncs: syncs)
    } catch EngineError.noSpace {
      // The disk is full for once: the map is ahead of the log, so this life ends here.
      throw EngineError.noSpace
    }
    if syncs { durable = revision }
  }

  private mutating func nextWork() -> Work {
    let key = "key \(Int.random(in: 0..<40, using: &random))"
    switch Int.random(in: 0..<100, using: &random) {
    case 0: return .deleteAll
    case 1..<25: return .delete(key: key)
    case 25:
      let value = [UInt8](repeating: UInt8(revision & 255), count: 33_000)
      return .put(key: key, value: value, kind: .single, expiry: 0)
    default:
      let value = [UInt8](
        repeating: .random(in: 0...255, using: &random), count: Int.random(in: 0...300, using: &random))
      let expires = Int.random(in: 0..<3, using: &random) == 0
      let expiry = expires ? now + UInt64.random(in: 1...300, using: &random) : 0
      return .put(key: key, value: value, kind: Bool.random(using: &random) ? .single : .list, expiry: expiry)
    }
  }
}
