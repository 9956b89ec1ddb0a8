import EntryFiles
import Glibc
import Platform
import TestSupport
import Testing

@testable import Storage

@Suite("The issues that a check of a directory store reports")
struct DirectoryCheckTests {
  /// Returns a store with three entries whose files are written.
  private static func store(_ folder: TemporaryFolder) throws -> DirectoryRun {
    var run = try DirectoryRun(folder, journalByteCount: DirectoryRun.smallJournalByteCount)
    for key in ["a", "b", "c"] { run.put(key.bytes, "value of \(key)".bytes) }
    try run.write()
    try run.performMaintenance()
    return run
  }

  /// Returns the names of the entries' files.
  private static func names(_ folder: TemporaryFolder) throws -> [String] {
    try folder.names().filter { $0.first != "." }
  }

  private static func check(_ folder: TemporaryFolder) throws -> DirectoryReport {
    let before = try folder.names()
    let report = try DirectoryCheck.run(folder.path, on: LocalFileSystem())
    #expect(try folder.names() == before)
    return report
  }

  @Test func `an untouched store has no issues`() throws {
    let folder = try TemporaryFolder()
    _ = try Self.store(folder)
    let report = try Self.check(folder)
    #expect(report.isClean && report.entries == 3 && report.valueBytes == 30 && report.revision == 3)
  }

