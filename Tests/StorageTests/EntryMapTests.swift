import TestSupport
import Testing

@testable import Storage

@Suite struct EntryMapTests {
  @Test func `an overwrite of the same size needs no memory`() throws {
    var map = EntryMap()
    for number in 0..<1_000 { try map.write("key \(number)".bytes, .init(repeating: 1, count: 100)) }
    let (before, handle) = unsafe (map.statistics, map.handle(of: "key 7".bytes.span.bytes, now: 0))
    for number in 0..<1_000 { try map.write("key \(number)".bytes, .init(repeating: 2, count: 99)) }
    let (after, sameHandle) = unsafe (map.statistics, map.handle(of: "key 7".bytes.span.bytes, now: 0))
    #expect(after.memoryBytes == before.memoryBytes)
    #expect(after.contents.valueBytes == before.contents.valueBytes - 1_000)
    #expect(handle == sameHandle)
  }

  @Test func `an entry with 16 bytes of key and 100 of value has less than 24 bytes of overhead`() throws {
    var map = EntryMap()
    var random = SeededGenerator.announced()
    for _ in 0..<60_000 {
      let key = (0..<16).map { _ in UInt8.random(in: 0...255, using: &random) }
      try map.write(key, .init(repeating: 1, count: 100))
    }
    let statistics = map.statistics
    let overhead =
      Double(statistics.memoryBytes - statistics.contents.keyBytes - statistics.contents.valueBytes) / 60_000
    #expect(overhead < 24)
  }

  @Test func `an empty map takes a few KiB`() throws {
    var map = EntryMap()
    try map.write([1], [2])
    let memory = map.statistics.memoryBytes
    #expect(memory < 8_192)
  }

  @Test(arguments: [0, 1, 32_767, 32_768, 16 << 20])
  func `values of every size are returned as written`(length: Int) throws {
    var map = EntryMap()
    let value = [UInt8](repeating: 0xA5, count: length)
    try map.write("key".bytes, value)
    try map.write("key".bytes, value.reversed())
    let entry = map.copy(of: "key".bytes)?.entry
    #expect(entry?.value == value)
    #expect(entry?.revision == 2)
  }

  @Test func `keys of 4,096 bytes that differ in the last byte are distinct and in order`() throws {
    var map = EntryMap()
    let stem = [UInt8](repeating: 0x61, count: 4_095)
    for byte in (0...255 as ClosedRange<UInt8>).reversed() { try map.write(stem + [byte], [byte]) }
    let values = try map.copies(map.ranks(prefix: stem)).map(\.entry.value)
    #expect(values == (0...255).map { [$0] })
    let after = map.ranks(prefix: stem, after: stem + [9], reverse: true)
    #expect(after == 0..<9)
  }

  @Test func `an expired entry is absent both before and after it is removed`() throws {
    var map = EntryMap()
    try map.write("brief".bytes, [1], expiry: 100)
    try map.write("lasting".bytes, [2])
    let next = map.nextExpiry
    #expect(next == 100)
    let (early, late) = (map.copy(of: "brief".bytes, now: 99), map.copy(of: "brief".bytes, now: 100))
    #expect(early != nil)
    #expect(late == nil)
    let absent = unsafe map.satisfies(.init(ifAbsent: true), "brief".bytes.span.bytes, now: 100)
    #expect(absent)
    let deleted = unsafe try map.delete("brief".bytes.span.bytes, revision: map.revisions.last + 1, now: 100)
    #expect(!deleted)
    let (count, remaining) = (map.count(now: 100), map.statistics.contents.expiring)
    #expect(count == 1)
    #expect(remaining == 0)
  }

  @Test func `changed expiries are honored, and the queue doesn't grow with them`() throws {
    var map = EntryMap()
    for round in 1...20_000 as ClosedRange<UInt64> {
      try map.write("a".bytes, [1], expiry: 50_000 - round)
      try map.write("b".bytes, [1], expiry: 50_000 + round)
      try map.write("c\(round % 10)".bytes, [1], expiry: round % 2 == 0 ? 0 : 90_000)
    }
    let queued = map.expiryQueue.count
    #expect(queued < 1_400)
    let first = map.expire(now: 30_000)
    #expect(first == 1)
    let second = map.expire(now: 69_999)
    #expect(second == 0)
    let third = map.expire(now: 70_000)
    #expect(third == 1)
  }

