import Documents
import Foundation
import Platform
import TestSupport
import Testing

@testable import Storage

@Suite("Keys of large documents that a log store keeps")
struct KeptKeysTests {
  private static let documentCount = 20
  private static let padding = 600_000
  /// The size of all values that are put without another padding.
  private static let valueSize = 600_017

  private let folder: TemporaryFolder
  private let name: StoreName
  private let files = ObservedFiles()
  private var file: String { folder.file("data/stores/documents/index-keys") }

  init() throws {
    folder = try TemporaryFolder()
    name = try StoreName("documents")
  }

  private func open() throws -> StoreCatalog {
    let catalog = StoreCatalog(data: try DataDirectory.open(folder.file("data"), on: files))
    try catalog.openAll { _, _ in }
    return catalog
  }

  /// Waits until nothing is to be built, and the keys of all large documents are made and kept.
  private func wait(for store: Store) async throws {
    while store.indexReports.contains(where: { $0.state != .complete || $0.overflowCount > 0 }) {
      try await Task.sleep(for: .milliseconds(1))
    }
    // What was made is written at the end.
    IndexBuilder.queue.sync {}
  }

  private func put(_ number: Int, seed: Int, padding: Int = padding, into store: Store) throws {
    var random = SeededGenerator(seed: UInt64(number * 1_000 + seed))
    try store.putWhenThereIsSpace(Array("key \(number)".utf8), DocumentMaker.large(padding, using: &random))
  }

  /// Creates the store with its documents and indexes.
  private func create() async throws {
    let catalog = try open()
    defer { catalog.close() }
    let store = try catalog.create(name, StoreSpecification("log?durability=none"))
    for definition in try IndexRun.definitions() { try catalog.ensureIndex(definition, of: name) }
    for number in 0..<Self.documentCount { try put(number, seed: 0, into: store) }
    try await wait(for: store)
  }

  /// Opens the store and compares its indexes with its documents.
  /// - Returns: The number of values that were read until the indexes were complete.
  @discardableResult
  private func reopen(_ body: (Store) throws -> Void = { _ in }) async throws -> Int {
    let before = files.reads(ofByteCount: Self.valueSize)
    let catalog = try open()
    defer { catalog.close() }
    let store = try catalog.open(name)
    try await wait(for: store)
    let readCount = files.reads(ofByteCount: Self.valueSize) - before
    try body(store)
    try await wait(for: store)
    try validate(store)
    return readCount
  }

  private func validate(_ store: Store) throws {
    let (snapshot, copies) = try store.access { map in
      let snapshot = map.snapshot(now: 0)
      return (snapshot, try map.copies(in: snapshot))
    }
    defer { store.access { $0.end(snapshot) } }
    let completeCount = try store.access { map in try map.validateIndexes(in: snapshot, copies) }
    #expect(try completeCount == IndexRun.definitions().count)
  }

  @Test func `reopening a store builds its indexes without reading the values again`() async throws {
    try await create()
    #expect(try await reopen() == 0)
    try FileManager.default.removeItem(atPath: file)
    #expect(try await reopen() == Self.documentCount)
    // What was made is kept.
    #expect(try await reopen() == 0)
  }

  @Test func `kept index keys are replaced when a value changes`() async throws {
    try await create()
    for seed in 1...3 {
      try await reopen { store in
        for number in 0..<10 { try put(number * 2, seed: seed, into: store) }
      }
    }
    #expect(try await reopen() == 0)
  }

  @Test(arguments: SeededGenerator.seeds(2))
  func `a damaged file of index keys costs time, not results`(seed: UInt64) async throws {
    try await create()
    var random = SeededGenerator(seed: seed)
    for _ in 0..<5 {
      var bytes = try Data(contentsOf: URL(filePath: file))
      for _ in 0..<Int.random(in: 0...3, using: &random) {
        bytes[Int.random(in: 0..<bytes.count, using: &random)] = UInt8.random(in: 0...255, using: &random)
      }
      if Bool.random(using: &random) { bytes.count = Int.random(in: 0...bytes.count, using: &random) }
      try bytes.write(to: URL(filePath: file))
      try await reopen { store in try put(3, seed: Int.random(in: 1...100, using: &random), into: store) }
    }
  }

  @Test func `the file of index keys stays small`() async throws {
    try await create()
    let catalog = try open()
    defer { catalog.close() }
    let store = try catalog.open(name)
    var byteCounts: [Int] = []
    for seed in 1...120 {
      for number in 0..<10 { try put(number, seed: seed, padding: 33_000, into: store) }
      if seed % 10 == 0 {
        try await wait(for: store)
        byteCounts.append(try files.open(file, .reading).byteCount())
      }
    }
    #expect(byteCounts.max()! < 400_000 && byteCounts.last! < 300_000, "\(byteCounts)")
    try validate(store)
  }

  @Test func `indexes are built without the file of index keys`() async throws {
    try await create()
    try FileManager.default.removeItem(atPath: file)
    try FileManager.default.createDirectory(atPath: file, withIntermediateDirectories: false)
    #expect(try await reopen() == Self.documentCount)
  }
}
