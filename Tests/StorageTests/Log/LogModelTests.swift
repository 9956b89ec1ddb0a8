import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

/// A log compared with a dictionary, on a disk that crashes and fails.
struct LogModelTests {
  @Test func `after any crash, a log has everything synced and nothing invented`() throws {
    for seed in SeededGenerator.seeds(12) {
      var run = LogCrashRun(seed: seed)
      do {
        for _ in 0..<6 { _ = try run.live() }
      } catch {
        Issue.record("LARDER_SEED=\(seed): \(error)")
        return
      }
    }
  }

  @Test func `a log survives a crash at any system call`() throws {
    var number = 1
    while true {
      var run = LogCrashRun(seed: 11)
      guard try run.live(crashingAt: number) else { break }
      _ = try run.live()
      number += SeededGenerator.isThorough ? 1 : 19
    }
    #expect(number > 100)
  }

  @Test(arguments: [EIO, ENOSPC, EFBIG]) func `a log survives a failure of any system call`(_ code: Int32) throws {
    var number = 1
    while true {
      var run = LogCrashRun(seed: 12, errno: code, isPersistent: false)
      guard try run.live(crashingAt: number) else { break }
      _ = try run.live(crashingAt: number)
      number += SeededGenerator.isThorough ? 1 : 19
    }
    #expect(number > 100)
  }
}

/// A difference between a store and its model.
struct ModelViolation: Error, CustomStringConvertible {
  let description: String
}

/// Successive lives of one log, with a crash at the end of each.
struct LogCrashRun {
  private let disk: SimulatedDisk
  private var random: SeededGenerator
  /// The entries at each revision since the last start, and the first revision.
  private var states: [[String: ModelEntry]] = [[:]]
  private var firstRevision: UInt64 = 0
  /// The newest revision that was reported as durable.
  private var durable: UInt64 = 0
  private var now: UInt64 = 1_000
  private let code: Int32
  private let isPersistent: Bool

  /// - Parameters:
  ///   - code: The `errno` of the call that fails at the end of each life.
  ///   - isPersistent: Whether all later calls of that life fail, too.
  init(seed: UInt64, errno code: Int32 = EIO, isPersistent: Bool = true) {
    (self.code, self.isPersistent) = (code, isPersistent)
    random = SeededGenerator(seed: seed)
    disk = SimulatedDisk(seed: seed &* 31)
  }

  private var revision: UInt64 { firstRevision + UInt64(states.count) - 1 }

  private func visible(_ entries: [String: ModelEntry]) -> [String: ModelEntry] {
    entries.filter { $0.value.expiry == 0 || $0.value.expiry > now }
  }

  /// Opens the log, works until a call fails, and crashes.
  ///
  /// - Parameter number: The number of the call that fails, or nil for a random one.
  /// - Returns: Whether there were that many calls.
  mutating func live(crashingAt number: Int? = nil) throws -> Bool {
    let calls = number ?? Int.random(in: 1...400, using: &random)
    disk.injectedFailure = .init(number: calls, errno: code, isPersistent: isPersistent)
    let callsBefore = disk.callCount
    do {
      let log = try TestLog(disk, now: now)
      try check(log)
      for _ in 0..<(number == nil ? 200 : 60) { try work(log) }
    } catch let error as EngineError {
      if case .failed(let what) = error, !what.contains("("), what.contains("damaged") {
        throw ModelViolation(description: what)
      }
    } catch is SystemError {
    } catch let failure as SeparatedValueError {
      if case .damaged = failure { throw failure }
    } catch let error as LogError {
      if case .damaged = error { throw error }
    }
    let hasCrashed = disk.callCount - callsBefore >= calls
    if Bool.random(using: &random) { disk.kill() } else { disk.crash() }
    disk.injectedFailure = nil
    let log = try TestLog(disk, now: now)
    try check(log)
    disk.kill()
    return hasCrashed
  }

  /// Checks that the recovered state is possible, and makes it the expected state from now on.
  private mutating func check(_ log: TestLog) throws {
    let revision = log.revision
    guard revision >= durable else {
      throw ModelViolation(description: "revision \(revision) was recovered, but \(durable) was synced")
    }
    guard revision >= firstRevision, revision <= self.revision else {
      throw ModelViolation(description: "revision \(revision) was invented: \(self.revision) was the last")
    }
    let expected = visible(states[Int(revision - firstRevision)])
    let entries = try log.entries(now: now)
    guard entries == expected else {
      let keys = Set(entries.keys).union(expected.keys).filter { entries[$0] != expected[$0] }
      throw ModelViolation(
        description: "at revision \(revision): "
          + keys.map { "\($0) is \(entries[$0].map { "\($0)" } ?? "-") not \(expected[$0].map { "\($0)" } ?? "-")" }
          .joined(separator: "; "))
    }
    log.store.access { $0.validateOrder() }
    states = [expected]
    firstRevision = revision
    durable = revision
  }

  private mutating func work(_ log: TestLog) throws {
    switch Int.random(in: 0..<20, using: &random) {
    case 0..<10: try commit(log)
    case 10..<12:
      // Any segments may be compacted, whether they are worth it or not.
      let engine = log.engine
      guard !engine.isCompacting, !engine.writer.sealed.isEmpty else { return }
      let first = Int.random(in: engine.writer.sealed.indices, using: &random)
      let run = first..<min(engine.writer.sealed.count, first + Int.random(in: 1...2, using: &random))
      try engine.compact(run, revision: log.revision, log.store)
    case 12..<18:
      for _ in 0..<Int.random(in: 1...8, using: &random) where try !log.performMaintenance() { break }
    case 18: now += UInt64.random(in: 0...100, using: &random)
    default:
      let now = now
      _ = log.store.access { $0.expire(now: now) }
    }
  }

  private mutating func commit(_ log: TestLog) throws {
    var operations: [WriteOperation] = []
    for _ in 0..<Int.random(in: 1...5, using: &random) {
      let operation = nextOperation()
      var entries = states.last!
      operations.append(operation)
      operation.apply(to: &entries, revision: revision + 1)
      states.append(entries)
    }
    let syncs = Int.random(in: 0..<3, using: &random) > 0
    do {
      try log.commit(operations, syncs: syncs)
    } catch EngineError.noSpace {
      // The disk is full. The map is ahead of the log, so this life ends here.
      throw EngineError.noSpace
    }
    if syncs { durable = revision }
  }

  private mutating func nextOperation() -> WriteOperation {
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
      return Bool.random(using: &random)
        ? .put(key: key, value: value, kind: .single, expiry: expiry)
        : .put(key: key, value: value.asOnlyElement, kind: .list, expiry: expiry)
    }
  }
}
