import Platform
import TestSupport
import Testing

@testable import Storage

/// A run of random operations on a store and on a dictionary.
struct ConformanceRun: ~Copyable {
  private struct Frozen {
    var snapshot: Snapshot
    var entries: [EntryCopy]
    var handles: [(handle: UInt32, copy: EntryCopy)]
  }

  private var random: SeededGenerator
  private let subject: StoreUnderTest
  private var model = MapModel()
  private var frozen: [Frozen] = []
  /// The time, ahead of the real clock and on a tick. Expiries are between ticks, because the two clocks differ by a
  /// little.
  private var now: UInt64
  private let keys: [[UInt8]]

  private static let tick: UInt64 = 1_000

  init(_ engine: EngineKind, seed: UInt64, keyCount: Int) throws {
    var random = SeededGenerator(seed: seed)
    let long = [UInt8](repeating: 0x6C, count: 4_090)
    // All keys are UTF-8, as clients' keys are.
    var keys = DirectoryRun.hostileKeys
    for number in 0..<max(0, keyCount - keys.count) {
      switch number % 4 {
      case 0: keys.append("user:\(number)".bytes)
      case 1: keys.append("session/\(number * 7_919 % 10_007)/x".bytes)
      case 2: keys.append(number % 20 == 2 ? long + "\(number)".bytes.suffix(6) : "k\(number)".bytes)
      default:
        let length = Int.random(in: 1...24, using: &random)
        keys.append((0..<length).map { _ in .random(in: 0...127, using: &random) })
      }
    }
    self.keys = keys
    now = monotonicMilliseconds() + 3_600_000
    subject = try StoreUnderTest(
      engine, durability: seed % 3 == 0 ? .none : .always, seed: seed, at: Self.clockReading(now))
    self.random = random
  }

  private static func clockReading(_ now: UInt64) -> ClockReading {
    ClockReading(wall: ClockReading.now.wall(ofMonotonic: now), monotonic: now)
  }

  private var store: Store { subject.store }

  mutating func step(_ number: Int) throws {
    let key = keys.randomElement(using: &random)!
    switch Int.random(in: 0..<1_000, using: &random) {
    case 0..<500: try put(key)
    case 500..<680: try delete(key)
    case 680..<830: get(key)
    case 830..<900: try page()
    case 900..<930: takeSnapshot()
    case 930..<957: try endSnapshot()
    case 957..<990: now += Self.tick * .random(in: 0...5, using: &random)
    case 990..<993: try reopen(afterCrash: false)
    case 993..<997: try reopen(afterCrash: true)
    case 997: try deleteAll()
    default:
      let count = store.access { $0.count(now: now) }
      #expect(count == model.sortedKeys(at: now).count)
    }
    if number % 500 == 0 { try compareAll() }
  }

  // MARK: Writing

  private mutating func value() -> [UInt8] {
    let length =
      switch Int.random(in: 0..<100, using: &random) {
      case 0: Int.random(in: 32_768...100_000, using: &random)
      case 1: 32_767
      case 2..<10: Int.random(in: 0...3, using: &random)
      case 10..<20: Int.random(in: 1_000...5_000, using: &random)
      default: Int.random(in: 80...120, using: &random)
      }
    return [UInt8](repeating: .random(in: 0...255, using: &random), count: length)
  }

  private mutating func put(_ key: [UInt8]) throws {
    let conditions = [
      EntryCondition(), EntryCondition(), EntryCondition(ifAbsent: true), EntryCondition(ifRevision: 0),
      EntryCondition(ifRevision: model.entries[key]?.revision ?? 7),
    ]
    let condition = conditions.randomElement(using: &random)!
    let old = model.entries[key].flatMap { $0.isLive(at: now) ? $0 : nil }
    let satisfies =
      (!condition.ifAbsent || old == nil) && (condition.ifRevision == nil || condition.ifRevision == old?.revision)
    let result = store.access { unsafe $0.satisfies(condition, key.span.bytes, now: now) }
    #expect(result == satisfies)
    guard satisfies else { return }
    let kind: EntryKind = Bool.random(using: &random) ? .single : .list
    let value = kind == .list ? value().asOnlyElement : value()
    let expires = Int.random(in: 0..<4, using: &random) == 0
    let expiry = expires ? now + Self.tick * .random(in: 0...50, using: &random) + Self.tick / 2 : 0
    model.revision += 1
    let revision = try subject.write { (map) throws(StorageError) in
      let revision = map.revisions.last + 1
      unsafe try map.put(key.span.bytes, value.span.bytes, kind: kind, expiry: expiry, revision: revision)
      return revision
    }
    #expect(revision == model.revision)
    model.entries[key] = .init(kind: kind, revision: revision, expiry: expiry, value: value)
  }

  private mutating func delete(_ key: [UInt8]) throws {
    let isThere = model.entries[key]?.isLive(at: now) ?? false
    let deleted = try subject.write { (map) throws(StorageError) in
      unsafe try map.delete(key.span.bytes, revision: map.revisions.last + 1, now: now)
    }
    #expect(deleted == isThere)
    guard isThere else { return }
    model.entries[key] = nil
    model.revision += 1
  }

  private mutating func deleteAll() throws {
    let expected = model.sortedKeys(at: now).count
    let removed = try subject.write { (map) throws(StorageError) in try map.deleteAll(now: now) }
    #expect(removed == expected)
    model.entries = [:]
    if removed > 0 { model.revision += 1 }
  }

  // MARK: Reading

