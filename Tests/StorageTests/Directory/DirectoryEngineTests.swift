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
    try run.reopen()
    #expect(run.report.isClean && run.report.entries == DirectoryRun.hostileKeys.count)
    let files = try folder.names().filter { $0.first != "." && !$0.hasSuffix("@key") }
    #expect(files.count == DirectoryRun.hostileKeys.count)
  }

  @Test func `a value is the content of its file`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put("user:1".bytes, "{\"name\":\"Ann\"}".bytes)
    run.put("list".bytes, [1, 0, 0, 0, 0x61], kind: .list, expiry: DirectoryRun.now.wall + 1)
    run.put("empty".bytes, [])
    try run.write()
    try run.performMaintenance()
    let names = try folder.names()
    #expect(names.count == 4 && names[0] == ".journal")
    #expect(names[1].hasPrefix("empty@3-") && names[3].hasPrefix("user:1@1-"))
    #expect(names[2].hasPrefix("list@2-x1800000000001-list-"))
    #expect(try folder.contents(names[3]) == "{\"name\":\"Ann\"}".bytes)
    #expect(try folder.contents(names[2]) == [1, 0, 0, 0, 0x61])
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
    #expect(try folder.names().count == 4)
    run.delete("a".bytes)
    run.delete(long)
    try run.write()
    try run.performMaintenance()
    #expect(try folder.names() == [".journal"])
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
    #expect(try folder.names().count == 2)
    run.model.entries["short".bytes] = nil
    try run.reopen()
  }

  @Test func `a batch larger than the write-ahead log is written`() throws {
    var run = try DirectoryRun(TemporaryFolder())
    run.put("small".bytes, [1])
    run.put("large".bytes, [UInt8](repeating: 9, count: 6 << 20))
    try run.write()
    try run.reopen()
    #expect(run.engine.writeAheadLog.capacity == 8 << 20)
  }

  @Test func `under constant load, files are written before the write-ahead log is full`() throws {
    var run = try DirectoryRun(TemporaryFolder())
    let value = [UInt8](repeating: 5, count: 30_000)
    var maxEnd = 0
    for number in 0..<400 {
      run.put("key:\(number)".bytes, value)
      try run.write()
      maxEnd = max(maxEnd, run.engine.writeAheadLog.end)
    }
    #expect(run.engine.writeAheadLog.capacity == WriteAheadLog.initialByteCount)
    #expect(maxEnd < 3 * WriteAheadLog.initialByteCount / 4)
    try run.reopen()
  }

  @Test func `reserving space empties the write-ahead log or, if that was too little, grows it`() throws {
    var run = try DirectoryRun(TemporaryFolder())
    let initial = run.engine.reservedByteCount
    try run.engine.reserveSpace()
    #expect(run.engine.reservedByteCount == initial)
    try run.reopen()
    try run.engine.reserveSpace()
    #expect(run.engine.reservedByteCount == initial, "a start is not a reason to grow")
    try run.engine.reserveSpace()
    #expect(run.engine.reservedByteCount > 3 * initial / 2)
    run.put("a".bytes, [UInt8](repeating: 1, count: 1 << 20))
    try run.write()
    let before = run.engine.reservedByteCount
    try run.engine.reserveSpace()
    #expect(run.engine.reservedByteCount > before)
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
    #expect(try run.engine.performMaintenance(at: DirectoryRun.now.wall) == false)
    let engine = run.engine
    #expect(throws: EngineError.noSpace) { try engine.reserveSpace() }
    try run.reopen()
    run.put("b".bytes, [2])
    try run.write()
    try run.reopen()
    disk.byteLimit = .max
    try run.performMaintenance()
    #expect(try disk.list(run.path).count == 3)
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
      #expect(try run.engine.performMaintenance(at: DirectoryRun.now.wall) == false)
    }
    run.delete("a".bytes)
    try run.write()
    let engine = run.engine
    #expect(throws: EngineError.noSpace) { try engine.reserveSpace() }
    disk.injectedFailure = nil
    try run.performMaintenance()
    #expect(try disk.list(run.path).count == 3)
    try run.reopen()
  }

  @Test(arguments: [5, 40_000]) func `a value that changes in the write-ahead log is not written to a file`(
    byteCount: Int
  ) throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put("a".bytes, [UInt8](repeating: 0x55, count: byteCount))
    try run.write()
    let end = try #require(try folder.contents(".journal").lastIndex(of: 0x55)) + 1
    try LocalFileSystem().open(folder.file(".journal"), .writing).write([0x54], at: end - 1)
    let engine = run.engine
    #expect {
      _ = try engine.performMaintenance(at: DirectoryRun.now.wall)
    } throws: { error in
      guard case .failed(let what) = error as? EngineError else { return false }
      return what.contains(".journal") && what.contains("byte \(end - byteCount)")
    }
    #expect(try folder.names() == [".journal"])
  }
}
