import TestSupport
import Testing

@testable import DataSources

/// Calls that overlap: no slow one may leave an older value in the cache.
@Suite struct CacheCoherenceTests {
  private let mainValues = ScriptedDataSource<Int>()
  private let cacheValues = ScriptedDataSource<Int>()
  private let main: PausedDataSource<Int>
  private let cache: PausedDataSource<Int>
  private let repository: CacheRepository<Int>

  init() {
    main = PausedDataSource(over: mainValues)
    cache = PausedDataSource(over: cacheValues)
    repository = CacheRepository(main: main, cache: cache)
  }

  @Test func `concurrent misses of one key make one call to main`() async throws {
    try await mainValues.put(1, forId: "a")
    main.pause(after: .get)
    let readers = (0..<20).map { _ in Task { try await repository.get("a") } }
    await main.waitForPaused(.get)
    while repository.sharedReadCount < readers.count { await Task.yield() }
    readers[0].cancel()
    await #expect(throws: CancellationError.self) { try await readers[0].value }
    main.resume(.get)
    for reader in readers.dropFirst() { #expect(try await reader.value == 1) }
    #expect(mainValues.calls == [.put, .get])
    #expect(try await cacheValues.get("a") == 1)
  }

  @Test func `concurrent misses share an error, and each has its own fallback`() async throws {
    let repository = CacheRepository(main: main, cache: cache, validity: Validation { $0 > 0 })
    try await cacheValues.put(-1, forId: "a")
    main.pause(before: .get)
    mainValues.fail(with: DataSourceError.failed)
    let reader = Task { try await repository.get("a") }
    await main.waitForPaused(.get)
    let other = Task { try await repository.get("a", operation: .cacheSync(fallback: true)) }
    await letOthersRun()
    main.resume(.get)
    #expect(await failure { try await reader.value } == .failed)
    #expect(try await other.value == -1)
    #expect(mainValues.calls == [.get])
  }

  @Test func `keys that look the same are different keys`() async throws {
    try await mainValues.putAll([1, 2], forId: ["\u{E9}", "e\u{301}"])
    main.pause(after: .get)
    let reader = Task { try await repository.get("\u{E9}") }
    await main.waitForPaused(.get)
    #expect(try await repository.get("e\u{301}") == 2)
    main.resume(.get)
    #expect(try await reader.value == 1)
  }

  @Test(arguments: [RepositoryOperation.cacheSync(), .mainSync])
  func `a slow read doesn't replace what was written since`(_ operation: RepositoryOperation) async throws {
    try await mainValues.put(1, forId: "a")
    main.pause(after: .get)
    let reader = Task { try await repository.get("a", operation: operation) }
    await main.waitForPaused(.get)
    try await repository.put(2, forId: "a")
    // A reader that comes after the write doesn't get what the slow one has read.
    try await cacheValues.delete("a")
    #expect(try await repository.get("a") == 2)
    main.resume(.get)
    #expect(try await reader.value == 1)
    #expect(try await cacheValues.get("a") == 2)
  }

  @Test func `a slow read of several ids doesn't bring back a deleted value`() async throws {
    try await mainValues.putAll([1, 2], forId: ["a", "b"])
    main.pause(after: .getAll)
    let reader = Task { try await repository.getAll(["a", "b"]) }
    await main.waitForPaused(.getAll)
    try await repository.deleteAll(AllObjectsQuery())
    main.resume(.getAll)
    #expect(try await reader.value == [1, 2])
    #expect(try await cacheValues.getAll(AllObjectsQuery()) == [])
  }

  @Test func `a read during a write doesn't replace what is written`() async throws {
    try await mainValues.put(1, forId: "a")
    main.pause(before: .put)
    let writer = Task { try await repository.put(2, forId: "a") }
    await main.waitForPaused(.put)
    main.pause(after: .get)
    let reader = Task { try await repository.get("a") }
    await main.waitForPaused(.get)
    main.resume(.put)
    _ = try await writer.value
    main.resume(.get)
    #expect(try await reader.value == 1)
    #expect(try await repository.get("a") == 2)
    #expect(try await cacheValues.get("a") == 2)
  }

  @Test func `a slow cache doesn't replace a value that was written meanwhile`() async throws {
    try await mainValues.put(1, forId: "a")
    cache.pause(before: .put)
    let reader = Task { try await repository.get("a") }
    await cache.waitForPaused(.put)
    let writer = Task { try await repository.put(2, forId: "a") }
    while mainValues.calls.filter({ $0 == .put }).count < 2 { await Task.yield() }
    await letOthersRun()
    cache.resume(.put)
    #expect(try await reader.value == 1)
    #expect(try await writer.value == 2)
    #expect(try await cacheValues.get("a") == 2)
  }

  @Test func `neither value of two overlapping writes is cached`() async throws {
    main.pause(after: .put)
    let writer = Task { try await repository.put(1, forId: "a") }
    await main.waitForPaused(.put)
    try await repository.put(2, forId: "a")
    main.resume(.put)
    #expect(try await writer.value == 1)
    #expect(await failure { try await cacheValues.get("a") } == .notFound)
    #expect(try await repository.get("a") == 2)
  }

  @Test func `a slow read doesn't permanently replace the newer value of a concurrent read`() async throws {
    try await mainValues.put(1, forId: "a")
    main.pause(after: .get)
    let reader = Task { try await repository.get("a", operation: .mainSync) }
    await main.waitForPaused(.get)
    // Another process writes, and a reader sees it.
    try await mainValues.put(2, forId: "a")
    #expect(try await repository.get("a", operation: .mainSync) == 2)
    main.resume(.get)
    #expect(try await reader.value == 1)
    #expect(try await repository.get("a") == 2)
  }

  @Test func `a deletion from the cache keeps reads in progress from storing`() async throws {
    try await mainValues.put(1, forId: "a")
    main.pause(after: .get)
    let reader = Task { try await repository.get("a") }
    await main.waitForPaused(.get)
    try await repository.delete("a", operation: .cache)
    main.resume(.get)
    #expect(try await reader.value == 1)
    #expect(await failure { try await cacheValues.get("a") } == .notFound)
  }

  @Test func `a value that was missing and is written meanwhile stays in the cache`() async throws {
    main.pause(before: .get)
    let late = Task { try await repository.get("a", operation: .mainSync) }
    await main.waitForPaused(.get)
    try await repository.put(2, forId: "a")
    mainValues.fail(with: DataSourceError.notFound)
    main.resume(.get)
    #expect(await failure { try await late.value } == .notFound)
    #expect(try await cacheValues.get("a") == 2)
  }

  @Test func `getEach asks main once for missing values, and drops deleted ones`() async throws {
    let main = CountedDataSource<Int>()
    let cache = CountedDataSource<Int>()
    let repository = CacheRepository(main: main, cache: cache, validity: Validation { $0 > 0 })
    try await main.putAll([1, 2, 3], forId: ["a", "b", "c"])
    try await cache.putAll([1, -2, -4], forId: ["a", "b", "d"])
    for _ in 0..<2 {
      #expect(try await repository.getEach(["a", "b", "c", "d"]) == [1, 2, 3, nil])
    }
    #expect(main.reads == [["b", "c", "d"], ["d"]])
    #expect(cache.reads.count == 2)
    #expect(try await cache.getAll(AllObjectsQuery()) == [1, 2, 3])
    // Each operation reads as it says.
    try await cache.put(9, forId: "a")
    let mainSync = CacheRepository(main: main, cache: cache, defaultOperation: .mainSync)
    #expect(try await mainSync.getEach(["a", "x"]) == [1, nil])
    #expect(try await cache.get("a") == 1)
    try await cache.put(9, forId: "a")
    let cacheOnly = CacheRepository(main: main, cache: cache, defaultOperation: .cache)
    #expect(try await cacheOnly.getEach(["a", "x"]) == [9, nil])
    #expect(
      try await CacheRepository(main: main, cache: cache, defaultOperation: .main).getEach(["a", "x"]) == [1, nil])
    let failing = CacheRepository(
      main: DebugDataSource(main, errorProbability: 1), cache: cache, validity: Validation { $0 > 10 },
      defaultOperation: .cacheSync(fallback: true))
    #expect(try await failing.getEach(["a", "b"]) == [9, 2])
    #expect(await failure { try await failing.getEach(["a", "x"]) } == .notFound)
  }