  @Test(arguments: SeededGenerator.seeds(4)) func `the queue of expiries is compacted bit by bit, and none is lost`(
    seed: UInt64
  ) throws {
    var map = EntryMap()
    var random = SeededGenerator(seed: seed)
    var expiries: [[UInt8]: UInt64] = [:]
    var now: UInt64 = 1
    for step in 0..<60_000 {
      let key = "\(Int.random(in: 0..<1_000, using: &random))".bytes
      if Int.random(in: 0..<3, using: &random) == 0 {
        _ = unsafe try map.delete(key.span.bytes, revision: map.revisions.last + 1, now: 0)
        expiries[key] = nil
      } else {
        let expiry = now + .random(in: 1...20_000, using: &random)
        try map.write(key, [1], expiry: expiry)
        expiries[key] = expiry
      }
      if step % 50 == 0 {
        now += .random(in: 0...100, using: &random)
        map.expire(now: now)
        expiries = expiries.filter { $0.value > now }
      }
      // Without compaction, there would be an item for each deletion and each earlier expiry.
      let items = map.expiryQueue.count
      #expect(items <= 4 * expiries.count + 2_048, "LARDER_SEED=\(seed)")
    }
    while let last = expiries.values.max() {
      now = min(last, now + 500)
      map.expire(now: now)
      expiries = expiries.filter { $0.value > now }
      let remaining = map.statistics.contents.expiring
      #expect(remaining == expiries.count, "LARDER_SEED=\(seed)")
    }
    // The last items may be of entries that were deleted.
    map.expire(now: now + 20_000)
    let (items, bytes) = (map.expiryQueue.count, map.expiryQueue.memoryBytes)
    #expect(items == 0 && bytes < 50_000)
  }

  @Test func `entries can be expired a few at a time`() throws {
    var map = EntryMap()
    for number in 0..<100 { try map.write("\(number)".bytes, [1], expiry: 10) }
    let some = map.expire(now: 10, limit: 30)
    #expect(some == 30)
    let count = map.count(now: 10)
    #expect(count == 0)
  }

  @Test func `snapshots of the same state are shared, and each keeps only what it sees`() throws {
    var map = EntryMap()
    for number in 0..<5_000 { try map.write("\(number)".bytes, .init(repeating: 1, count: 50)) }
    let used = map.arena.unitsInUse
    let (first, same) = (map.snapshot(now: 0), map.snapshot(now: 0))
    let shared = map.snapshotCount
    #expect(shared == 1)
    try map.write("7".bytes, [2])
    let second = map.snapshot(now: 0)
    for _ in 0..<100 { try map.write("9".bytes, .init(repeating: 3, count: .random(in: 0...400))) }
    map.end(same)
    let (old, newer) = try (map.copies(0..<5_000, in: first), map.copies(0..<5_000, in: second))
    #expect(old.allSatisfy { $0.entry.value.count == 50 })
    #expect(newer.count { $0.entry.value.count == 50 } == 4_999)
    map.end(second)
    map.end(first)
    try map.write("7".bytes, .init(repeating: 1, count: 50))
    try map.write("9".bytes, .init(repeating: 1, count: 50))
    let usedAgain = map.arena.unitsInUse
    #expect(usedAgain == used)
    map.validate()
    #expect(throws: StorageError.snapshotEnded) { _ = try map.copies(0..<1, in: first) }
  }

  @Test func `a snapshot is read by handles and from any key on`() throws {
    var map = EntryMap()
    for number in 0..<300 { try map.write("key \(100 + number)".bytes, [UInt8(truncatingIfNeeded: number)]) }
    let snapshot = map.snapshot(now: 0)
    for number in 0..<300 { try map.write("key \(100 + number)".bytes, [0, 0]) }
    try map.write("key 0".bytes, [1])
    var handles: [UInt32] = []
    let visited = try map.scanHandles(ranks: 10..<300, reverse: false, in: snapshot, now: 0) { handle, _ in
      handles.append(handle)
      return handles.count < 40
    }
    #expect(visited == 40)
    let values = handles.map { unsafe map.entry(at: $0).value?.first }
    #expect(values == (10..<50).map { UInt8($0) })
    let ranks = try ["", "key", "key 100", "key 100a", "key 399", "z"].map {
      unsafe try map.rank(after: $0.bytes.span.bytes, in: snapshot)
    }
    #expect(ranks == [0, 0, 1, 1, 300, 300])
    map.end(snapshot)
    #expect(throws: StorageError.snapshotEnded) { _ = unsafe try map.rank(after: "z".bytes.span.bytes, in: snapshot) }
  }

