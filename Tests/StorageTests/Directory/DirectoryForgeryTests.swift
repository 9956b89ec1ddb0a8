import Platform
import SimulatedDisk
import Testing

@testable import Storage

/// Behind a journal's frames lies what clients once wrote, who know the format, how often the journal has started over, and the revisions.
@Suite("A journal that has forged frames behind its own")
struct DirectoryForgeryTests {
  /// Makes what a client would have at that place.
  private typealias Forger = (_ journal: WriteAheadLogContents, _ place: Int) -> [UInt8]

  /// All that a client doesn't know.
  private static let guessedSalt: UInt64 = 0x5EED

  private static let path = DirectoryRun.simulatedPath + "/" + WriteAheadLog.name

  /// A store with one commit in its journal, behind which the file is filled up with what is forged.
  private static func store(_ forge: Forger) throws -> (disk: SimulatedDisk, model: MapModel) {
    let disk = DirectoryRun.disk(seed: 1)
    var run = try DirectoryRun(disk)
    run.put("a".bytes, [1])
    try run.write()
    let journal = try contents(of: disk)
    var place = journal.tail
    let file = try disk.open(path, .writing)
    while place < journal.bytes.count {
      let forged = forge(journal, place)
      try file.write(Array(forged.prefix(journal.bytes.count - place)), at: place)
      place += forged.count
    }
    return (disk, run.model)
  }

  private static func contents(of disk: SimulatedDisk) throws -> WriteAheadLogContents {
    try WriteAheadLogContents(reading: disk.open(path, .reading))
  }

  /// A frame that puts "b", right in everything if the salt is.
  private static func frame(_ journal: WriteAheadLogContents, at place: Int, salt: UInt64) -> [UInt8] {
    var commits = CommitBuffer()
    unsafe "b".bytes.withBytes { key in
      unsafe commits.put(key, key, kind: .single, expiry: 0, revision: journal.lastRevision + 1)
    }
    commits.seal()
    var frame = header(byteCount: commits.count, salt: salt, synced: place)
    unsafe frame.append(contentsOf: commits.bytes)
    frame.replace(at: 4, littleEndian: frame.checksum(leavingOut: WriteAheadLog.checksumPlace))
    return frame
  }

  private static func header(byteCount: Int, salt: UInt64, synced: Int) -> [UInt8] {
    var header: [UInt8] = []
    header.append(littleEndian: UInt32(byteCount))
    header.append(littleEndian: 0 as UInt32)
    header.append(littleEndian: salt)
    header.append(littleEndian: UInt64(synced))
    return header
  }

  @Test func `headers that claim all of the rest are passed over, so that nothing is read again for each`() throws {
    let (disk, model) = try Self.store { journal, place in
      let rest = journal.bytes.count - place - WriteAheadLog.frameHeaderByteCount
      return Self.header(byteCount: max(0, rest), salt: Self.guessedSalt, synced: place)
    }
    let journal = try Self.contents(of: disk)
    #expect(journal.nextSalt(from: journal.tail) == nil)
    try Self.expectToOpen(disk, model)
  }

  @Test(arguments: [false, true]) func `a frame that is right but for the salt is neither a commit nor damage`(
    isSeparated: Bool
  ) throws {
    let (disk, model) = try Self.store(Self.forger(isSeparated) { _ in Self.guessedSalt })
    try Self.expectToOpen(disk, model)
  }

  @Test func `whoever knew the salt could have commits made, or the store refused`() throws {
    var (disk, model) = try Self.store(Self.forger(false) { $0.header.salt })
    var map = EntryMap()
    _ = try DirectoryRun.open(disk, into: &map)
    #expect(try DirectoryRun.entries(of: &map).count == model.entries.count + 1)
    (disk, model) = try Self.store(Self.forger(true) { $0.header.salt })
    #expect(throws: DirectoryError.self) { _ = try DirectoryRun(disk, model: model) }
  }

  /// Forges frames end to end, where the journal's own have ended or a byte further on.
  private static func forger(
    _ isSeparated: Bool, salt: @escaping (WriteAheadLogContents) -> UInt64
  ) -> Forger {
    { journal, place in
      if isSeparated, place == journal.tail { return [0] }
      return frame(journal, at: place, salt: salt(journal))
    }
  }

  @Test func `the salt is another each time the journal starts over`() throws {
    let disk = DirectoryRun.disk(seed: 1)
    var run = try DirectoryRun(disk)
    var salts: Set<UInt64> = []
    for round: UInt8 in 0..<20 {
      salts.insert(try Self.contents(of: disk).header.salt)
      run.put("a".bytes, [round])
      try run.write()
      try run.performMaintenance()
    }
    #expect(salts.count == 20 && salts.allSatisfy { $0 % 2 == 1 })
  }

  private static func expectToOpen(_ disk: SimulatedDisk, _ model: MapModel) throws {
    var map = EntryMap()
    let (_, report) = try DirectoryRun.open(disk, into: &map)
    #expect(report.isClean && report.revision == model.revision)
    #expect(try DirectoryRun.entries(of: &map) == model.entries)
  }
}