  /// Each key has one writer, who knows what its value is, and readers of all kinds. The cache fails at random, and calls
  /// of both sources take random turns.
  @Test func `whatever overlaps and fails, a reader sees the writes that ended before it began`() async throws {
    for seed in SeededGenerator.seeds(6) {
      let random = LockedValue(SeededGenerator(seed: seed))
      @Sendable func number(_ limit: Int) -> Int { random.withLock { Int.random(in: 0..<limit, using: &$0) } }
      @Sendable func pause() async { for _ in 0..<number(4) { await Task.yield() } }
      let main = RandomDataSource<Int>(pause: pause, fails: { false })
      let cache = RandomDataSource<Int>(pause: pause, fails: { number(6) == 0 })
      let repository = CacheRepository(main: main, cache: cache)
      let written = LockedValue(["a": 0, "b": 0])
      try await withThrowingTaskGroup { group in
        for key in ["a", "b"] {
          group.addTask {
            for round in 1...40 {
              switch number(8) {
              case 0: try await repository.putAll([round], forId: [key])
              case 1:
                try await repository.delete(key)
                #expect(await failure { try await repository.get(key) } == .notFound)
                try await repository.put(round, forId: key)
              default: try await repository.put(round, forId: key)
              }
              written.withLock { $0[key] = round }
              let value = try await repository.get(key)
              #expect(value == round, "seed \(seed)")
            }
          }
          for _ in 0..<3 {
            group.addTask {
              for _ in 0..<40 {
                let least = written.withLock { $0[key]! }
                do {
                  let value =
                    switch number(5) {
                    case 0: try await repository.get(key, operation: .mainSync)
                    case 1: try await repository.getEach([key])[0] ?? least
                    case 2: try await repository.getAll([key])[0]
                    default: try await repository.get(key)
                    }
                  #expect(value >= least, "seed \(seed)")
                } catch DataSourceError.notFound {}
              }
            }
          }
        }
        try await group.waitForAll()
      }
      for key in ["a", "b"] {
        let value = try await repository.get(key)
        #expect(value == 40, "seed \(seed)")
      }
    }
  }
}

/// A source in memory whose calls take a while, before and after they do something, and may fail before or after.
private struct RandomDataSource<T: Sendable>: KeyValueDataSource {
  let source = InMemoryDataSource<T>()
  let pause: @Sendable () async -> Void
  let fails: @Sendable () -> Bool

  private func run<R>(_ call: () async throws -> R) async throws -> R {
    await pause()
    if fails() { throw DataSourceError.failed }
    let result = try await call()
    await pause()
    if fails() { throw DataSourceError.failed }
    return result
  }

  func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    try await run { try await source.entries(of: keys) }
  }

  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    try await run { try await source.entries(in: range) }
  }

  func store(_ entries: [KeyValueEntry<T>]) async throws { try await run { try await source.store(entries) } }
  func remove(_ keys: [String]) async throws { try await run { try await source.remove(keys) } }
  func removeAll() async throws { try await run { try await source.removeAll() } }
}
