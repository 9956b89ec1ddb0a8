import Documents
import TestSupport
import Testing

@testable import Storage

/// Random changes of a map with indexes, snapshots of which are compared with what the indexes should have.
struct IndexRun: ~Copyable {
  static func definitions() throws -> [DocumentIndex] {
    [
      try DocumentIndex(["a"]),
      try DocumentIndex([.ascending("a"), .descending("b"), .ascending("c")]),
      try DocumentIndex([.descending("b.x"), .descending("a")]),
      try DocumentIndex(["a"], where: .field("b", .greater(2)), name: "partial"),
      try DocumentIndex(["_id"], name: "ids"), try DocumentIndex(["c", "_rev"]),
    ]
  }

  private let seed: UInt64
  private var map: EntryMap
  private var random: SeededGenerator
  private var snapshots: [(Snapshot, [EntryCopy])] = []
  private var now: UInt64 = 1

  init(seed: UInt64, limit: Int? = nil) throws {
    self.seed = seed
    map = EntryMap(limitBytes: limit)
    random = SeededGenerator(seed: seed)
    for definition in try Self.definitions() { _ = try map.ensureIndex(definition) }
  }

  mutating func step() throws {
    switch Int.random(in: 0..<1_000, using: &random) {
    case 0..<650: try put(key(), DocumentMaker.value(using: &random), kind: .single)
    case 650..<660: try put(key(), DocumentMaker.large(40_000, using: &random), kind: .single)
    case 660..<665: try put(key(), DocumentMaker.large(100_000, using: &random), kind: .single)
    case 665..<668: try put(key(), DocumentMaker.manyKeys(), kind: .single)
    case 668..<690: try put(key(), [0, 0, 0, 0], kind: .list)
    case 690..<900:
      let (key, revision) = (key(), map.revisions.last + 1)
      _ = unsafe try map.delete(key.span.bytes, revision: revision, now: now)
    case 900..<960: now += .random(in: 0...20, using: &random)
    case 960..<975: try takeSnapshot()
    case 975..<990: try endSnapshot()
    case 990..<993: try check()
    case 993..<995: if let definition = try Self.definitions().randomElement(using: &random) { try delete(definition) }
    default: if Int.random(in: 0..<30, using: &random) == 0 { _ = try map.deleteAll(now: now) }
    }
  }

  private mutating func key() -> [UInt8] { Array("key \(Int.random(in: 0..<150, using: &random))".utf8) }

  private mutating func put(_ key: [UInt8], _ value: [UInt8], kind: EntryKind) throws {
    let expiry = Int.random(in: 0..<6, using: &random) == 0 ? now + .random(in: 1...500, using: &random) : 0
    let revision = map.revisions.last + 1
    unsafe try map.put(key.span.bytes, value.span.bytes, kind: kind, expiry: expiry, revision: revision, now: now)
  }

  /// Deletes an index, and creates it again when the map is empty.
  private mutating func delete(_ definition: DocumentIndex) throws {
    if map.indexReports.contains(where: { $0.index == definition }) {
      try map.deleteIndex(named: definition.name)
    }
    guard map.order.count == 0 else { return }
    for definition in try Self.definitions() { _ = try map.ensureIndex(definition) }
  }

  private mutating func takeSnapshot() throws {
    guard snapshots.count < 5 else { return }
    let snapshot = map.snapshot(now: now)
    snapshots.append((snapshot, try map.copies(in: snapshot)))
  }

  private mutating func endSnapshot() throws {
    guard let index = snapshots.indices.randomElement(using: &random) else { return }
    let (snapshot, copies) = snapshots.remove(at: index)
    try map.validateIndexes(in: snapshot, copies)
    map.end(snapshot)
    if Bool.random(using: &random) { _ = map.reclaimBriefly() }
  }

  private mutating func check() throws {
    let snapshot = map.snapshot(now: now)
    try map.validateIndexes(in: snapshot, map.copies(in: snapshot))
    map.end(snapshot)
  }

  /// Checks everything, and that the memory of entries is freed.
  mutating func end() throws {
    try check()
    for (snapshot, copies) in snapshots {
      try map.validateIndexes(in: snapshot, copies)
      map.end(snapshot)
    }
    snapshots = []
    try check()
    map.validate()
    let last = map.snapshot(now: now)
    for copy in try map.copies(in: last) {
      let revision = map.revisions.last + 1
      _ = unsafe try map.delete(copy.key.span.bytes, revision: revision, now: 0)
    }
    map.end(last)
    while map.reclaimBriefly() {}
    #expect(map.indexes?.visibleBytes ?? 0 == 0 && map.indexes?.hasEndedViews != true)
    #expect(map.indexReports.allSatisfy { $0.entryCount == 0 && $0.documentCount == 0 })
    // An empty tree keeps its root.
    #expect(map.indexes?.limitedBytes ?? 0 <= map.indexReports.count * OrderNode.byteCount, "LARDER_SEED=\(seed)")
  }
}