  private func get(_ key: [UInt8]) {
    let expected = model.entries[key].flatMap { $0.isLive(at: now) ? EntryCopy(key: key, entry: $0) : nil }
    let copy = store.access { $0.copy(of: key, now: now) }
    #expect(copy == expected)
  }

  private mutating func page() throws {
    let key = keys.randomElement(using: &random)!
    let prefix = Bool.random(using: &random) ? [] : Array(key.prefix(Int.random(in: 0...6, using: &random)))
    let after = Bool.random(using: &random) ? nil : keys.randomElement(using: &random)!
    let reverse = Bool.random(using: &random)
    let expected = model.page(prefix: prefix, after: after, reverse: reverse, at: now)
    var ranks = store.access { $0.ranks(prefix: prefix, after: after, reverse: reverse, now: now) }
    #expect(ranks.count == expected.count)
    let offset = Int.random(in: 0...ranks.count, using: &random)
    let limit = Int.random(in: 0...50, using: &random)
    ranks = reverse ? ranks.dropLast(offset).suffix(limit) : ranks.dropFirst(offset).prefix(limit)
    let page = try store.access { map in try map.copies(ranks, reverse: reverse, now: now) }
    #expect(page.map(\.key) == Array(expected.dropFirst(offset).prefix(limit)))
    let prefixCount = store.access { unsafe $0.count(prefix: prefix.span.bytes, now: now) }
    #expect(prefixCount == model.page(prefix: prefix, after: nil, reverse: false, at: now).count)
  }

  private mutating func takeSnapshot() {
    guard frozen.count < 6 else { return }
    let wanted = (0..<10).map { _ in keys.randomElement(using: &random)! }
    let (snapshot, found) = store.access { map in
      let snapshot = map.snapshot(now: now)
      return (snapshot, wanted.map { unsafe map.handle(of: $0.span.bytes, now: now) })
    }
    let handles = zip(wanted, found).compactMap { key, handle in
      handle.map { ($0, EntryCopy(key: key, entry: model.entries[key]!)) }
    }
    let entries = sortedCopies()
    #expect(snapshot.count == entries.count)
    frozen.append(Frozen(snapshot: snapshot, entries: entries, handles: handles))
  }

  private mutating func endSnapshot() throws {
    guard !frozen.isEmpty else { return }
    let ended = frozen.remove(at: Int.random(in: 0..<frozen.count, using: &random))
    try compare(ended)
    store.access { $0.end(ended.snapshot) }
  }

  // MARK: Restarts

  private mutating func reopen(afterCrash: Bool) throws {
    guard subject.engine.isDurable else { return }
    try compareAll()
    frozen = []
    if afterCrash {
      try subject.crash(at: Self.clockReading(now))
    } else {
      try subject.reopen(at: Self.clockReading(now))
    }
    try takeExpiries()
    try compareAll()
  }

  /// Accepts expiries that a restart has moved a little, with the wall clock.
  private mutating func takeExpiries() throws {
    let found = try store.access { map in try map.copies(map.ranks(now: now), now: now) }
    for copy in found {
      guard let known = model.entries[copy.key]?.expiry, known != 0, copy.entry.expiry != 0 else { continue }
      #expect(copy.entry.expiry > known - 100 && copy.entry.expiry < known + 100)
      model.entries[copy.key]!.expiry = copy.entry.expiry
    }
  }

  // MARK: Comparing

  private func sortedCopies() -> [EntryCopy] {
    model.sortedKeys(at: now).map { EntryCopy(key: $0, entry: model.entries[$0]!) }
  }

  private func compare(_ frozen: Frozen) throws {
    // Before any expiry, a snapshot shows every entry that existed when it was taken.
    let copies = try store.access { map in try map.copies(0..<frozen.snapshot.count, in: frozen.snapshot) }
    #expect(copies == frozen.entries)
    for (handle, copy) in frozen.handles {
      let found = store.access { EntryCopy($0.entry(at: handle)) }
      #expect(found == copy)
    }
  }

  private mutating func compareAll() throws {
    for frozen in frozen { try compare(frozen) }
    let expected = sortedCopies()
    let forward = try store.access { map in try map.copies(map.ranks(now: now), now: now) }
    #expect(forward == expected)
    let backward = try store.access { map in try map.copies(0..<expected.count, reverse: true, now: now) }
    #expect(backward == expected.reversed())
    store.access { $0.validate() }
    let statistics = store.access { $0.statistics }
    #expect(statistics.contents.entries == expected.count)
    #expect(statistics.contents.revision == model.revision)
    #expect(statistics.contents.keyBytes == expected.reduce(0) { $0 + $1.key.count })
    #expect(statistics.contents.valueBytes == expected.reduce(0) { $0 + $1.entry.value.count })
    #expect(statistics.contents.expiring == expected.count { $0.entry.expiry != 0 })
    #expect(subject.figures["read_only"] ?? 0 == 0)
  }

  /// Deletes everything, one by one, and checks that nothing is left behind.
  mutating func finish() throws {
    try reopen(afterCrash: false)
    try compareAll()
    while !frozen.isEmpty { try endSnapshot() }
    for key in model.sortedKeys(at: now).shuffled(using: &random) { try delete(key) }
    try compareAll()
    let (units, nodes, external) = store.access { map in
      (map.arena.unitsInUse, map.order.nodesInUse, map.externals.memoryBytes)
    }
    #expect(units == 0)
    #expect(nodes <= 1)
    #expect(external == 0)
    try reopen(afterCrash: true)
  }
}
