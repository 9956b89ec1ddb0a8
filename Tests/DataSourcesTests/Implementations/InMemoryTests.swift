import TestSupport
import Testing

@testable import DataSources

@Suite struct InMemoryTests {
  @Test func `expired entries are removed when their time has come`() async throws {
    let clock = ManualClock()
    let source = InMemoryDataSource<Int>(clock: clock)
    try await source.put(1, forId: "a", expiresIn: .seconds(10))
    try await source.put(2, forId: "b", expiresIn: .seconds(20))
    try await source.put(3, forId: "a", expiresIn: .seconds(30))
    clock.advance(by: .seconds(10))
    #expect(try await source.get("a") == 3)
    #expect(try await source.entry(forId: "b")?.expiresIn == .seconds(10))
    clock.advance(by: .seconds(10))
    #expect(await failure { try await source.get("b") } == .notFound)
    #expect(try await source.entries(of: ["a", "b"]).map { $0?.single } == [3, nil])
    #expect(source.state.withLock { $0.slots.count } == 2)
    try await source.put(4, forId: "c")
    #expect(source.state.withLock { $0.slots.count } == 2)
    try await source.put(5, forId: "a")
    clock.advance(by: .seconds(100))
    #expect(try await source.getAll(AllObjectsQuery()) == [5, 4])
  }

  @Test func `entries that are written again leave no expiries behind`() {
    var entries = InMemoryEntries<Int>()
    for round in 0..<10_000 {
      entries.beginWrite { .zero }
      entries.put(.single(round), EntryKey("a"), expiresIn: .seconds(3_600)) { .zero }
    }
    #expect(entries.expiries.count < 200)
  }

  @Test func `a watch whose consumer is too slow ends with an error, and other watches go on`() async throws {
    let source = InMemoryDataSource<Int>()
    let slow = try await source.changes()
    let other = try await source.changes(prefix: "z")
    for round in 0..<70 { try await source.putAll(Array(repeating: round, count: 1_000), forId: Array(0..<1_000)) }
    try await source.put(1, forId: "z")
    var count = 0
    let error = await #expect(throws: DataSourceError.self) {
      for try await _ in slow { count += 1 }
    }
    #expect(error?.kind == .changesLost)
    #expect(count == 65_536)
    var iterator = other.makeAsyncIterator()
    #expect(try await iterator.next() == .put(KeyValueEntry(key: "z", value: .single(1), revision: 71)))
  }

  @Test func `a watch that is released ends`() async throws {
    let source = InMemoryDataSource<Int>()
    do {
      _ = try await source.changes()
    }
    #expect(source.state.withLock { $0.watches.count } == 0)
  }

  @Test func `prefixes and cursors agree with a plain search`() async throws {
    var random = SeededGenerator.announced()
    let letters = ["a", "b", "é", "\u{10FFFF}", "\u{0}", "e\u{301}"]
    func word(_ maxLength: Int) -> String {
      (0..<Int.random(in: 0...maxLength, using: &random)).map { _ in letters.randomElement(using: &random)! }.joined()
    }
    let source = InMemoryDataSource<Int>()
    var keys: Set<EntryKey> = []
    for _ in 0..<300 {
      let key = word(4)
      guard !key.isEmpty else { continue }
      keys.insert(EntryKey(key))
      try await source.put(0, forId: key)
    }
    let sorted = keys.sorted()
    for _ in 0..<500 {
      let (prefix, cursor, limit) = (
        word(3), Bool.random(using: &random) ? word(4) : nil, Int.random(in: 0...9, using: &random)
      )
      let found = try await source.entries(in: .after(cursor, limit: limit, prefix: prefix)).map { EntryKey($0.key) }
      let expected = sorted.filter { key in
        key.hasPrefix(prefix) && cursor.map { EntryKey($0) < key } != false
      }.prefix(limit)
      #expect(found == Array(expected))
    }
  }

  /// A clock that stands still until it is told to advance.
  private struct ManualClock: Clock {
    struct Instant: InstantProtocol {
      let time: Duration
      func advanced(by duration: Duration) -> Instant { Instant(time: time + duration) }
      func duration(to other: Instant) -> Duration { other.time - time }
      static func < (a: Instant, b: Instant) -> Bool { a.time < b.time }
    }

    private let time = LockedValue(Duration.zero)
    var now: Instant { Instant(time: time.withLock { $0 }) }
    var minimumResolution: Duration { .nanoseconds(1) }

    func advance(by duration: Duration) { time.withLock { $0 += duration } }
    func sleep(until deadline: Instant, tolerance: Duration?) async throws {}
  }
}