  @Test func `entries of an ended snapshot are freed in slices, and older snapshots keep theirs`() throws {
    var map = EntryMap()
    var random = SeededGenerator.announced()
    for number in 0..<4_000 { try map.write("\(number)".bytes, [0]) }
    let used = map.arena.unitsInUse
    var snapshots: [(snapshot: Snapshot, copies: [EntryCopy])] = []
    var ends = 0
    for round in 1...40 {
      for _ in 0..<Int.random(in: 0...3_000, using: &random) {
        try map.write("\(Int.random(in: 0..<4_000, using: &random))".bytes, [UInt8(round)])
      }
      if Bool.random(using: &random) {
        snapshots.append((map.snapshot(now: 0), try map.copies(0..<4_000)))
      } else if let index = snapshots.indices.randomElement(using: &random) {
        map.end(snapshots.remove(at: index).snapshot)
        if map.snapshots.hasEnded { ends += 1 }
      }
      if round % 7 == 0 { _ = map.reclaimBriefly() }
      for (snapshot, copies) in snapshots {
        let seen = try map.copies(0..<4_000, in: snapshot)
        #expect(seen == copies)
      }
    }
    #expect(ends > 0)
    for (snapshot, _) in snapshots { map.end(snapshot) }
    while map.reclaimBriefly() {}
    let (usedAgain, kept) = (map.arena.unitsInUse, map.memory.snapshots)
    #expect(usedAgain == used)
    #expect(kept == 0)
    map.validate()
  }

  @Test func `deleting everything frees all memory, under a snapshot after it ends`() throws {
    var map = EntryMap()
    for number in 0..<20_000 { try map.write("\(number)".bytes, .init(repeating: 1, count: 500)) }
    let snapshot = map.snapshot(now: 0)
    let removed = try map.deleteAll(now: 0)
    #expect(removed == 20_000)
    let kept = try map.copies(0..<20_000, in: snapshot).count
    #expect(kept == 20_000)
    try map.write("new".bytes, [1])
    map.end(snapshot)
    // Much is freed in slices.
    let freesMore = map.reclaimBriefly()
    #expect(freesMore)
    while map.reclaimBriefly() {}
    let (count, units) = (map.count(now: 0), map.arena.unitsInUse)
    #expect(count == 1)
    #expect(units == 2)
    map.validate()
    _ = try map.deleteAll(now: 0)
    let memory = map.statistics.memoryBytes
    #expect(memory < 8_192)
  }

  @Test func `memory of delete-all is freed in slices, and snapshots keep their entries`() throws {
    var map = EntryMap()
    var random = SeededGenerator.announced()
    var snapshots: [(snapshot: Snapshot, copies: [EntryCopy])] = []
    for round in 0..<60 {
      for _ in 0..<Int.random(in: 0...3_000, using: &random) {
        try map.write("\(Int.random(in: 0..<4_000, using: &random))".bytes, [UInt8(round)])
      }
      if Bool.random(using: &random) {
        let snapshot = map.snapshot(now: 0)
        snapshots.append((snapshot, try map.copies(0..<snapshot.count)))
      }
      if Int.random(in: 0..<3, using: &random) == 0, !snapshots.isEmpty {
        let before = map.arena.unitsInUse
        _ = try map.deleteAll(now: 0)
        let after = map.arena.unitsInUse
        #expect(before - after < 20_000)
      }
      if Bool.random(using: &random), let index = snapshots.indices.randomElement(using: &random) {
        map.end(snapshots.remove(at: index).snapshot)
      }
      for _ in 0..<Int.random(in: 0...2, using: &random) { _ = map.reclaimBriefly() }
      for (snapshot, copies) in snapshots {
        let seen = try map.copies(0..<snapshot.count, in: snapshot)
        #expect(seen == copies)
      }
    }
    for (snapshot, _) in snapshots { map.end(snapshot) }
    while map.reclaimBriefly() {}
    let kept = map.memory.snapshots
    #expect(kept == 0)
    map.validate()
    try map.write("last".bytes, [1])
    _ = try map.deleteAll(now: 0)
    let memory = map.statistics.memoryBytes
    #expect(memory < 8_192)
  }

  @Test func `a write of many keys with reserved memory succeeds`() throws {
    var map = EntryMap()
    for number in 0..<300 { try map.write("\(number)".bytes, .init(repeating: 1, count: 900)) }
    let snapshot = map.snapshot(now: 0)
    try map.reserve(records: 2_000, bytes: 2_000 * 20_005)
    let revision = map.revisions.last + 1
    let value = [UInt8](repeating: 7, count: 20_000)
    for number in 0..<2_000 {
      let key = "k\(number)".bytes
      unsafe try map.put(key.span.bytes, value.span.bytes, revision: revision)
    }
    let count = map.count(now: 0)
    #expect(count == 2_300)
    map.end(snapshot)
    map.validate()
  }

  @Test func `prefetching changes nothing`() throws {
    var map = EntryMap()
    let key = "key".bytes
    unsafe map.prefetchRecord(map.prefetchIndex(key.span.bytes))
    try map.write(key, [1])
    unsafe map.prefetchRecord(map.prefetchIndex(key.span.bytes))
    let value = map.copy(of: key)?.entry.value
    #expect(value == [1])
  }
}
