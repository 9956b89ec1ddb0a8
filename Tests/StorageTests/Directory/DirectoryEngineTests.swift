import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

@Suite struct DirectoryEngineTests {
  @Test func `hostile keys are read back, each from a file in the folder`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    for key in DirectoryRun.hostileKeys { run.put(key, key + [0x21]) }
    try run.write()
    try run.reopen()
    try run.performMaintenance()
    try run.reopen()
    #expect(run.report.isClean && run.report.entries == DirectoryRun.hostileKeys.count)
    let files = try folder.names().filter { $0.first != "." && !$0.hasSuffix("@key") }
    #expect(files.count == DirectoryRun.hostileKeys.count)
  }

  @Test func `a value is the content of its file`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put("user:1".bytes, "{\"name\":\"Ann\"}".bytes)
    run.put("list".bytes, [0x61], kind: .list, expiry: DirectoryRun.now.wall + 1)
    run.put("empty".bytes, [])
    try run.write()
    try run.performMaintenance()
    let names = try run.entryNames()
    #expect(names.count == 3 && names[0].hasPrefix("empty@3-") && names[2].hasPrefix("user:1@1-"))
    #expect(names[1].hasPrefix("list@2-x1800000000001-list-"))
    #expect(try folder.contents(names[2]) == "{\"name\":\"Ann\"}".bytes)
    #expect(try folder.contents(names[1]) == [1, 0, 0, 0, 0x61])
    try run.reopen()
  }

  @Test func `an update leaves one file, and a deletion leaves none`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    let long = [UInt8](repeating: 0x61, count: 3_000)
    for value: UInt8 in 0..<3 {
      run.put("a".bytes, [value])
      run.put(long, [value])
      try run.write()
      try run.performMaintenance()
    }
    #expect(try run.entryNames().count == 3)
    run.delete("a".bytes)
    run.delete(long)
    try run.write()
    try run.performMaintenance()
    #expect(try run.entryNames() == [])
    try run.reopen()
    run.put("b".bytes, [])
    try run.write()
    try run.reopen()
  }

  @Test func `expired entries are gone, and their files with them`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put("short".bytes, [1], expiry: DirectoryRun.now.wall + 10)
    run.put("long".bytes, [2], expiry: DirectoryRun.now.wall + 1_000_000)
    try run.write()
    try run.performMaintenance()
    while try run.engine.performMaintenance(at: DirectoryRun.now.wall + 100_000) {}
    #expect(try run.entryNames().count == 1)
    run.model.entries["short".bytes] = nil
    try run.reopen()
  }

  @Test func `a write larger than the journals gets a journal of its own`() throws {
    var run = try DirectoryRun(TemporaryFolder())
    run.put("small".bytes, [1])
    run.put("large".bytes, [UInt8](repeating: 9, count: 6 << 20))
    try run.write()
    try run.reopen()
    try run.performMaintenance()
    try run.reopen()
    #expect(run.report.replayed == 0)
  }

  @Test func `under constant load, commits go to the next journal, and no commit writes a file`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    let value = [UInt8](repeating: 5, count: 30_000)
    for number in 0..<400 {
      run.put("key:\(number)".bytes, value)
      try run.write()
      // The settling thread makes a journal while the commits of the current one still wait.
      if number % 50 == 49 { _ = try run.step() }
      if number == 98 { #expect(try run.entryNames() == []) }
    }
    #expect(try folder.names().filter(Journal.isName).count > 2)
    try run.reopen()
    try run.performMaintenance()
    #expect(try run.entryNames().count == 400)
    #expect(try folder.names().filter(Journal.isName).count <= 2)
    try run.reopen()
    #expect(run.report.replayed == 0)
  }

  @Test func `reserving space requests a journal or, if that was too little, a larger one`() throws {
    var run = try DirectoryRun(TemporaryFolder())
    let initial = run.engine.reservedByteCount
    try run.reserve(initial)
    #expect(run.engine.reservedByteCount == initial)
    try run.reopen()
    try run.engine.reserveSpace()
    #expect(run.engine.isReservingSpace && run.engine.reservedByteCount == initial)
    while run.engine.isReservingSpace {
      _ = try run.step()
      try run.engine.reserveSpace()
    }
    #expect(run.engine.reservedByteCount == initial)
    try run.reserve(3 * initial)
    #expect(run.engine.reservedByteCount > 3 * initial)
    run.put("a".bytes, [UInt8](repeating: 1, count: 1 << 20))
    try run.write()
    try run.performMaintenance()
    let figures = run.engine.figures
    #expect(
      figures.contains { $0 == ("directory_files", 1) } && figures.contains { $0 == ("directory_journal_bytes", 0) })
  }

  @Test func `on a full disk, files stay pending until there is space`() throws {
    let disk = DirectoryRun.disk(seed: 1)
    var run = try DirectoryRun(disk)
    disk.byteLimit = disk.bytesTaken
    run.put("a".bytes, [1])
    try run.write()
    try run.performMaintenance()
    #expect(try run.entryNames() == [])
    let byteCount = run.engine.reservedByteCount
    #expect(throws: EngineError.noSpace) { try run.reserve(byteCount + 1) }
    try run.reopen()
    run.put("b".bytes, [2])
    try run.write()
    try run.reopen()
    disk.byteLimit = .max
    try run.performMaintenance()
    #expect(try run.entryNames().count == 2)
    try run.reopen()
  }

  @Test func `on a full disk, deletions that follow writes are carried out and make space`() throws {
    let disk = DirectoryRun.disk(seed: 1)
    var run = try DirectoryRun(disk)
    for key in 0..<40 { run.put("old \(key)".bytes, [UInt8](repeating: 1, count: 100)) }
    try run.write()
    try run.performMaintenance()
    disk.byteLimit = disk.bytesTaken
    for key in 0..<40 {
      run.put("new \(key)".bytes, [UInt8](repeating: 2, count: 30))
      run.delete("old \(39 - key)".bytes)
      try run.write()
      _ = try run.step()
    }
    try run.performMaintenance()
    #expect(try run.entryNames().count == 40 && run.entryNames().allSatisfy { $0.hasPrefix("new") })
    try run.reopen()
  }

  @Test(arguments: [EMFILE, ENFILE]) func `without file descriptors, files stay pending until some are available`(
    code: Int32
  ) throws {
    let disk = DirectoryRun.disk(seed: 2)
    var run = try DirectoryRun(disk)
    disk.injectedFailure = .init(.open, number: 1, errno: code, isPersistent: true)
    for key in ["a", "b", "c"] {
      run.put(key.bytes, [UInt8](repeating: 7, count: 1_200))
      try run.write()
      try run.performMaintenance()
      #expect(try run.entryNames() == [])
    }
    run.delete("a".bytes)
    try run.write()
    let byteCount = run.engine.reservedByteCount
    #expect(throws: EngineError.noSpace) { try run.reserve(byteCount + 1) }
    disk.injectedFailure = nil
    try run.performMaintenance()
    #expect(try run.entryNames().count == 2)
    try run.reopen()
  }

  @Test func `writes that fill one journal after another get the next one each time`() throws {
    let subject = try StoreUnderTest(.directory, durability: .none, seed: 1, at: .now)
    for number in 0..<10_000 {
      let value = [UInt8](repeating: UInt8(number % 256), count: 1_000)
      try subject.write { (map) throws(StorageError) in
        unsafe try map.put("\(number % 500)".bytes.span.bytes, value.span.bytes, revision: map.revisions.last + 1)
      }
    }
    try subject.reopen(at: .now)
    let count = subject.store.access { $0.count(now: monotonicMilliseconds()) }
    #expect(count == 500)
  }

  @Test(arguments: [5, 40_000]) func `a value that changes in a journal is not written to a file`(
    byteCount: Int
  ) throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put("a".bytes, [UInt8](repeating: 0x55, count: byteCount))
    try run.write()
    let end = try #require(try folder.contents(".journal-1").lastIndex(of: 0x55)) + 1
    try LocalFileSystem().open(folder.file(".journal-1"), .writing).write([0x54], at: end - 1)
    let engine = run.engine
    #expect {
      while try engine.performMaintenance(at: DirectoryRun.now.wall) {}
    } throws: { error in
      guard case .failed(let what) = error as? EngineError else { return false }
      return what.contains(".journal-1 is damaged at byte \(Journal.start)")
    }
    #expect(try run.entryNames() == [])
  }
}
