import Dispatch
import Documents
import Glibc
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Storage

@Suite("The indexes of the catalog's stores")
struct StoreIndexTests {
  private let folder: TemporaryFolder
  private let name: StoreName
  private var path: String { folder.file("data") }

  init() throws {
    folder = try TemporaryFolder()
    name = try StoreName("people")
  }

  private static func names(_ store: Store) -> [String] { store.indexReports.map(\.index.name) }

  private func open(_ data: DataDirectory) throws -> StoreCatalog {
    let catalog = StoreCatalog(data: data)
    try catalog.openAll { _, _ in }
    return catalog
  }

  @Test(arguments: [EngineKind].builtIn)
  func `an index is created once, and deleted once`(engine: EngineKind) throws {
    let catalog = StoreCatalog(data: try DataDirectory.open(path))
    defer { catalog.close() }
    let store = try catalog.create(name, StoreSpecification(engine))
    let (age, other) = (try DocumentIndex(["age"], name: "a"), try DocumentIndex(["name"], name: "a"))
    let (first, second) = try (catalog.ensureIndex(age, of: name), catalog.ensureIndex(age, of: name))
    #expect(first && !second)
    #expect(throws: StorageError.indexExists(age)) { try catalog.ensureIndex(other, of: name) }
    #expect(throws: StorageError.unknownIndex("b")) { try catalog.deleteIndex(named: "b", of: name) }
    #expect(Self.names(store) == ["a"])
    try catalog.deleteIndex(named: "a", of: name)
    #expect(throws: StorageError.unknownIndex("a")) { try catalog.deleteIndex(named: "a", of: name) }
    try catalog.ensureIndex(other, of: name)
    #expect(store.indexReports.map(\.index) == [other])
    let none = try StoreName("none")
    #expect(throws: StorageError.unknownStore(none)) { try catalog.ensureIndex(age, of: none) }
    #expect(throws: StorageError.unknownStore(none)) { try catalog.deleteIndex(named: "a", of: none) }
  }

  @Test(arguments: [EngineKind.log, .directory])
  func `the indexes of a durable store are there after it is reopened`(engine: EngineKind) throws {
    var expected: [DocumentIndex] = []
    for round in 0..<4 {
      let catalog = try open(DataDirectory.open(path))
      defer { catalog.close() }
      let store = try round == 0 ? catalog.create(name, StoreSpecification(engine)) : catalog.open(name)
      #expect(store.indexReports.map(\.index) == expected.sorted { $0.name < $1.name }, "round \(round)")
      if round == 2 {
        try catalog.deleteIndex(named: expected[0].name, of: name)
        expected.removeFirst()
      } else {
        expected.append(IndexDefinitionsTests.indexes[round])
        try catalog.ensureIndex(expected[expected.count - 1], of: name)
      }
    }
    let catalog = try open(DataDirectory.open(path))
    try catalog.drop(name)
    let store = try catalog.create(name, StoreSpecification(engine))
    #expect(Self.names(store) == [])
    catalog.close()
  }

  @Test func `a store has up to 64 indexes, and definitions of up to 1 MiB`() throws {
    let catalog = StoreCatalog()
    let store = try catalog.create(name, .init(.memory))
    for number in 0..<64 { try catalog.ensureIndex(DocumentIndex(["f\(number)"]), of: name) }
    #expect(throws: StorageError.tooManyIndexes(limit: 64)) { try catalog.ensureIndex(DocumentIndex(["x"]), of: name) }
    // One that exists can still be confirmed.
    #expect(try !catalog.ensureIndex(DocumentIndex(["f9"]), of: name))
    for number in 0..<63 { try catalog.deleteIndex(named: "f\(number)", of: name) }
    func index(_ name: String) throws -> DocumentIndex {
      try DocumentIndex(
        ["x"].map { .ascending(FieldPath($0)!) },
        where: .field("text", .equal(.string(String(repeating: "x", count: 600_000)))), name: name)
    }
    try catalog.ensureIndex(index("large"), of: name)
    #expect(throws: StorageError.indexesTooLarge(limit: 1 << 20)) { try catalog.ensureIndex(index("other"), of: name) }
    #expect(Self.names(store) == ["f63", "large"])
  }

  @Test func `an index that can't be recorded is not created, and one whose deletion can't be is not deleted`() throws {
    // The lock is a local file, whatever the disk.
    try LocalFileSystem().createFolder(path)
    let disk = SimulatedDisk(seed: 1)
    disk.placeFolder(path)
    let data = try DataDirectory.open(path, on: disk)
    let catalog = StoreCatalog(data: data)
    defer { catalog.close() }
    let store = try catalog.create(name, StoreSpecification("log"))
    try catalog.ensureIndex(DocumentIndex(["a"]), of: name)
    var failureCount = 0
    for call in 1...10 {
      disk.injectedFailure = .init(number: call, errno: EIO, isPersistent: true)
      do throws(StorageError) {
        try catalog.deleteIndex(named: "a", of: name)
        #expect(Self.names(store) == [])
      } catch {
        guard case .unreadable = error else { throw error }
        failureCount += 1
        #expect(Self.names(store) == ["a"])
        #expect(throws: StorageError.self) { try catalog.ensureIndex(DocumentIndex(["b"]), of: name) }
        #expect(Self.names(store) == ["a"])
      }
      // Once the disk works again, what is recorded is what the store has.
      disk.injectedFailure = nil
      try catalog.ensureIndex(DocumentIndex(["c"]), of: name)
      #expect(try data.indexes(of: name).map(\.name) == Self.names(store))
      try catalog.ensureIndex(DocumentIndex(["a"]), of: name)
      try catalog.deleteIndex(named: "c", of: name)
    }
    #expect((1..<10).contains(failureCount))
  }

  @Test func `creating an index on a full disk fails with diskFull`() throws {
    let disk = SimulatedDisk(seed: 1)
    try LocalFileSystem().createFolder(path)
    disk.placeFolder(path)
    let catalog = StoreCatalog(data: try DataDirectory.open(path, on: disk))
    defer { catalog.close() }
    let store = try catalog.create(name, StoreSpecification("log"))
    disk.byteLimit = disk.bytesTaken
    #expect(throws: StorageError.diskFull) { try catalog.ensureIndex(DocumentIndex(["a"]), of: name) }
    #expect(Self.names(store) == [])
    disk.byteLimit = .max
    try catalog.ensureIndex(DocumentIndex(["a"]), of: name)
    #expect(Self.names(store) == ["a"])
  }

  @Test func `changes of indexes from many threads are all recorded`() throws {
    let data = try DataDirectory.open(path)
    let catalog = StoreCatalog(data: data)
    let store = try catalog.create(name, StoreSpecification("directory?durability=none"))
    let failures = Atomic(0)
    DispatchQueue.concurrentPerform(iterations: 8) { thread in
      do {
        for number in 0..<6 { try catalog.ensureIndex(DocumentIndex(["t\(thread)n\(number)"]), of: name) }
        for number in 0..<6 where number % 2 == 0 { try catalog.deleteIndex(named: "t\(thread)n\(number)", of: name) }
      } catch { failures.add(1, ordering: .relaxed) }
    }
    #expect(failures.load(ordering: .relaxed) == 0)
    catalog.close()
    #expect(try data.indexes(of: name).map(\.name) == Self.names(store))
    #expect(Set(Self.names(store)) == Set((0..<8).flatMap { t in [1, 3, 5].map { "t\(t)n\($0)" } }))
  }
}
