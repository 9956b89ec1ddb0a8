import Documents
import Platform
import Synchronization
import TestSupport
import Testing

@testable import Storage

@Suite struct `Indexes of a map` {
  @Test(arguments: SeededGenerator.seeds(8)) func `an index has the documents of every snapshot, whatever is written`(
    seed: UInt64
  ) throws {
    var run = try IndexRun(seed: seed)
    for _ in 0..<3_000 { try run.step() }
    try run.end()
  }

  @Test(arguments: SeededGenerator.seeds(3))
  func `an index has the documents that eviction leaves`(seed: UInt64) throws {
    var run = try IndexRun(seed: seed, limit: 1 << 20)
    for _ in 0..<3_000 { try run.step() }
    try run.end()
  }

  @Test func `indexes are listed by name and compared by definition`() throws {
    var map = EntryMap()
    #expect(try map.ensureIndex(DocumentIndex(["b"])))
    #expect(try map.ensureIndex(DocumentIndex(["a"])))
    #expect(try !map.ensureIndex(DocumentIndex(["a"])))
    let other = try DocumentIndex(["c"], name: "a")
    #expect(throws: StorageError.indexExists(try DocumentIndex(["a"]))) { _ = try map.ensureIndex(other) }
    #expect(map.indexReports.map(\.index.name) == ["a", "b"])
    try map.deleteIndex(named: "a")
    #expect(throws: StorageError.unknownIndex("a")) { try map.deleteIndex(named: "a") }
    #expect(map.indexReports.map(\.index.name) == ["b"])
  }

