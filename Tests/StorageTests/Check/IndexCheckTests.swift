import Documents
import Platform
import TestSupport
import Testing

@testable import Storage

@Suite("A check of the definitions of a store's indexes")
struct IndexCheckTests {
  private let folder: TemporaryFolder
  private let name: StoreName
  private let indexes = IndexDefinitionsTests.indexes
  private var path: String { folder.file("data") }
  private var file: String { "data/stores/a/indexes" }

  /// Creates a data directory with a store of two entries and four indexes.
  init() throws {
    folder = try TemporaryFolder()
    name = try StoreName("a")
    let catalog = StoreCatalog(data: try DataDirectory.open(path))
    let store = try catalog.create(name, StoreSpecification("log"))
    try store.access { map in
      try map.write("1".bytes, #"{"name": "x"}"#.bytes)
      try map.write("2".bytes, #"{"name": "y"}"#.bytes)
    }
    for index in indexes { try catalog.ensureIndex(index, of: name) }
    catalog.close()
  }

  private func check() throws -> StoreReport {
    let check = try DataDirectoryCheck(path)
    #expect(check.stores.count == 1)
    return check.check(check.stores[0]) { _ in }
  }

  private func salvage(to place: String) throws -> StoreReport {
    let check = try DataDirectoryCheck(path)
    return try check.salvage(check.stores[0], into: DataDirectory.open(folder.file(place))) { _ in }
  }

  @Test func `check counts the definitions of indexes, and salvage copies them`() throws {
    let report = try check()
    #expect(report.isIntact && report.indexCount == 4)
    let salvaged = try salvage(to: "out")
    #expect(salvaged.isIntact && salvaged.indexCount == 4)
    let catalog = StoreCatalog(data: try DataDirectory.open(folder.file("out")))
    try catalog.openAll { _, _ in }
    let store = try catalog.open(name)
    #expect(store.indexReports.map(\.index) == indexes.sorted { $0.name < $1.name })
    #expect(store.access { map in map.count(now: 0) } == 2)
    catalog.close()
  }

  @Test func `check names a damaged file of indexes, and salvage copies the entries without it`() throws {
    var bytes = try folder.contents(file)
    bytes[bytes.count / 2] ^= 4
    try folder.put(file, bytes)
    let damage = StoreReport.Damage(path: folder.file(file), offset: nil, reason: "the checksum is wrong")
    let report = try check()
    #expect(report.damage == [damage] && report.indexCount == 0 && report.count > 0)
    #expect(try folder.contents(file) == bytes)
    let salvaged = try salvage(to: "out")
    #expect(salvaged.damage == [damage])
    let data = try DataDirectory.open(folder.file("out"))
    #expect(try data.indexes(of: name) == [])
    #expect(try folder.contents("out/stores/a/store").count > 0)
  }

  @Test func `a store without a file of indexes has none`() throws {
    try LocalFileSystem().remove(folder.file(file))
    let report = try check()
    #expect(report.isIntact && report.indexCount == 0)
    _ = try salvage(to: "out")
    #expect(try LocalFileSystem().list(folder.file("out/stores/a")).sorted() == ["files", "history", "store"])
  }
}
