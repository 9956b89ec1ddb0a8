import DataSources
import EntryFiles
import Foundation
import Platform
import Storage
import TestSupport
import Testing

/// The directories of a `DeviceStorageDataSource` are directories of the server's directory engine
/// (Protocol/directory-format.md, §8).
@Suite struct DirectoryStoreTests {
  private let temporary: TemporaryFolder
  private let directory: URL

  init() throws {
    temporary = try TemporaryFolder()
    directory = temporary.url.appendingPathComponent("regular")
  }

  var source: DeviceStorageDataSource<Item> { DeviceStorageDataSource(directory: temporary.url) }

  /// Opens the directory as a store.
  func open(into map: inout EntryMap) throws -> (engine: DirectoryEngine, report: DirectoryReport) {
    try DirectoryEngine.open(directory.path, on: LocalFileSystem(), into: &map)
  }

  /// Opens the directory as a store, writes the files of all entries, and closes it.
  @discardableResult
  func open() throws -> DirectoryReport {
    var map = EntryMap()
    let (engine, report) = try open(into: &map)
    while try engine.performMaintenance(at: wallMilliseconds()) {}
    try engine.close()
    return report
  }

  /// Puts entries with the engine. If `settles`, their files exist afterwards; otherwise they are in the journal only.
  func put(_ entries: [(key: String, value: [UInt8], isList: Bool)], settles: Bool) throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    var map = EntryMap()
    let (engine, report) = try open(into: &map)
    var commits = CommitBuffer()
    for (number, entry) in entries.enumerated() {
      let revision = report.revision + UInt64(number) + 1
      unsafe Array(entry.key.utf8).withUnsafeBytes { key in
        unsafe entry.value.withUnsafeBytes { value in
          unsafe commits.put(key, value, kind: entry.isList ? .list : .single, expiry: 0, revision: revision)
        }
      }
      commits.seal()
      unsafe _ = try engine.write(
        commits.bytes, last: commits.lastRevision, separatedCount: commits.separatedCount, syncs: true)
      commits.removeAll()
    }
    if settles { try open() }
  }

  func json(_ title: String) -> [UInt8] { Array("{\"title\":\"\(title)\"}".utf8) }

  @Test func `the engine opens a directory that the source has written`() async throws {
    let long = String(repeating: "K/", count: 2_048)
    for round in 1...2 { try await source.put(Item("one", price: round), forId: "Book/1") }
    try await source.put("two", forId: long)
    try await source.putAll(["x", "y"], forId: "list")
    try await source.putAll(["a", "b"], forId: ["gone", "b"])
    try await source.delete("gone")
    var map = EntryMap()
    let report = try open(into: &map).report
    #expect(report.issues.map(\.kind) == [.journalMissing])
    #expect(report.entries == 4 && report.leftovers == 0)
    #expect(report.revision >= 5)
    var found: [String: (kind: EntryKind, text: String)] = [:]
    for key in ["Book/1", long, "list", "b"] {
      let entry = unsafe map.get(Array(key.utf8).span.bytes, now: 0)
      found[key] = entry.map { unsafe ($0.kind, String(decoding: $0.value!, as: UTF8.self)) }
    }
    let book = try JSONDecoder().decode(Item.self, from: Data(found["Book/1"]!.text.utf8))
    #expect(book == Item("one", price: 2))
    #expect(found[long]!.text.contains("two") && found["list"]!.kind == .list)
  }

  @Test func `the source reads a directory that the engine has written, and doesn't write to it`() async throws {
    let long = String(repeating: "k", count: 300)
    let element = json("x")
    let list = [UInt8(element.count), 0, 0, 0] + element
    try put(
      [("a", json("old"), false), ("a", json("new"), false), ("B", list + list, true), (long, json("l"), false)],
      settles: true)
    #expect(try await source.get("a") == "new")
    #expect(try await source.getAll("B") == ["x", "x"])
    #expect(try await source.get(long) == "l")
    #expect(try await source.keys() == ["B", "a", long])
    #expect(await failure { try await source.put("mine", forId: "a") } == .failed)
    #expect(await failure { try await source.delete(AllObjectsQuery()) } == .failed)
    let report = try open()
    #expect(report.entries == 3 && report.isClean)
  }

  @Test func `the source doesn't ignore writes that are only in the engine's journal`() async throws {
    try put([("a", json("one"), false)], settles: true)
    let known = source
    #expect(try await known.get("a") == "one")
    try put([("a", json("two"), false)], settles: false)
    #expect(await failure { try await known.get("a") } == .failed)
    try open()
    #expect(try await known.get("a") == "two")
  }

  @Test(arguments: ["a@9-list-", "a@9-x1-"])
  func `a write replaces a damaged or expired entry with a greater revision`(_ stem: String) async throws {
    try await source.put("one", forId: "a")
    try Data([255, 255, 255, 255]).write(to: directory.appendingPathComponent(stem + "00000000"))
    #expect(await failure { try await source.getAll("a") } == (stem.contains("x") ? .notFound : .dataSerialization))
    // The next revision is greater than that of the damaged or expired file.
    try await source.put("two", forId: "a")
    #expect(try await source.get("a") == "two")
    #expect(try temporary.subpaths().filter { $0.hasPrefix("regular/a@10-") }.count == 1)
    #expect(try temporary.subpaths().filter { $0.contains("@") }.count == 1)
  }

  @Test(arguments: [[1, 0, 0, 0], [0, 0], [255, 255, 255, 255, 1]] as [[UInt8]])
  func `a list with wrong sizes is an error`(_ content: [UInt8]) async throws {
    try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    let name = EntryName(of: Array("a".utf8))
    let version = unsafe content.withUnsafeBytes { content in
      unsafe EntryVersion(of: name, isList: true, revision: 1, expiry: 0, value: content)
    }
    try temporary.put("regular/" + version.fileName(name), content)
    #expect(await failure { try await source.getAll("a") } == .dataSerialization)
  }
}
