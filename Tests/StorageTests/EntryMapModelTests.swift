import Testing

@testable import Storage

@Suite("An entry map against a dictionary")
struct EntryMapModelTests {
  @Test func `random work leaves the map and a dictionary alike, snapshots included`() throws {
    var run = ModelRun(random: .announced())
    for step in 0..<3_000 { try run.step(step) }
    try run.finish()
  }

  @Test func `random work on few keys, so that most of it overwrites`() throws {
    var run = ModelRun(random: .announced(), keyCount: 40)
    for step in 0..<3_000 { try run.step(step) }
    try run.finish()
  }
}

/// One run of random operations on both.
private struct ModelRun: ~Copyable {
  struct Frozen {
    var snapshot: Snapshot
    var entries: [EntryCopy]
    var handles: [(handle: UInt32, copy: EntryCopy)]
  }

  var random: SeededGenerator
  var map = EntryMap()
  var model = MapModel()
  var frozen: [Frozen] = []
  var now: UInt64 = 1_000
  let keys: [[UInt8]]

  init(random: SeededGenerator, keyCount: Int = 1_500) {
    var random = random
    let long = [UInt8](repeating: 0x6C, count: 4_090)
    var keys: [[UInt8]] = ["/", "..", "a/b", "a", "a\0", "a\0b", "\0", "😀", "😀/é", "user:"].map(\.bytes)
    for number in 0..<max(0, keyCount - 10) {
      switch number % 4 {
      case 0: keys.append("user:\(number)".bytes)
      case 1: keys.append("session/\(number * 7_919 % 10_007)/x".bytes)
      case 2: keys.append(number % 20 == 2 ? long + "\(number)".bytes.suffix(6) : "k\(number)".bytes)
      default:
        let length = Int.random(in: 1...24, using: &random)
        keys.append((0..<length).map { _ in .random(in: 0...255, using: &random) })
      }
    }
    self.keys = keys
    self.random = random
  }