  @Test func `an index frees the keys of an ended snapshot in slices`() throws {
    var map = EntryMap()
    _ = try map.ensureIndex(DocumentIndex(["a"]))
    for number in 0..<5_000 { try map.write("\(number)".bytes, Array(#"{"a": \#(number)}"#.utf8)) }
    guard let indexes = map.indexes else { preconditionFailure("the map has an index") }
    let before = indexes.limitedBytes
    let snapshot = map.snapshot(now: 0)
    for number in 0..<5_000 { try map.write("\(number)".bytes, Array(#"{"a": -\#(number)}"#.utf8)) }
    #expect(indexes.visibleBytes > 100_000)
    map.end(snapshot)
    #expect(indexes.visibleBytes == 0)
    var slices = 1
    while map.reclaimBriefly() { slices += 1 }
    #expect(slices > 5)
    #expect(!indexes.hasEndedViews)
    // Only nodes that are less full make a difference.
    #expect(abs(indexes.limitedBytes - before) < before / 2)
    let last = map.snapshot(now: 0)
    try map.validateIndexes(in: last, map.copies(in: last))
  }

  @Test func `a map has at most 64 indexes`() throws {
    var map = EntryMap()
    for number in 0..<64 { _ = try map.ensureIndex(DocumentIndex(["f\(number)"])) }
    #expect(throws: StorageError.tooManyIndexes(limit: 64)) { _ = try map.ensureIndex(DocumentIndex(["g"])) }
  }
}

@Suite struct `Building indexes` {
  private static func wait(for store: Store) async throws {
    while store.indexReports.contains(where: { $0.state != .complete }) { try await Task.sleep(for: .milliseconds(1)) }
  }

  /// A build ends its snapshot after its indexes are complete.
  private static func waitForEndOfSnapshots(of store: Store) async throws {
    while store.access({ $0.snapshotCount }) > 0 { try await Task.sleep(for: .milliseconds(1)) }
  }

  private static func validate(_ store: Store) throws -> Int {
    let (snapshot, copies) = try store.access { map in
      let snapshot = map.snapshot(now: 0)
      return (snapshot, try map.copies(in: snapshot))
    }
    defer { store.access { $0.end(snapshot) } }
    return try store.access { map in try map.validateIndexes(in: snapshot, copies) }
  }

  @Test func `building an index makes it complete`() async throws {
    let store = Store(name: try StoreName("s"), engine: .memory)
    var random = SeededGenerator(seed: 1)
    for number in 0..<3_000 { try RandomWriter.put(number, DocumentMaker.value(using: &random), into: store) }
    for size in [40_000, 100_000, 1_000_000] {
      try RandomWriter.put(size, DocumentMaker.large(size, using: &random), into: store)
    }
    for definition in try IndexRun.definitions() { try store.ensureIndex(definition) }
    try await Self.wait(for: store)
    #expect(try Self.validate(store) == IndexRun.definitions().count)
    try await Self.waitForEndOfSnapshots(of: store)
    // A build makes the keys of large documents, too.
    #expect(store.indexReports.allSatisfy { $0.overflowCount == 0 })
  }

  @Test func `building an index makes the keys of large documents that are written meanwhile`() async throws {
    let store = Store(name: try StoreName("s"), engine: .memory)
    var random = SeededGenerator(seed: 1)
    for definition in try IndexRun.definitions() { try store.ensureIndex(definition) }
    for number in 0..<30 {
      let size = Int.random(in: 33_000..<150_000, using: &random)
      try RandomWriter.put(number % 20, DocumentMaker.large(size, using: &random), into: store)
      #expect(try Self.validate(store) == IndexRun.definitions().count)
    }
    while store.indexReports.contains(where: { $0.overflowCount > 0 }) { try await Task.sleep(for: .milliseconds(1)) }
    #expect(store.indexReports.map(\.documentCount).max() == 20)
    #expect(try Self.validate(store) == IndexRun.definitions().count)
  }

  @Test(arguments: SeededGenerator.seeds(2))
  func `an index is built while documents are written`(seed: UInt64) async throws {
    let store = Store(name: try StoreName("s"), engine: .memory)
    var random = SeededGenerator(seed: seed)
    for number in 0..<4_000 { try RandomWriter.put(number, DocumentMaker.value(using: &random), into: store) }
    let writer = RandomWriter(seed: seed &+ 1, store: store)
    let definitions = try IndexRun.definitions()
    try await withThrowingTaskGroup { group in
      group.addTask { try await writer.run() }
      for _ in 0..<2 {
        for definition in definitions { try store.ensureIndex(definition) }
        try await Self.wait(for: store)
        #expect(try Self.validate(store) == definitions.count, "LARDER_SEED=\(seed)")
        for definition in definitions { try store.deleteIndex(named: definition.name) }
      }
      writer.stop()
      try await group.waitForAll()
    }
    try await Self.waitForEndOfSnapshots(of: store)
  }

  @Test func `building an index can be canceled, and ends when the store is cleared or dropped`() async throws {
    let store = Store(name: try StoreName("s"), engine: .memory)
    var random = SeededGenerator(seed: 1)
    let definition = try DocumentIndex(["a"])
    for number in 0..<4_000 { try RandomWriter.put(number, DocumentMaker.value(using: &random), into: store) }
    try store.ensureIndex(definition)
    try store.deleteIndex(named: definition.name)
    try store.ensureIndex(definition)
    _ = try store.access { map in try map.deleteAll(now: 0) }
    #expect(store.indexReports.map(\.state) == [.complete])
    try RandomWriter.put(1, Array(#"{"a": 1}"#.utf8), into: store)
    #expect(try Self.validate(store) == 1)
    for number in 0..<4_000 { try RandomWriter.put(number, DocumentMaker.value(using: &random), into: store) }
    try store.ensureIndex(DocumentIndex(["b"]))
    store.access { $0.drop() }
    #expect(store.indexReports.isEmpty)
    try await Self.waitForEndOfSnapshots(of: store)
  }
}

/// Writes random documents until it is stopped.
private final class RandomWriter: Sendable {
  private let seed: UInt64
  private let store: Store
  private let isStopped = Atomic(false)

  init(seed: UInt64, store: Store) {
    self.seed = seed
    self.store = store
  }

  static func put(_ number: Int, _ value: [UInt8], into store: Store) throws {
    let key = Array("key \(number)".utf8)
    try store.access { map in
      let revision = map.revisions.last + 1
      unsafe try map.put(key.span.bytes, value.span.bytes, revision: revision)
    }
  }

  private static func delete(_ number: Int, from store: Store) throws {
    let key = Array("key \(number)".utf8)
    _ = try store.access { map in
      let revision = map.revisions.last + 1
      return unsafe try map.delete(key.span.bytes, revision: revision, now: 0)
    }
  }

  func run() async throws {
    var random = SeededGenerator(seed: seed)
    while !isStopped.load(ordering: .relaxed) {
      let number = Int.random(in: 0..<4_500, using: &random)
      switch Int.random(in: 0..<100, using: &random) {
      case 0..<70: try Self.put(number, DocumentMaker.value(using: &random), into: store)
      case 70: try Self.put(number, DocumentMaker.large(40_000, using: &random), into: store)
      default: try Self.delete(number, from: store)
      }
      // Leave the thread to other tasks: there may be as many writers as threads.
      await Task.yield()
    }
  }

  func stop() { isStopped.store(true, ordering: .relaxed) }
}
