import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

@Suite("A directory store that is interrupted")
struct DirectoryCrashTests {
  /// The result of a trace: what was acknowledged, and what was under way.
  private struct Outcome {
    var acknowledged: MapModel
    var attempted: MapModel
  }

  /// How a life ends: with the process or with the machine, whose disk may have changed names in another order.
  private enum End: CaseIterable {
    case kill, powerCut, reorderingPowerCut

    func end(_ disk: SimulatedDisk) {
      switch self {
      case .kill: disk.kill()
      case .powerCut: disk.crash()
      case .reorderingPowerCut: disk.crash(reordersNames: true)
      }
    }
  }

  private static let long = [UInt8](repeating: 0x4C, count: 500)

  /// Runs a few operations of each kind.
  private static func trace(_ run: inout DirectoryRun, until outcome: inout Outcome) throws {
    for round: UInt8 in 0..<4 {
      run.put("a".bytes, [round])
      run.put("b".bytes, [round, round], sameRevision: true)
      run.put(long, [round], kind: .list, sameRevision: true)
      try write(&run, &outcome)
      if round == 1 { _ = try run.step() }
      run.delete(round % 2 == 0 ? "a".bytes : long)
      run.put("c".bytes, [UInt8](repeating: round, count: 100))
      try write(&run, &outcome)
      if round == 2 { run.deleteAll() }
      run.put("d".bytes, [round])
      try write(&run, &outcome)
      _ = try run.step()
      if round == 0 { try run.reserve(run.engine.reservedByteCount + 1) }
      if round == 2 { try run.performMaintenance() }
    }
  }

  private static func write(_ run: inout DirectoryRun, _ outcome: inout Outcome) throws {
    outcome.attempted = run.model
    try run.write()
    outcome.acknowledged = run.model
  }

  /// Runs the trace until the call with the given number fails, and ends the life.
  /// - Parameter kind: Which calls are counted; nil for all.
  private static func crash(
    _ disk: SimulatedDisk, at call: Int, of kind: SimulatedDisk.Call? = nil, _ end: End
  ) throws -> Outcome {
    var outcome = Outcome(acknowledged: MapModel(), attempted: MapModel())
    disk.injectedFailure = .init(kind, number: call, errno: EIO, isPersistent: true)
    do {
      var run = try DirectoryRun(disk)
      try trace(&run, until: &outcome)
    } catch is DirectoryError {
    } catch is EngineError {
    }
    end.end(disk)
    return outcome
  }

  /// Returns the number of calls in the trace.
  private static func callCount() throws -> Int {
    let disk = DirectoryRun.disk(seed: 1)
    let before = disk.callCount
    _ = try crash(disk, at: .max, .kill)
    return disk.callCount - before
  }

  @Test(arguments: End.allCases)
  private func `after an interruption at any call, a commit is there completely or not at all`(_ end: End) throws {
    let calls = try Self.callCount()
    #expect(calls > 100)
    for call in 1...calls {
      let disk = DirectoryRun.disk(seed: UInt64(call))
      let outcome = try Self.crash(disk, at: call, end)
      try Self.expect(outcome, on: disk, "interrupted at call \(call)")
    }
  }

  @Test(arguments: End.allCases, End.allCases)
  private func `recovery of a directory store can be interrupted at any call`(_ end: End, _ secondEnd: End) throws {
    for first in stride(from: 5, to: try Self.callCount(), by: SeededGenerator.isThorough ? 5 : 47) {
      var second = 1
      while true {
        let disk = DirectoryRun.disk(seed: UInt64(first))
        let outcome = try Self.crash(disk, at: first, end)
        disk.injectedFailure = .init(number: second, errno: EIO, isPersistent: true)
        var map = EntryMap()
        let isOpen = (try? DirectoryRun.open(disk, into: &map)) != nil
        secondEnd.end(disk)
        try Self.expect(outcome, on: disk, "interrupted at call \(first), then at call \(second)")
        if isOpen { break }
        second += 1
      }
      #expect(second > 5)
    }
  }

  private static let syncs: [SimulatedDisk.Call] = [.sync, .syncFolder]

  @Test(arguments: syncs, syncs)
  private func `after a failed sync and a kill, a power cut can come at any sync of the recovery`(
    _ kind: SimulatedDisk.Call, _ secondKind: SimulatedDisk.Call
  ) throws {
    for first in stride(from: 1, through: 60, by: SeededGenerator.isThorough ? 1 : 3) {
      for second in 1...8 {
        let disk = DirectoryRun.disk(seed: UInt64(first * 8 + second))
        let outcome = try Self.crash(disk, at: first, of: kind, .kill)
        disk.injectedFailure = .init(secondKind, number: second, errno: EIO, isPersistent: true)
        var map = EntryMap()
        _ = try? DirectoryRun.open(disk, into: &map)
        disk.crash(reordersNames: true)
        try Self.expect(outcome, on: disk, "interrupted at sync \(first), then at sync \(second)")
      }
    }
  }