  mutating func step(_ number: Int) throws {
    let key = keys.randomElement(using: &random)!
    switch Int.random(in: 0..<1_000, using: &random) {
    case 0..<500: try put(key)
    case 500..<680: try delete(key)
    case 680..<830: get(key)
    case 830..<900: try page()
    case 900..<930: try takeSnapshot()
    case 930..<957: try endSnapshot()
    case 957..<997: now += UInt64.random(in: 0...200, using: &random)
    case 997: try deleteAll()
    default: #expect(map.count(now: now) == model.sortedKeys(at: now).count)
    }
    if number % 500 == 0 { try compareAll() }
  }

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
      WriteCondition(), WriteCondition(), WriteCondition(ifAbsent: true), WriteCondition(ifRevision: 0),
      WriteCondition(ifRevision: model.entries[key]?.revision ?? 7),
    ]
    let condition = conditions.randomElement(using: &random)!
    let old = model.entries[key].flatMap { $0.isLive(at: now) ? $0 : nil }
    let meets =
      (!condition.ifAbsent || old == nil) && (condition.ifRevision == nil || condition.ifRevision == old?.revision)
    let answer = unsafe map.meets(condition, key.span.bytes, now: now)
    #expect(answer == meets)
    guard meets else { return }
    let value = value()
    let expiry = Int.random(in: 0..<4, using: &random) == 0 ? now + UInt64.random(in: 1...2_000, using: &random) : 0
    let kind: EntryKind = Bool.random(using: &random) ? .single : .list
    let revision = map.revision + 1
    model.revision += 1
    #expect(revision == model.revision)
    unsafe try map.put(key.span.bytes, value.span.bytes, kind: kind, expiry: expiry, revision: revision)
    model.entries[key] = .init(kind: kind, revision: revision, expiry: expiry, value: value)
  }

  private mutating func delete(_ key: [UInt8]) throws {
    let isThere = model.entries[key]?.isLive(at: now) ?? false
    let deleted = unsafe try map.delete(key.span.bytes, revision: map.revision + 1, now: now)
    #expect(deleted == isThere)
    guard isThere else { return }
    model.entries[key] = nil
    model.revision += 1
  }

  private func get(_ key: [UInt8]) {
    let expected = model.entries[key].flatMap { $0.isLive(at: now) ? EntryCopy(key: key, entry: $0) : nil }
    let copy = map.copy(of: key, now: now)
    #expect(copy == expected)
  }

  private mutating func deleteAll() throws {
    let expected = map.count(now: now)
    let removed = try map.deleteAll(now: now)
    #expect(removed == expected)
    model.entries = [:]
    if removed > 0 { model.revision += 1 }
  }

  private mutating func page() throws {
    let key = keys.randomElement(using: &random)!
    let prefix = Bool.random(using: &random) ? [] : Array(key.prefix(Int.random(in: 0...6, using: &random)))
    let after = Bool.random(using: &random) ? nil : keys.randomElement(using: &random)!
    let reverse = Bool.random(using: &random)
    let expected = model.page(prefix: prefix, after: after, reverse: reverse, at: now)
    var ranks = map.ranks(prefix: prefix, after: after, reverse: reverse, now: now)
    #expect(ranks.count == expected.count)
    let offset = Int.random(in: 0...ranks.count, using: &random)
    let limit = Int.random(in: 0...50, using: &random)
    ranks = reverse ? ranks.dropLast(offset).suffix(limit) : ranks.dropFirst(offset).prefix(limit)
    let page = try map.copies(ranks, reverse: reverse, now: now)
    #expect(page.map(\.key) == Array(expected.dropFirst(offset).prefix(limit)))
    let prefixCount = unsafe map.count(prefix: prefix.span.bytes, now: now)
    #expect(prefixCount == model.page(prefix: prefix, after: nil, reverse: false, at: now).count)
  }

  private func sortedCopies() -> [EntryCopy] {
    model.sortedKeys(at: now).map { EntryCopy(key: $0, entry: model.entries[$0]!) }
  }

  private mutating func takeSnapshot() throws {
    guard frozen.count < 6 else { return }
    let snapshot = map.snapshot(now: now)
    var handles: [(UInt32, EntryCopy)] = []
    for key in (0..<10).map({ _ in keys.randomElement(using: &random)! }) {
      guard let handle = unsafe map.handle(of: key.span.bytes, now: now) else { continue }
      handles.append((handle, EntryCopy(key: key, entry: model.entries[key]!)))
    }
    let entries = sortedCopies()
    #expect(snapshot.count == entries.count)
    frozen.append(Frozen(snapshot: snapshot, entries: entries, handles: handles))
  }

  private mutating func endSnapshot() throws {
    guard !frozen.isEmpty else { return }
    let index = Int.random(in: 0..<frozen.count, using: &random)
    try compare(frozen[index])
    map.end(frozen.remove(at: index).snapshot)
  }

  private func compare(_ frozen: Frozen) throws {
    // A time before any expiry shows what the snapshot was taken of.
    let copies = try map.copies(0..<frozen.snapshot.count, in: frozen.snapshot)
    #expect(copies == frozen.entries)
    for (handle, copy) in frozen.handles {
      let found = EntryCopy(map.entry(at: handle))
      #expect(found == copy)
    }
  }

  private mutating func compareAll() throws {
    for frozen in frozen { try compare(frozen) }
    let expected = sortedCopies()
    let forward = try map.copies(map.ranks(now: now), now: now)
    #expect(forward == expected)
    let backward = try map.copies(0..<expected.count, reverse: true, now: now)
    #expect(backward == expected.reversed())
    map.validate()
    let statistics = map.statistics
    #expect(statistics.entries == expected.count)
    #expect(statistics.revision == model.revision)
    #expect(statistics.keyBytes == expected.reduce(0) { $0 + $1.key.count })
    #expect(statistics.valueBytes == expected.reduce(0) { $0 + $1.entry.value.count })
    #expect(statistics.expiring == expected.count { $0.entry.expiry != 0 })
  }

  /// Takes everything out again, one by one, and looks for what was left behind.
  mutating func finish() throws {
    try compareAll()
    while !frozen.isEmpty { try endSnapshot() }
    for key in model.sortedKeys(at: now).shuffled(using: &random) { try delete(key) }
    try compareAll()
    let (units, nodes, external) = (map.arena.unitsInUse, map.order.pool.nodesInUse, map.externals.memoryBytes)
    #expect(units == 0)
    #expect(nodes <= 1)
    #expect(external == 0)
  }
}