  @Test func `an edited or damaged file is reported and kept, and its key is absent until it is written`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    let names = try Self.names(folder)
    try folder.put(names[0], "edited".bytes)
    try folder.put(names[1], [])
    #expect(try Self.check(folder).issues.map(\.kind) == [.changed, .changed])
    run.model.entries["a".bytes] = nil
    run.model.entries["b".bytes] = nil
    try run.reopen()
    #expect(run.report.issues.map(\.name) == [names[0], names[1]])
    #expect(try folder.contents(names[0]) == "edited".bytes)
    run.put("a".bytes, [7])
    run.delete("b".bytes)
    try run.write()
    try run.reopen()
    #expect(run.report.isClean)
  }

  @Test(arguments: [0, 1 << 63, .max]) func `a journal with an impossible revision is refused`(revision: UInt64)
    throws
  {
    let folder = try TemporaryFolder()
    let directory = DirectoryFolder(fileSystem: LocalFileSystem(), path: folder.path)
    var keeper = try JournalKeeper.make(in: directory, revision: 0)
    let file = try keeper.makeJournal(byteCount: DirectoryRun.smallJournalByteCount)
    var journal = JournalWriter(file, position: 0, exchange: JournalExchange(file, position: 0))
    var commits = CommitBuffer()
    unsafe "d".bytes.withBytes { key in unsafe commits.put(key, key, kind: .single, expiry: 0, revision: revision) }
    commits.seal()
    unsafe try journal.append(commits.bytes)
    #expect(throws: DirectoryError.self) { _ = try DirectoryRun(folder) }
  }

  @Test func `a journal of version 1 is refused and left unchanged`() throws {
    let folder = try TemporaryFolder()
    _ = try Self.store(folder)
    var journal = try folder.contents(".journal")
    var header = "LRDRDIR1".bytes
    for field: UInt64 in [1, 3] { header.append(littleEndian: field) }
    header.append(littleEndian: header.checksum())
    for copy in [0, 512] {
      journal.replaceSubrange(copy..<copy + 60, with: header + [UInt8](repeating: 0, count: 60 - header.count))
    }
    try folder.put(".journal", journal)
    #expect {
      _ = try DirectoryRun(folder)
    } throws: { error in
      guard case .damaged(_, 0, let reason) = error as? DirectoryError else { return false }
      return reason.contains("version 2")
    }
    #expect(try folder.contents(".journal") == journal)
  }

  @Test func `a file with the last possible revision is foreign`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    let name = EntryName(of: "d".bytes)
    let version = unsafe "".bytes.withBytes { value in
      unsafe EntryVersion(of: name, isList: false, revision: .max, expiry: 0, value: value)
    }
    try folder.put(version.fileName(name), [])
    #expect(try Self.check(folder).issues.map(\.kind) == [.foreign])
    try run.reopen()
    #expect(run.report.revision == 3)
  }

  @Test func `every flipped bit of a value and every renaming is detected`() throws {
    let folder = try TemporaryFolder()
    _ = try Self.store(folder)
    let names = try Self.names(folder)
    let value = try folder.contents(names[0])
    for bit in 0..<value.count * 8 {
      var flipped = value
      flipped[bit / 8] ^= 1 << UInt8(bit % 8)
      try folder.put(names[0], flipped)
      #expect(try Self.check(folder).issues.map(\.kind) == [.changed])
    }
    try folder.put(names[0], value)
    for name in ["b" + names[0].dropFirst(), "a@4" + names[0].dropFirst(3)] {
      try LocalFileSystem().rename(folder.file(names[0]), to: folder.file(name))
      #expect(try Self.check(folder).issues.contains { $0.name == name && $0.kind == .changed })
      try LocalFileSystem().rename(folder.file(name), to: folder.file(names[0]))
    }
  }

  @Test func `a file that claims to be large uses no memory and isn't an entry`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    let names = try Self.names(folder)
    for (name, byteCount) in zip(names, [1 << 40, Int(Int32.max) + 1]) {
      try LocalFileSystem().open(folder.file(name), .writing).truncate(to: byteCount)
    }
    run.model.entries["a".bytes] = nil
    run.model.entries["b".bytes] = nil
    try run.reopen()
    #expect(run.report.issues.map(\.kind) == [.changed, .changed])
  }

  @Test func `an oversized journal is refused with its path and offset`() throws {
    let folder = try TemporaryFolder()
    _ = try Self.store(folder)
    let name = try #require(try folder.names().last(where: Journal.isName))
    try LocalFileSystem().open(folder.file(name), .writing).truncate(to: 1 << 40)
    #expect {
      _ = try DirectoryRun(folder)
    } throws: { error in
      guard case .damaged(folder.file(name), 1 << 30, _) = error as? DirectoryError else { return false }
      return true
    }
    let report = try Self.check(folder)
    #expect(report.entries == 3 && report.issues.map(\.name) == [name])
  }

  @Test func `foreign files are reported and left alone`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    let names = try Self.names(folder)
    let foreign = ["README", "a", "a@1", "\(names[0]).bak", ".hidden", "é"].sorted()
    for name in foreign { try folder.put(name, "x".bytes) }
    try LocalFileSystem().createFolder(folder.file("sub"))
    try run.reopen()
    #expect(run.report.issues.count == 7 && run.report.issues.allSatisfy { $0.kind == .foreign })
    for name in foreign { #expect(try folder.contents(name) == "x".bytes) }
    run.deleteAll()
    try run.write()
    try run.reopen()
    #expect(run.report.issues.count == 7)
  }

  @Test func `links, folders and pipes are not followed, whatever their names`() throws {
    let outside = try TemporaryFolder()
    try outside.put("secret", "value of a".bytes)
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    let names = try Self.names(folder)
    for name in names { try LocalFileSystem().remove(folder.file(name)) }
    // The link's target has exactly the bytes that the name promises.
    try folder.link(names[0], to: outside.file("secret"))
    try LocalFileSystem().createFolder(folder.file(names[1]))
    #expect(unsafe mkfifo(folder.file(names[2]), 0o600) == 0)
    run.model.entries = [:]
    try run.reopen()
    #expect(run.report.issues.map(\.kind) == [.notAFile, .notAFile, .notAFile])
    run.put("a".bytes, [1])
    run.deleteAll()
    run.put("a".bytes, [2])
    try run.write()
    try run.reopen()
    #expect(try outside.contents("secret") == "value of a".bytes)
  }

  @Test func `a list of journals that is a link is refused`() throws {
    let (outside, folder) = (try TemporaryFolder(), try TemporaryFolder())
    _ = try Self.store(outside)
    try folder.link(".journal", to: outside.file(".journal"))
    #expect(throws: DirectoryError.self) { _ = try DirectoryRun(folder) }
    #expect(try Self.check(folder).issues.map(\.kind) == [.notAFile])
  }

  @Test func `a file from another store is reported and kept as an entry`() throws {
    let (folder, other) = (try TemporaryFolder(), try TemporaryFolder())
    _ = try Self.store(folder)
    let name = try Self.names(folder)[2]
    _ = try DirectoryRun(other)
    try other.put(name, folder.contents(name))
    let run = try DirectoryRun(other)
    #expect(run.report.issues.map(\.kind) == [.ahead])
    #expect(run.report.entries == 1 && run.report.revision == 3)
    #expect(try Self.check(other).isClean)
  }

  @Test func `check reports an entry without its key file`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    let long = [UInt8](repeating: 0x61, count: 300)
    run.put(long, [1])
    try run.write()
    try run.performMaintenance()
    let keyFile = try #require(try folder.names().first { $0.hasSuffix("@key") })
    #expect(try folder.contents(keyFile) == long)
    try folder.put(keyFile, long + [0x61])
    #expect(try Self.check(folder).issues.map(\.kind) == [.keyUnknown])
    try LocalFileSystem().remove(folder.file(keyFile))
    #expect(try Self.check(folder).issues.map(\.kind) == [.keyUnknown])
    run.model.entries = [:]
    try run.reopen()
    run.put(long, [2])
    try run.write()
    try run.reopen()
    try run.performMaintenance()
    try run.reopen()
    #expect(run.report.isClean)
  }

  @Test func `after damage in a journal, the newest files are salvaged`() throws {
    let (folder, copy) = (try TemporaryFolder(), try TemporaryFolder())
    var run = try DirectoryRun(folder)
    run.put("a".bytes, [1])
    run.put("long".bytes + [UInt8](repeating: 0x2F, count: 300), [7], kind: .list)
    try run.write()
    let directory = DirectoryFolder(fileSystem: LocalFileSystem(), path: folder.path)
    let damaged = try #require(JournalScan(directory, names: folder.names()).journals.first).end
    run.put("a".bytes, [2])
    try run.write()
    // The files are written, and the journal is still there.
    while try run.entryNames().count < 3 { _ = try run.step() }
    run.put("b".bytes, [3])
    try run.write()
    var journal = try folder.contents(".journal-1")
    journal[damaged + 50] ^= 1
    try folder.put(".journal-1", journal)

    #expect(throws: DirectoryError.self) { _ = try DirectoryRun(folder) }
    let report = try DirectoryCheck.salvage(folder.path, to: copy.path, on: LocalFileSystem())
    #expect(
      report.issues.map(\.kind) == [
        .damaged(offset: damaged, reason: "a frame is invalid, but a later one is valid")
      ]
    )
    #expect(report.entries == 3 && report.lostEntryCount == 0)
    #expect(try Self.check(folder) == report)
    var map = EntryMap()
    let (_, found) = try DirectoryEngine.open(copy.path, on: LocalFileSystem(), into: &map, at: DirectoryRun.now)
    #expect(found.isClean)
    #expect(try DirectoryRun.entries(of: &map) == run.model.entries)
  }

  @Test(arguments: ["first frame", "later frame", "missing journal", "newest copy of the list"])
  func `salvage loses only the damaged part and says how much`(place: String) throws {
    let (folder, copy) = (try TemporaryFolder(), try TemporaryFolder())
    var run = try DirectoryRun(folder, journalByteCount: DirectoryRun.smallJournalByteCount)
    for number in 0..<110 {
      run.put("key \(number)".bytes, [UInt8](repeating: 1, count: 50))
      try run.write()
    }
    try run.performMaintenance()
    try run.reopen()
    // The journals have newer values of most entries than the files, and ten that have no files.
    for number in 7..<120 {
      run.put("key \(number)".bytes, [UInt8](repeating: 2, count: 50))
      try run.write()
    }
    let list = try #require(JournalList(in: try folder.contents(Journal.listName)))
    try #require(list.numbers.count > 1)
    let journal = Journal.name(list.numbers.lowerBound)
    var name = journal
    var (offset, lost) = (Journal.start + 40, 1)
    switch place {
    case "newest copy of the list":
      (name, lost) = (Journal.listName, 0)
      offset = list.copy.offset + 20
    case "later frame": offset = Journal.start + 300
    default: break
    }
    if place == "missing journal" {
      let bytes = try folder.contents(journal)
      let header = try #require(JournalHeader(in: bytes, number: list.numbers.lowerBound))
      (offset, lost) = (Journal.start, 0)
      while let frame = JournalFrame(in: bytes, at: offset, of: header) { (offset, lost) = (frame.end, lost + 1) }
      try #require(lost > 5)
      try LocalFileSystem().remove(folder.file(journal))
    } else {
      var bytes = try folder.contents(name)
      bytes[offset] ^= 1
      try folder.put(name, bytes)
    }
    let report = try DirectoryCheck.salvage(folder.path, to: copy.path, on: LocalFileSystem())
    // The other copy of the list differs only in an empty journal.
    if lost > 0 {
      #expect(!report.isClean)
      #expect(throws: DirectoryError.self) { _ = try DirectoryRun(folder) }
    }
    var map = EntryMap()
    _ = try DirectoryEngine.open(copy.path, on: LocalFileSystem(), into: &map, at: DirectoryRun.now)
    let entries = try DirectoryRun.entries(of: &map)
    let differing = run.model.entries.count { entries[$0.key] != $0.value }
    #expect(report.lostEntryCount == differing && differing <= lost, "\(differing), not \(report.lostEntryCount)")
    #expect(differing > 0 || lost == 0)
  }

  @Test func `a key that is not UTF-8 and a malformed list are damage at their files`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    func put(_ key: [UInt8], _ value: [UInt8], isList: Bool) throws -> String {
      let name = EntryName(of: key)
      let version = unsafe value.withUnsafeBytes { value in
        unsafe EntryVersion(of: name, isList: isList, revision: 2, expiry: 0, value: value)
      }
      try folder.put(version.fileName(name), value)
      return version.fileName(name)
    }
    let names = [
      try put([0x78, 0xFF], "value".bytes, isList: false), try put("list".bytes, [9, 0, 0, 0, 1], isList: true),
      try put("list2".bytes, [1], isList: true),
    ]
    _ = try put("whole".bytes, [1, 0, 0, 0, 1], isList: true)
    let report = try Self.check(folder)
    #expect(Set(report.issues.map(\.name)) == Set(names) && report.lostEntryCount == 3 && report.entries == 4)
    #expect(report.issues.allSatisfy { if case .invalid = $0.kind { true } else { false } })
    var files = StoreReport("files", engine: .directory, damage: nil)
    files.add(StoreReport.Files(report, in: folder.path))
    #expect(files.damage.count == 3)
    run.model.entries["whole".bytes] = .init(kind: .list, revision: 2, expiry: 0, value: [1, 0, 0, 0, 1])
    try run.reopen()
    run.put("list".bytes, "fine".bytes)
    try run.write()
    try run.reopen()
    #expect(run.report.issues.count == 2)
  }

  @Test func `a journal with a key that is not UTF-8 is refused`() throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put([0xFF], [])
    try run.write()
    #expect(throws: DirectoryError.self) { _ = try DirectoryRun(folder) }
    #expect(try !Self.check(folder).isClean)
  }

  @Test func `a list that claims two billion journals doesn't use memory for them`() throws {
    let folder = try TemporaryFolder()
    _ = try Self.store(folder)
    for upper in [1 << 30 - 1, 1 << 31 - 1, 1 << 62] {
      var copy = Array(JournalList(numbers: 1..<upper, revision: 3).copy.bytes)
      copy += [UInt8](repeating: 0, count: 512 - copy.count)
      try folder.put(".journal", copy + copy)
      #expect(throws: DirectoryError.self) { _ = try DirectoryRun(folder) }
      #expect(try Self.check(folder).entries == 3)
    }
  }

  @Test(arguments: [".journal", ".journal-1"]) func `a directory store of a later version is refused and left alone`(
    name: String
  ) throws {
    let folder = try TemporaryFolder()
    var run = try DirectoryRun(folder)
    run.put("a".bytes, [1])
    try run.write()
    var bytes = try folder.contents(name)
    for copy in [0, 512] { bytes[copy + 7] = UInt8(ascii: "4") }
    try folder.put(name, bytes)
    let before = try folder.names().sorted()
    #expect(throws: DirectoryError.laterVersion(path: folder.file(name))) { _ = try DirectoryRun(folder) }
    #expect(throws: DirectoryError.self) {
      try DirectoryEngine.checkVersion(in: folder.path, on: LocalFileSystem())
    }
    #expect(try folder.names().sorted() == before && folder.contents(name) == bytes)
    #expect(try Self.check(folder).issues.map(\.kind) == [.laterVersion])
  }

  @Test(arguments: ["missing", "damaged", "old", "older", "missing, while a journal was made"])
  func `journals are salvaged even without the list of them`(list state: String) throws {
    let (folder, copy) = (try TemporaryFolder(), try TemporaryFolder())
    var run = try DirectoryRun(folder, journalByteCount: DirectoryRun.smallJournalByteCount)
    run.put("gone".bytes, [1])
    try run.write()
    try run.performMaintenance()
    let list = try folder.contents(".journal")
    if state == "older" {
      // The journals in that list are no longer there.
      for number in 0..<40 {
        run.put("key \(number)".bytes, [UInt8](repeating: 1, count: 1_000))
        try run.write()
        try run.performMaintenance()
      }
      for number in 0..<40 { run.delete("key \(number)".bytes) }
      try run.write()
      try run.performMaintenance()
    }
    // From here on, there are no files, but several journals.
    for number in 0..<40 {
      run.put("key \(number % 30)".bytes, [UInt8](repeating: UInt8(number), count: 1_000))
      try run.write()
    }
    run.delete("gone".bytes)
    try run.write()
    let journals = try folder.names().compactMap(Journal.number).sorted()
    try #require(journals.count > 2)
    switch state {
    case "damaged": try folder.put(".journal", [UInt8](repeating: 1, count: list.count))
    case "old", "older": try folder.put(".journal", list)
    default: try LocalFileSystem().remove(folder.file(".journal"))
    }
    if state.contains("made") {
      let (spare, next) = (Journal.name(journals[0] - 1), JournalHeader(number: journals.last! + 1))
      try folder.put(spare, next.fileBytes + [0, 0, 0, 0])
    }

    #expect(throws: DirectoryError.self) { _ = try DirectoryRun(folder) }
    let report = try DirectoryCheck.salvage(folder.path, to: copy.path, on: LocalFileSystem())
    #expect(report.issues.map(\.name) == [".journal"] && report.entries == 30, "\(report.issues) \(journals)")
    var map = EntryMap()
    let (_, found) = try DirectoryEngine.open(copy.path, on: LocalFileSystem(), into: &map, at: DirectoryRun.now)
    #expect(found.isClean && found.revision == report.revision)
    #expect(try DirectoryRun.entries(of: &map) == run.model.entries)
  }

  @Test func `damage in a journal is reported along with that of the list`() throws {
    let (folder, copy) = (try TemporaryFolder(), try TemporaryFolder())
    var run = try DirectoryRun(folder, journalByteCount: DirectoryRun.smallJournalByteCount)
    for number in 0..<40 {
      run.put("key \(number)".bytes, [UInt8](repeating: UInt8(number), count: 1_000))
      try run.write()
    }
    let journals = try folder.names().compactMap(Journal.number).sorted().map(Journal.name)
    try #require(journals.count > 2)
    try LocalFileSystem().remove(folder.file(".journal"))
    var bytes = try folder.contents(journals[1])
    bytes[Journal.start + 2_000] ^= 1
    try folder.put(journals[1], bytes)
    let report = try DirectoryCheck.salvage(folder.path, to: copy.path, on: LocalFileSystem())
    #expect(report.issues.map(\.name) == [".journal", journals[1]])
    #expect((1..<40).contains(report.entries))
  }

  @Test func `opening a directory store removes leftovers`() throws {
    let folder = try TemporaryFolder()
    var run = try Self.store(folder)
    let names = try Self.names(folder)
    try folder.put(".new", "half".bytes)
    let old = try folder.contents(names[0])
    run.put("a".bytes, [9])
    try run.write()
    try run.performMaintenance()
    try folder.put(names[0], old)
    try folder.put(".new", "half".bytes)
    #expect(try Self.check(folder).leftovers == 2)
    try run.reopen()
    #expect(run.report.isClean && run.report.leftovers == 2)
    try run.performMaintenance()
    #expect(try run.entryNames().count == 3 && !folder.names().contains(".new"))
  }
}