  private static func expect(_ outcome: Outcome, on disk: SimulatedDisk, _ comment: Comment) throws {
    for _ in 0..<2 {
      var map = EntryMap()
      let (_, report) = try DirectoryRun.open(disk, into: &map)
      let found = try DirectoryRun.entries(of: &map)
      let models = [outcome.acknowledged, outcome.attempted]
      let model = models.first { $0.entries == found && $0.revision == report.revision }
      #expect(model != nil, comment)
      #expect(report.issues.allSatisfy { Journal.isName($0.name) }, comment)
    }
    let check = try DirectoryCheck.run(DirectoryRun.simulatedPath, on: disk)
    #expect(check.issues.allSatisfy { Journal.isName($0.name) }, comment)
    // Everything is settled in the end, and nothing is left over.
    let run = try DirectoryRun(disk, model: MapModel())
    try run.performMaintenance()
    try run.close()
    let settled = try DirectoryCheck.run(DirectoryRun.simulatedPath, on: disk)
    #expect(settled.isClean && settled.leftovers == 0 && settled.replayed == 0, comment)
    #expect(settled.entries == check.entries && settled.revision == check.revision, comment)
  }

  @Test func `after any crash, everything synced is there and nothing is invented`() throws {
    for seed in SeededGenerator.seeds(20) {
      do {
        var lives = DirectoryCrashRun(seed: seed)
        for _ in 0..<6 { try lives.live() }
      } catch {
        Issue.record("LARDER_SEED=\(seed): \(error)")
        return
      }
    }
  }

  @Test func `a clean stop keeps the names that an earlier process has left`() throws {
    for seed: UInt64 in 1...20 {
      let disk = DirectoryRun.disk(seed: seed)
      var run = try DirectoryRun(disk)
      try run.performMaintenance()
      run.put("a".bytes, [1])
      try run.write()
      // The process ends when it has written the file, and has not synced the folder.
      disk.injectedFailure = .init(.syncFolder, number: 1, errno: EIO)
      #expect(throws: EngineError.self) { try run.performMaintenance() }
      #expect(try run.entryNames().count == 1)
      disk.kill()
      // Without space for a journal, a start doesn't sync the folder either.
      disk.byteLimit = disk.bytesTaken
      try run.reopen()
      try run.close()
      disk.crash(reordersNames: true)
      try run.reopen()
    }
  }

  @Test func `entries readable after a failed sync survive a power cut`() throws {
    for call in 1...20 {
      let disk = DirectoryRun.disk(seed: UInt64(call))
      var run = try DirectoryRun(disk)
      disk.injectedFailure = .init(.sync, number: call, errno: EIO)
      do {
        for round: UInt8 in 0..<4 {
          run.put("a".bytes, [round])
          run.put("b".bytes, Self.long)
          try run.write()
          try run.performMaintenance()
        }
        #expect(call == 20, "there are more syncs now than the test interrupts")
      } catch is EngineError {}
      disk.kill()
      var map = EntryMap()
      let (_, report) = try DirectoryRun.open(disk, into: &map)
      let shown = MapModel(entries: try DirectoryRun.entries(of: &map), revision: report.revision)
      run = try DirectoryRun(disk, model: shown)
      run.put("c".bytes, [1])
      try run.write()
      disk.crash(reordersNames: true)
      try run.reopen()
    }
  }

  @Test func `an older value without an expiry doesn't come back when the entry expires`() throws {
    let later = ClockReading(wall: DirectoryRun.now.wall + 100, monotonic: DirectoryRun.now.monotonic + 100)
    for call in 1...90 {
      let disk = DirectoryRun.disk(seed: UInt64(call))
      var run = try DirectoryRun(disk)
      run.put("a".bytes, [1])
      try run.write()
      try run.performMaintenance()
      run.put("a".bytes, [2], expiry: DirectoryRun.now.wall + 10)
      try run.write()
      disk.injectedFailure = .init(.remove, number: 1, errno: EIO)
      #expect(throws: EngineError.self) { try run.performMaintenance() }
      #expect(try run.entryNames().count == 2)
      disk.kill()
      try run.reopen()
      try run.close()
      disk.kill()
      disk.injectedFailure = .init(number: call, errno: EIO, isPersistent: true)
      do {
        run = try DirectoryRun(disk, at: later)
        try run.performMaintenance()
      } catch {}
      disk.crash(reordersNames: true)
      var map = EntryMap()
      _ = try DirectoryRun.open(disk, into: &map, at: later)
      #expect(try DirectoryRun.entries(of: &map, at: later).isEmpty, "interrupted at call \(call)")
    }
  }

