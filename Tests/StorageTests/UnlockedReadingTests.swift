import TestSupport
import Testing

@testable import Storage

/// What is read without the lock stays as it is.
struct UnlockedReadingTests {
  /// A map with entries whose values are all the same byte, and pointers to the values that a snapshot sees.
  private func map(
    _ map: inout EntryMap, _ count: Int = 500
  ) throws -> (snapshot: Snapshot, values: [UnsafeRawBufferPointer]) {
    for number in 0..<count { try map.write("key \(number)".bytes, [UInt8](repeating: 7, count: 600)) }
    let snapshot = map.snapshot(now: 0)
    try map.beginReading(snapshot)
    var values: [UnsafeRawBufferPointer] = unsafe []
    _ = try map.scan(ranks: 0..<snapshot.count, reverse: false, in: snapshot, now: 0) { entry in
      unsafe values.append(entry.value!)
      return true
    }
    return unsafe (snapshot, values)
  }

  private func areUnchanged(_ values: [UnsafeRawBufferPointer]) -> Bool {
    unsafe values.allSatisfy { unsafe $0.count == 600 && $0.allSatisfy { $0 == 7 } }
  }

  private func rewrite(_ map: inout EntryMap) throws {
    for number in 0..<500 { try map.write("key \(number)".bytes, [UInt8](repeating: 8, count: 600)) }
  }

  @Test func `after the snapshot has ended, until reading ends`() throws {
    var map = EntryMap()
    let (snapshot, values) = unsafe try self.map(&map)
    map.end(snapshot)
    try rewrite(&map)
    _ = try map.deleteAll(now: 0)
    while map.reclaimBriefly() {}
    try rewrite(&map)
    #expect(unsafe areUnchanged(values))
    let kept = map.memory.snapshots
    #expect(kept > 250_000)
    map.endReading(snapshot)
    while map.reclaimBriefly() {}
    let rest = (map.memory.snapshots, map.snapshotCount)
    #expect(rest == (0, 0))
    map.validate()
  }

  @Test func `after the map was dropped`() throws {
    var map = EntryMap()
    let (snapshot, values) = unsafe try self.map(&map, 5_000)
    map.drop()
    #expect(throws: StorageError.storeDropped) { try map.check(snapshot) }
    #expect(throws: StorageError.storeDropped) { try map.beginReading(snapshot) }
    #expect(unsafe areUnchanged(values))
    let hadReaders = map.hasReaders
    // Handles mean nothing any more.
    map.endReading(snapshot, objects: [1, 77, 1 << 20, .max])
    let hasReaders = map.hasReaders
    #expect(hadReaders && !hasReaders)
  }

  @Test func `although snapshots keep more than their budget`() throws {
    var map = EntryMap(budgets: StoreBudgets(snapshots: SnapshotBudget(limit: 1_000)))
    let (snapshot, values) = unsafe try self.map(&map)
    for _ in 0..<3 { try rewrite(&map) }
    #expect(throws: Never.self) { try map.check(snapshot) }
    #expect(unsafe areUnchanged(values))
    map.endReading(snapshot)
    try map.write("another key".bytes, [1])
    #expect(throws: StorageError.snapshotEnded) { try map.check(snapshot) }
    map.end(snapshot)
    map.validate()
  }

  @Test func `that a value is a document is remembered until it is replaced`() throws {
    var map = EntryMap(limitBytes: 1 << 20)
    for round in 0..<3 {
      try map.write("key".bytes, Array("{}".utf8))
      let revision = map.revisions.last
      let key = "key".bytes
      let handle = unsafe map.handle(of: key.span.bytes, now: 0)!
      let isKnown = map.entry(at: handle).isKnownObject
      #expect(!isKnown, "\(round)")
      map.noteObject(at: handle)
      let entry = map.entry(at: handle)
      #expect(entry.isKnownObject && entry.revision == revision && entry.expiry == 0)
    }
    map.validate()
  }

  @Test func `a store is handed over when nobody reads it any more`() async throws {
    let store = Store(name: try StoreName("store"), engine: .memory)
    let snapshot = try store.access { map throws(StorageError) in
      let key = "key".bytes
      unsafe try map.put(key.span.bytes, key.span.bytes, revision: map.revisions.last + 1)
      let snapshot = map.snapshot(now: 0)
      try map.beginReading(snapshot)
      return snapshot
    }
    let end = Task {
      var other = EntryMap()
      store.endFollowing(into: &other)
      return other.contents.entries
    }
    while !store.mustEndReading { await Task.yield() }
    store.access { $0.endReading(snapshot) }
    #expect(await end.value == 1)
  }
}
