import Platform
import TestSupport
import Testing

@testable import Storage

/// After the frames of a journal, there are bytes that clients once wrote. Clients know the format, the numbers
/// of journals, and the revisions.
@Suite("A journal with forged frames after its own")
struct DirectoryForgeryTests {
  /// A function that returns the bytes a client would have written at an offset.
  private typealias Forger = (_ journal: JournalUnderTest, _ offset: Int) -> [UInt8]

  /// A journal with one frame.
  private struct JournalUnderTest {
    let bytes: [UInt8]
    let salt: UInt64
    let end: Int
    let position: UInt64
    let lastRevision: UInt64
  }

  /// A guess at the salt, the one thing that a client doesn't know.
  private static let guessedSalt: UInt64 = 0x5EED

  private static let path = DirectoryRun.simulatedPath + "/" + Journal.name(1)

  /// Returns a store with one commit in its log, whose file is filled up with forged bytes after that.
  private static func store(_ forge: Forger) throws -> (disk: SimulatedDisk, model: MapModel) {
    let disk = DirectoryRun.disk(seed: 1)
    var run = try DirectoryRun(disk)
    run.put("a".bytes, [1])
    try run.write()
    let log = try contents(of: disk)
    var offset = log.end
    let file = try disk.open(path, .writing)
    while offset < log.bytes.count {
      let forged = forge(log, offset)
      try file.write(Array(forged.prefix(log.bytes.count - offset)), at: offset)
      offset += forged.count
    }
    return (disk, run.model)
  }

  private static func contents(of disk: SimulatedDisk) throws -> JournalUnderTest {
    let folder = DirectoryFolder(fileSystem: disk, path: DirectoryRun.simulatedPath)
    let found = try #require(JournalScan(folder, names: try folder.names()).journals.first)
    return JournalUnderTest(
      bytes: try disk.open(path, .reading).contents(), salt: found.header.salt, end: found.end,
      position: found.position, lastRevision: found.lastRevision)
  }

  /// Returns a frame that puts "b", which is valid if the salt is right.
  private static func frame(_ log: JournalUnderTest, at offset: Int, salt: UInt64) -> [UInt8] {
    var commits = CommitBuffer()
    unsafe "b".bytes.withBytes { key in
      unsafe commits.put(key, key, kind: .single, expiry: 0, revision: log.lastRevision + 1 + UInt64(offset - log.end))
    }
    commits.seal()
    // A client can compute the position, too.
    let position = log.position + UInt64(offset - log.end)
    var frame = header(byteCount: commits.count, salt: salt, position: position)
    unsafe frame.append(contentsOf: commits.bytes)
    frame.replace(at: 4, littleEndian: frame.checksum(excluding: Journal.checksumRange))
    return frame
  }

  private static func header(byteCount: Int, salt: UInt64, position: UInt64) -> [UInt8] {
    var header: [UInt8] = []
    header.append(littleEndian: UInt32(byteCount))
    header.append(littleEndian: 0 as UInt32)
    header.append(littleEndian: salt)
    header.append(littleEndian: position)
    header.append(littleEndian: position)
    return header
  }

  @Test func `forged headers that claim the rest of a journal aren't read repeatedly`() throws {
    let (disk, model) = try Self.store { log, offset in
      let rest = log.bytes.count - offset - Journal.frameHeaderByteCount
      return Self.header(byteCount: max(0, rest), salt: Self.guessedSalt, position: log.position)
    }
    let log = try Self.contents(of: disk)
    #expect(JournalScan.nextSalt(log.salt, in: log.bytes, from: log.end) == nil)
    try Self.expectToOpen(disk, model)
  }

  @Test(arguments: [false, true]) func `a frame with only a wrong salt is neither a commit nor damage`(
    hasGap: Bool
  ) throws {
    let (disk, model) = try Self.store(Self.forger(hasGap) { _ in Self.guessedSalt })
    try Self.expectToOpen(disk, model)
  }

  @Test func `a client that knew the salt could forge commits, or make the store unreadable`() throws {
    var (disk, model) = try Self.store(Self.forger(false) { $0.salt })
    var map = EntryMap()
    _ = try DirectoryRun.open(disk, into: &map)
    #expect(try DirectoryRun.entries(of: &map).count == model.entries.count + 1)
    (disk, model) = try Self.store(Self.forger(true) { $0.salt })
    #expect(throws: DirectoryError.self) { _ = try DirectoryRun(disk, model: model) }
  }

  /// Returns a forger of consecutive frames, directly after the log's own or one byte later.
  private static func forger(
    _ hasGap: Bool, salt: @escaping (JournalUnderTest) -> UInt64
  ) -> Forger {
    { log, offset in
      if hasGap, offset == log.end { return [0] }
      return frame(log, at: offset, salt: salt(log))
    }
  }

  @Test func `every journal has a new salt, even one that reuses a file`() throws {
    let disk = DirectoryRun.disk(seed: 1)
    var run = try DirectoryRun(disk)
    var salts: Set<UInt64> = []
    for round: UInt8 in 0..<20 {
      run.put("a".bytes, [round])
      try run.write()
      try run.performMaintenance()
      for name in try disk.list(run.path) where Journal.isName(name) {
        let bytes = try disk.open(run.path + "/" + name, .reading).contents()
        if let header = JournalHeader(in: bytes, number: Int(name.dropFirst(9))!) { salts.insert(header.salt) }
      }
    }
    #expect(salts.count >= 20 && salts.allSatisfy { $0 % 2 == 1 })
  }

  private static func expectToOpen(_ disk: SimulatedDisk, _ model: MapModel) throws {
    var map = EntryMap()
    let (_, report) = try DirectoryRun.open(disk, into: &map)
    #expect(report.isClean && report.revision == model.revision)
    #expect(try DirectoryRun.entries(of: &map) == model.entries)
  }
}
