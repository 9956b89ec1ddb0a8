import TestSupport
import Testing

@testable import Storage

/// Random operations on a map with a memory limit, compared with a model. The model may have more entries than the map,
/// but no different ones.
struct LimitRun: ~Copyable {
  private let seed: UInt64
  private let limit: Int
  private(set) var map: EntryMap
  private var model = MapModel()
  private var snapshots: [(Snapshot, [EntryCopy])] = []
  private var random: SeededGenerator
  private var now: UInt64 = 1

  init(seed: UInt64, limit: Int) {
    self.seed = seed
    self.limit = limit
    map = EntryMap(limitBytes: limit)
    random = SeededGenerator(seed: seed)
  }

  mutating func step() throws {
    switch Int.random(in: 0..<1_000, using: &random) {
    case 0..<500: try put(count: 1)
    case 500..<520: try put(count: .random(in: 1...200, using: &random))
    case 520..<900: read()
    case 900..<960: try delete()
    case 960..<990: now += .random(in: 0...20, using: &random)
    case 990..<994: try takeSnapshot()
    case 994..<998: try endSnapshot()
    case 998: try check()
    default: if Int.random(in: 0..<20, using: &random) == 0 { try deleteAll() }
    }
    #expect(map.limitedBytes <= limit, "LARDER_SEED=\(seed)")
  }

  mutating func end() {
    while !snapshots.isEmpty { map.end(snapshots.removeLast().0) }
    map.validateLimited()
    #expect(map.snapshots.retainedBytes == 0, "LARDER_SEED=\(seed)")
  }

  private mutating func key() -> [UInt8] {
    // Some keys are frequent.
    let keyCount = [30, 500, 20_000].randomElement(using: &random)!
    return "key \(Int.random(in: 0..<keyCount, using: &random))".bytes
  }

  private mutating func put(count: Int) throws {
    let revision = map.revisions.last + 1
    var written: [[UInt8]: UInt64] = [:]
    if count > 1 { try map.reserve(records: count, bytes: count * 1_000) }
    for _ in 0..<count {
      let sizes = count > 1 ? [100, 900] : [10, 100, 100, 100, 1_000, 10_000, 33_000, 200_000]
      let value = [UInt8](repeating: .random(in: 0...255, using: &random), count: sizes.randomElement(using: &random)!)
      let expiry = Int.random(in: 0..<4, using: &random) == 0 ? now + .random(in: 1...500, using: &random) : 0
      let key = key()
      unsafe try map.put(key.span.bytes, value.span.bytes, expiry: expiry, revision: revision, now: now)
      model.entries[key] = .init(kind: .single, revision: revision, expiry: expiry, value: value)
      written[key] = revision
    }
    for (key, revision) in written {
      #expect(map.copy(of: key, now: now)?.entry.revision == revision, "LARDER_SEED=\(seed)")
    }
  }

  private mutating func read() {
    let key = key()
    guard let found = map.copy(of: key, now: now) else { return }
    #expect(found.entry == model.entries[key], "LARDER_SEED=\(seed)")
  }

  private mutating func delete() throws {
    let key = key()
    _ = unsafe try map.delete(key.span.bytes, revision: map.revisions.last + 1, now: now)
    model.entries[key] = nil
  }

  private mutating func deleteAll() throws {
    _ = try map.deleteAll(now: now)
    model.entries = [:]
  }

  private mutating func takeSnapshot() throws {
    guard snapshots.count < 3 else { return }
    let snapshot = map.snapshot(now: now)
    snapshots.append((snapshot, try map.copies(0..<snapshot.count)))
  }

  private mutating func endSnapshot() throws {
    guard let index = snapshots.indices.randomElement(using: &random) else { return }
    let (snapshot, copies) = snapshots.remove(at: index)
    #expect(try map.copies(0..<snapshot.count, in: snapshot) == copies, "LARDER_SEED=\(seed)")
    map.end(snapshot)
  }

  /// Checks that every entry in the map matches the model, and that the count is right.
  private mutating func check() throws {
    map.validateLimited()
    let count = map.count(now: now)
    let all = try map.copies(map.ranks(now: now), now: now)
    #expect(all.count == count, "LARDER_SEED=\(seed)")
    for copy in all { #expect(copy.entry == model.entries[copy.key], "LARDER_SEED=\(seed)") }
    let statistics = map.statistics
    #expect(statistics.contents.keyBytes == all.reduce(0) { $0 + $1.key.count }, "LARDER_SEED=\(seed)")
    #expect(statistics.contents.valueBytes == all.reduce(0) { $0 + $1.entry.value.count }, "LARDER_SEED=\(seed)")
  }
}

extension EntryMap {
  /// Checks the number of bytes that count toward the limit against their sum.
  func validateLimited() {
    validate()
    var bytes = hashIndex.memoryBytes + order.reachableNodeCount * OrderNode.byteCount + expiryQueue.usedBytes
    _ = order.visit(0..<order.count, reverse: false, root: order.root, in: arena.records) { handle in
      bytes += record(handle).memoryBytes
      return true
    }
    precondition(bytes == limitedBytes, "the bytes that count toward the limit are miscounted")
  }
}
