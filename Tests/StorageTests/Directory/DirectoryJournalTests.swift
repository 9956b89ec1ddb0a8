import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

@Suite("The journals of a directory store")
struct DirectoryJournalTests {
  /// Returns a store whose commits are in several journals, and whose files aren't written.
  private static func store(_ folder: TemporaryFolder) throws -> DirectoryRun {
    var run = try DirectoryRun(folder, journalByteCount: DirectoryRun.smallJournalByteCount)
    for number in 0..<60 {
      run.put("key \(number)".bytes, [UInt8](repeating: UInt8(number), count: 300))
      try run.write()
      run.delete("key \(number - 3)".bytes)
      try run.write()
    }
    return run
  }

  private static func journals(_ folder: TemporaryFolder) throws -> [String] {
    try folder.names().filter(Journal.isName).sorted { Int($0.dropFirst(9))! < Int($1.dropFirst(9))! }
  }

  private static func expectRefusal(_ folder: TemporaryFolder, _ name: String, _ reason: String) throws {
    let names = try folder.names()
    #expect {
      _ = try DirectoryRun(folder)
    } throws: { error in
      guard case .damaged(let path, _, let description) = error as? DirectoryError else { return false }
      return path == folder.file(name) && description.contains(reason)
    }
    #expect(try folder.names() == names)
    let report = try DirectoryCheck.run(folder.path, on: LocalFileSystem())
    #expect(report.issues.contains { $0.name == name && $0.description.contains(reason) })
  }

  @Test func `commits in several journals are read in order`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    #expect(try Self.journals(folder).count > 2)
    #expect(try run.entryNames() == [])
    try run.reopen()
    try run.performMaintenance()
    try run.reopen()
    #expect(run.report.replayed == 0)
  }

  @Test func `a journal that is missing is damage, whichever it is`() throws {
    for position in 0..<4 {
      let folder = try TemporaryFolder()
      _ = try Self.store(folder)
      let journals = try Self.journals(folder)
      let name = position == 3 ? try #require(journals.last) : journals[position]
      try LocalFileSystem().remove(folder.file(name))
      try Self.expectRefusal(folder, name, "it is missing")
    }
  }

  @Test func `a missing list of journals is damage, even if the journals are missing, too`() throws {
    let folder = try TemporaryFolder()
    _ = try Self.store(folder)
    try LocalFileSystem().remove(folder.file(".journal"))
    try Self.expectRefusal(folder, ".journal", "it is missing")
    for name in try Self.journals(folder) { try LocalFileSystem().remove(folder.file(name)) }
    try Self.expectRefusal(folder, ".journal", "it is missing")
  }

  @Test func `a list that is older than the journals is damage`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    let list = try folder.contents(".journal")
    run.put("a".bytes, [1])
    try run.write()
    try run.reopen()
    run.put("b".bytes, [1])
    try run.write()
    try folder.put(".journal", list)
    try Self.expectRefusal(folder, ".journal", "older than .journal-2")
  }

  @Test func `a folder that no server has opened opens without journals`() throws {
    let (folder, library) = (try TemporaryFolder(), try TemporaryFolder())
    var run = try DirectoryRun(folder)
    run.put("a".bytes, [1])
    try run.write()
    try run.performMaintenance()
    for name in try run.entryNames() { try library.put(name, folder.contents(name)) }
    let opened = try DirectoryRun(library)
    #expect(opened.report.issues.map(\.kind) == [.journalMissing] && opened.report.entries == 1)
    try LocalFileSystem().remove(library.file(".journal"))
    try Self.expectRefusal(library, ".journal", "a server has opened")
  }

  @Test(arguments: [false, true]) func `frames missing since a clean stop are damage`(
    isLastJournal: Bool
  ) throws {
    let folder = try TemporaryFolder()
    let run = try Self.store(folder)
    try run.close()
    let directory = DirectoryFolder(fileSystem: LocalFileSystem(), path: folder.path)
    let journals = try JournalScan(directory, names: folder.names()).journals
    let frames = journals.filter { $0.end > Journal.start }
    let journal = try #require(isLastJournal ? frames.last : frames.first)
    var bytes = try folder.contents(journal.name)
    // A kill leaves this, too, so only a clean stop makes it damage in the last journal.
    for place in journal.end - 200..<journal.end { bytes[place] = 0 }
    try folder.put(journal.name, bytes)
    try Self.expectRefusal(folder, journal.name, isLastJournal ? "frames are missing" : "a later one is valid")
  }

  @Test func `a clean stop of a settled store leaves no journal, and no revision is assigned again`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    run.deleteAll()
    try run.write()
    try run.performMaintenance()
    try run.close()
    #expect(try folder.names() == [".journal", ".opened"])
    try run.reopen()
  }

  @Test func `journals of settled commits are removed, and their file is used again`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    try run.performMaintenance()
    #expect(try Self.journals(folder).count <= 2)
    for round: UInt8 in 0..<10 {
      run.put("again".bytes, [round])
      try run.write()
      try run.performMaintenance()
      let journals = try Self.journals(folder)
      #expect(journals.count <= 2)
      // To a reader of the folder, this means that all commits have their files.
      for name in journals { #expect(try folder.contents(name)[1_024..<1_028] == [0, 0, 0, 0]) }
    }
    try run.reopen()
  }

  @Test func `settling progresses with every step`() throws {
    let disk = DirectoryRun.disk(seed: 3)
    var run = try DirectoryRun(disk)
    for number in 0..<100 { run.put("key \(number)".bytes, [UInt8](repeating: 1, count: 50)) }
    try run.write()
    var (starts, files) = (0, 0)
    while try run.entryNames().count < 100 {
      _ = try run.step()
      _ = try run.step()
      disk.kill()
      try run.reopen()
      starts += 1
      #expect(try run.entryNames().count >= files)
      files = try run.entryNames().count
      try #require(starts < 100, "no progress: \(files) files")
    }
  }

  // MARK: Version 2

  /// A journal as version 2 of the format had it, with one commit that has no file.
  private static var version2: [UInt8] {
    var header = "LRDRDIR2".bytes
    for field: UInt64 in [4, 6, 0x1234_5677] { header.append(littleEndian: field) }
    header.append(littleEndian: header.checksum())
    header += [UInt8](repeating: 0, count: 512 - header.count)
    var commits = CommitBuffer()
    unsafe "a".bytes.withBytes { key in unsafe commits.put(key, key, kind: .single, expiry: 0, revision: 7) }
    commits.seal()
    var frame: [UInt8] = []
    frame.append(littleEndian: UInt32(commits.count))
    frame.append(littleEndian: 0 as UInt32)
    for field: UInt64 in [0x1234_5677, 1_024] { frame.append(littleEndian: field) }
    unsafe frame.append(contentsOf: commits.bytes)
    frame.replace(at: 4, littleEndian: frame.checksum(excluding: 4..<8))
    return header + header + frame + [UInt8](repeating: 0, count: 4_096)
  }

  private static func expectVersion2(_ folder: TemporaryFolder) throws {
    var run = try DirectoryRun(folder)
    #expect(run.report.replayed == 1 && run.report.revision == 7)
    (run.model.revision, run.model.entries["a".bytes]) = (
      7, .init(kind: .single, revision: 7, expiry: 0, value: "a".bytes)
    )
    run.put("b".bytes, [2])
    try run.write()
    try run.reopen()
    try run.performMaintenance()
    #expect(try run.entryNames().count == 2 && !folder.names().contains(".journal-0"))
    try run.reopen()
  }

  @Test func `a directory store of version 2 opens and accepts writes`() throws {
    let folder = try TemporaryFolder()
    try folder.put(".journal", Self.version2)
    #expect(try DirectoryCheck.run(folder.path, on: LocalFileSystem()).isClean)
    try Self.expectVersion2(folder)
  }

  @Test func `the upgrade from version 2 survives a kill and then a power cut`() throws {
    let interruptions = (1...4).flatMap { first in (1...4).map { [first, $0] } }
    for (seed, syncs) in (0..<20).flatMap({ _ in interruptions }).enumerated() {
      let disk = DirectoryRun.disk(seed: UInt64(seed))
      disk.place(DirectoryRun.simulatedPath + "/.journal", Self.version2)
      for sync in syncs {
        disk.kill()
        disk.injectedFailure = .init(.syncFolder, number: sync, errno: EIO, isPersistent: true)
        var map = EntryMap()
        _ = try? DirectoryRun.open(disk, into: &map)
      }
      disk.crash(reordersNames: true)
      var map = EntryMap()
      let (_, report) = try DirectoryRun.open(disk, into: &map)
      #expect(report.revision == 7 && report.entries == 1, "interrupted at the syncs \(syncs)")
    }
  }

  @Test func `the upgrade from version 2 can be interrupted`() throws {
    let folder = try TemporaryFolder()
    try folder.put(".journal", Self.version2)
    try LocalFileSystem().rename(folder.file(".journal"), to: folder.file(".journal-0"))
    try folder.put(".new-journal", [1])
    try Self.expectVersion2(folder)
  }
}
