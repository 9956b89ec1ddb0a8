import Glibc
import Platform
import TestSupport

@testable import Storage

/// Successive lives of one directory store on a simulated disk, with a failure and a crash at the end of each.
struct DirectoryCrashRun {
  /// A difference between the store and its model.
  struct ModelViolation: Error, CustomStringConvertible {
    let description: String
  }

  private let disk: SimulatedDisk
  private var random: SeededGenerator
  /// The contents of the store at the last sync, and after each write since.
  private var states = [MapModel()]
  private var now = DirectoryRun.now

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    disk = DirectoryRun.disk(seed: seed &* 31)
  }

  /// Opens the store, works until a call fails or the store is closed, crashes, and checks the result.
  mutating func live() throws {
    let milliseconds = UInt64.random(in: 0..<100, using: &random)
    now = ClockReading(wall: now.wall + milliseconds, monotonic: now.monotonic + milliseconds)
    if Int.random(in: 0..<4, using: &random) == 0 {
      disk.byteLimit = disk.bytesTaken + .random(in: 0..<20_000, using: &random)
    }
    disk.injectedFailure = .init(
      SimulatedDisk.Call.allCases.randomElement(using: &random), number: .random(in: 1...60, using: &random),
      errno: Bool.random(using: &random) ? EIO : ENOSPC, isPersistent: Bool.random(using: &random))
    do {
      try check()
      var run = try DirectoryRun(disk, model: states[0], at: now)
      for _ in 0..<Int.random(in: 0..<60, using: &random) { try step(&run) }
      if Bool.random(using: &random) {
        try run.close()
        states = [run.model]
      }
    } catch is EngineError {
    } catch DirectoryError.system {
    } catch DirectoryError.unreadable {
    }
    if Bool.random(using: &random) { disk.kill() } else { disk.crash(reordersNames: .random(using: &random)) }
    (disk.injectedFailure, disk.byteLimit) = (nil, .max)
    try check()
  }

  /// Opens the store, checks that its state is possible, and makes it the expected state from now on.
  private mutating func check() throws {
    var map = EntryMap()
    let (_, report) = try DirectoryRun.open(disk, into: &map, at: now)
    let found = try DirectoryRun.entries(of: &map, at: now)
    for index in states.indices {
      states[index].entries = states[index].entries.filter { $0.value.isLive(at: now.wall) }
    }
    guard let state = states.first(where: { $0.entries == found && $0.revision == report.revision }) else {
      throw ModelViolation(
        description:
          "revision \(report.revision) with \(found.count) entries was never a state of the store; there were "
          + states.map { "\($0.revision) with \($0.entries.count)" }.joined(separator: ", "))
    }
    states = [state]
  }

  private mutating func step(_ run: inout DirectoryRun) throws {
    switch Int.random(in: 0..<10, using: &random) {
    case 0: _ = try run.step()
    case 1: try run.reserve(run.engine.reservedByteCount + 1)
    case 2: try run.performMaintenance()
    default: try write(&run)
    }
  }

  private mutating func write(_ run: inout DirectoryRun) throws {
    for index in 0..<Int.random(in: 1...5, using: &random) {
      let number = Int.random(in: 0..<24, using: &random)
      // Some keys need a key file, and some differ only in case.
      let key =
        number % 5 == 0
        ? [UInt8](repeating: UInt8(97 + number), count: 300) : (number % 2 == 0 ? "k\(number)" : "K\(number - 1)").bytes
      let isSame = index > 0 && Bool.random(using: &random)
      switch Int.random(in: 0..<40, using: &random) {
      case 0: run.deleteAll()
      case 1..<10: run.delete(key, sameRevision: isSame)
      default:
        let value = [UInt8](
          repeating: .random(in: 0...255, using: &random),
          count: Int.random(in: 0..<20, using: &random) == 0 ? 3_000 : 50)
        let expires = Int.random(in: 0..<4, using: &random) == 0
        run.put(
          key, value, kind: Bool.random(using: &random) ? .single : .list,
          expiry: expires ? now.wall + .random(in: 1...200, using: &random) : 0, sameRevision: isSame)
      }
    }
    let syncs = Int.random(in: 0..<3, using: &random) > 0
    states.append(run.model)
    try run.write(syncs: syncs)
    if syncs { states = [run.model] }
  }
}