  @Test func `opening a store doesn't write the files of commits in its journals`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put("a".bytes, [1])
    run.put(Self.long, [2], sameRevision: true)
    run.put("c".bytes, [3], sameRevision: true)
    try run.write()
    #expect(try run.entryNames() == [])
    try run.reopen()
    #expect(run.report.replayed == 3)
    #expect(try run.entryNames() == [])
    try run.performMaintenance()
    #expect(try run.entryNames().count == 4)
  }

  /// Returns the end of the frames in a store's first journal.
  private static func end(of folder: TemporaryFolder) throws -> Int {
    let directory = DirectoryFolder(fileSystem: LocalFileSystem(), path: folder.path)
    return try #require(JournalScan(directory, names: folder.names()).journals.first).end
  }

  @Test func `a last commit that is truncated anywhere vanishes completely`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put("a".bytes, [1])
    try run.write()
    let (before, start) = (run.model, try Self.end(of: folder))
    let listBefore = try folder.contents(".journal")
    run.put("a".bytes, [2])
    run.put("b".bytes, [2], sameRevision: true)
    try run.write()
    let end = try Self.end(of: folder)
    let (list, journal) = (try folder.contents(".journal"), try folder.contents(".journal-1"))
    for cut in start..<end {
      let torn = try TemporaryFolder()
      var bytes = journal
      for place in cut..<end { bytes[place] = 0 }
      guard bytes != journal else { continue }
      try torn.put(".journal", list)
      try torn.put(".journal-1", bytes)
      // The commit was synced, so it was not the kill that has truncated it.
      let journal = torn.file(".journal-1")
      #expect {
        var map = EntryMap()
        _ = try DirectoryEngine.open(torn.path, on: LocalFileSystem(), into: &map, at: DirectoryRun.now)
      } throws: { error in
        guard case .damaged(journal, start, _) = error as? DirectoryError else { return false }
        return true
      }
      let check = try DirectoryCheck.run(torn.path, on: LocalFileSystem())
      #expect(check.issues.map(\.name) == [".journal-1"] && check.entries == 1)
      try torn.put(".journal", listBefore)
      var map = EntryMap()
      let (_, report) = try DirectoryEngine.open(torn.path, on: LocalFileSystem(), into: &map, at: DirectoryRun.now)
      let found = try DirectoryRun.entries(of: &map)
      #expect(found == before.entries)
      #expect(report.revision == 1)
    }
  }

  @Test func `journals that are cut behind what was synced lose only the rest`() throws {
    let disk = DirectoryRun.disk(seed: 5)
    var run = try DirectoryRun(disk)
    run.put("a".bytes, [1])
    try run.write()
    let (model, path) = (run.model, DirectoryRun.simulatedPath + "/.journal-1")
    run.put("b".bytes, [2])
    try run.write(syncs: false)
    disk.kill()
    let journal = try #require(disk.contents(path))
    let end = try #require(journal.lastIndex { $0 != 0 })
    disk.place(path, Array(journal[..<end]) + [UInt8](repeating: 0, count: journal.count - end))
    var map = EntryMap()
    _ = try DirectoryRun.open(disk, into: &map)
    #expect(try DirectoryRun.entries(of: &map) == model.entries)
  }

  /// - Parameter isKilled: Whether the process was killed after the last commit, so that the system kept the synced
  ///   position. Otherwise, the machine was, and it is an older one.
  @Test(arguments: [true, false])
  func `every flipped bit of a journal is detected, discarded as a torn write, or harmless`(isKilled: Bool) throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    var states = [run.model]
    var list: [UInt8] = []
    for value: UInt8 in 1...3 {
      list = try folder.contents(".journal")
      run.put("a".bytes, [value])
      run.put("b".bytes, [value], sameRevision: true)
      try run.write()
      states.append(run.model)
    }
    if isKilled { list = try folder.contents(".journal") }
    let journal = try folder.contents(".journal-1")
    let end = try Self.end(of: folder)
    // The rest of the file is zeroes, so a shorter copy is equivalent.
    let short = Array(journal[..<(end + 256)])
    let last = end - (end - Journal.start) / 3
    for place in Array(0..<40) + Array(512..<552) + Array(Journal.start..<end) {
      for bit: UInt8 in 0..<8 {
        let flipped = try TemporaryFolder()
        var bytes = short
        bytes[place] ^= 1 << bit
        try flipped.put(".journal", list)
        try flipped.put(".journal-1", bytes)
        var map = EntryMap()
        do {
          _ = try DirectoryScan(
            DirectoryFolder(fileSystem: LocalFileSystem(), path: flipped.path), wall: DirectoryRun.now.wall
          ) { (key, entry, value) throws(DirectoryError) in
            do throws(StorageError) {
              unsafe try map.put(key.span.bytes, value.span.bytes, revision: entry.revision)
            } catch {
              throw .storage(error)
            }
          }
          let found = try DirectoryRun.entries(of: &map)
          // Only a frame that nothing follows may be mistaken for one that was being written.
          let isTorn = !isKilled && place >= last && found == states[2].entries
          #expect(found == states[3].entries || isTorn, "byte \(place)")
        } catch is DirectoryError {
          #expect(isKilled || place < last, "byte \(place)")
        }
      }
    }
  }
}
