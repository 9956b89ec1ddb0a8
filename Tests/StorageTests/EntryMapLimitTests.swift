import TestSupport
import Testing

@testable import Storage

@Suite struct EntryMapLimitTests {
  private static let limit = 1 << 20

  private func value(_ byteCount: Int) -> [UInt8] { .init(repeating: UInt8(byteCount & 255), count: byteCount) }

  @Test func `the limit holds and entries stay correct under random reads and writes`() throws {
    for seed in SeededGenerator.seeds(3) {
      var run = LimitRun(seed: seed, limit: Self.limit)
      for _ in 0..<(SeededGenerator.isThorough ? 40_000 : 8_000) { try run.step() }
      run.end()
      #expect(run.map.counts.evicted > 1_000, "LARDER_SEED=\(seed)")
    }
  }

  @Test func `entries that are read between writes stay, and entries that are written once are evicted`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    for number in 0..<500 { try map.write("kept \(number)".bytes, value(100)) }
    var lost = 0
    for number in 0..<100_000 {
      try map.write("scan \(number)".bytes, value(100))
      if map.copy(of: "kept \(number % 500)".bytes) == nil { lost += 1 }
    }
    #expect(lost == 0)
    let (evicted, left) = (map.counts.evicted, UInt64(map.count(now: 0)))
    #expect(evicted + left == 100_500)
    map.validate()
  }

  @Test func `overwriting an entry counts as use, and paging doesn't`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    for number in 0..<500 { try map.write("written \(number)".bytes, value(100)) }
    for number in 0..<500 { try map.write("paged \(number)".bytes, value(100)) }
    for number in 0..<20_000 {
      try map.write("scan \(number)".bytes, value(100))
      try map.write("written \(number % 500)".bytes, value(number % 3 == 0 ? 100 : 90))
      if number % 100 == 0 { _ = try map.copies(map.ranks(prefix: "paged".bytes)) }
    }
    let (written, paged) = (map.ranks(prefix: "written".bytes).count, map.ranks(prefix: "paged".bytes).count)
    #expect(written == 500)
    #expect(paged == 0)
  }

  @Test func `a map whose entries have all been read still accepts writes`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    var number = 0
    while map.counts.evicted == 0 {
      try map.write("\(number)".bytes, value(100))
      _ = map.copy(of: "\(number)".bytes)
      number += 1
    }
    for number in 0..<number { _ = map.copy(of: "\(number)".bytes) }
    try map.write("new".bytes, value(1_000))
    #expect(map.copy(of: "new".bytes) != nil)
    #expect(map.limitedBytes <= Self.limit)
  }

  @Test func `large entries that have all been read are evicted, wherever the clock hand is`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    for number in 0..<200 {
      for key in ["a", "b", "c", "d", "e"] { _ = map.copy(of: key.bytes) }
      try map.write(["a", "b", "c", "d", "e"][number % 5].bytes, value(200_000 + number * 100))
      let bytes = map.limitedBytes
      #expect(bytes <= Self.limit)
    }
  }

  @Test func `a write of many keys evicts only other entries`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    for number in 0..<10_000 { try map.write("\(number)".bytes, value(100), expiry: number % 2 == 0 ? 0 : 1_000) }
    for size in [0, 10, 100, 5_000, 40_000] {
      // As many as the map accepts.
      var count = 1
      while (try? map.checkLimit(records: count + 1, bytes: (count + 1) * (size + 10))) != nil { count += 1 }
      try map.reserve(records: count, bytes: count * (size + 10))
      let revision = map.revisions.last + 1
      for number in 0..<count {
        let (key, value) = ("\(size)/\(number)".bytes, value(size))
        unsafe try map.put(key.span.bytes, value.span.bytes, expiry: 900, revision: revision)
      }
      let (present, bytes) = (map.ranks(prefix: "\(size)/".bytes).count, map.limitedBytes)
      #expect(present == count)
      #expect(bytes <= Self.limit)
    }
    map.validate()
  }

  @Test func `a write that can never fit is refused and changes nothing`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    for number in 0..<10_000 { try map.write("\(number)".bytes, value(100)) }
    let before = map.statistics
    #expect(throws: StorageError.overLimit(Self.limit)) { try map.write("7".bytes, value(Self.limit)) }
    #expect(throws: StorageError.overLimit(Self.limit)) { try map.reserve(records: 1_000, bytes: Self.limit) }
    #expect(map.statistics == before)
    #expect(StorageError.overLimit(Self.limit).description.contains("1MiB"))
    try map.write("large".bytes, value(Self.limit - EntryMap.fixedBytes - 1_000))
    let (count, bytes) = (map.count(now: 0), map.limitedBytes)
    #expect(count > 1)
    #expect(bytes <= Self.limit)
  }

  @Test func `expired entries are removed before others are evicted`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    for number in 0..<2_000 { try map.write("lasting \(number)".bytes, value(100)) }
    var number = 0
    while map.limitedBytes < Self.limit - 1_000 {
      try map.write("brief \(number)".bytes, value(100), expiry: 100)
      number += 1
    }
    for later in 0..<number / 2 {
      let (key, value) = ("late \(later)".bytes, value(100))
      unsafe try map.put(key.span.bytes, value.span.bytes, revision: map.revisions.last + 1, now: 100)
    }
    let (evicted, expired) = (map.counts.evicted, map.counts.expired)
    #expect(evicted == 0)
    #expect(expired > 0)
  }

  @Test func `a snapshot stays as it is, and entries only it sees don't count toward the limit`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    for number in 0..<5_000 { try map.write("old \(number)".bytes, value(100)) }
    let snapshot = map.snapshot(now: 0)
    let before = try map.copies(0..<snapshot.count)
    for number in 0..<20_000 { try map.write("new \(number)".bytes, value(number % 200)) }
    let (old, new) = (map.ranks(prefix: "old".bytes).count, map.ranks(prefix: "new".bytes).count)
    #expect(old == 0)
    #expect(new > 4_000)
    let after = try map.copies(0..<snapshot.count, in: snapshot)
    #expect(after == before)
    map.validateLimited()
    map.end(snapshot)
    map.validateLimited()
    while map.reclaimBriefly() {}
    map.validateLimited()
    let retained = map.snapshots.retainedBytes
    #expect(retained == 0)
  }

  @Test func `watchers see evictions and can maintain a mirror`() throws {
    var map = EntryMap(limitBytes: Self.limit)
    _ = map.beginWatch(limit: 64 << 20, notifiesImmediately: true)
    var random = SeededGenerator.announced()
    for _ in 0..<20_000 {
      try map.write("\(Int.random(in: 0..<20_000, using: &random))".bytes, value(.random(in: 0...300, using: &random)))
    }
    var mirror: [[UInt8]: UInt64] = [:]
    map.feed?.visit(from: 0) { change in
      let key = unsafe Array(change.key)
      mirror[key] = change.kind == .delete ? nil : change.revision
      return true
    }
    let entries = try map.copies(map.ranks())
    #expect(mirror == Dictionary(uniqueKeysWithValues: entries.map { ($0.key, $0.entry.revision) }))
    #expect(map.counts.evicted > 1_000)
  }

  @Test func `a map without a limit evicts nothing`() throws {
    var map = EntryMap()
    for number in 0..<20_000 { try map.write("\(number)".bytes, value(100)) }
    let (count, limit) = (map.count(now: 0), map.statistics.limitBytes)
    #expect(count == 20_000)
    #expect(limit == nil)
  }
}
