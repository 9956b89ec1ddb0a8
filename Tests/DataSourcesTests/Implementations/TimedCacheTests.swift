import Testing

@testable import DataSources

@Suite struct TimedCacheTests {
  /// A clock that the test sets.
  final class Time: Clock {
    private let instant = LockedValue(ContinuousClock.now)
    var now: ContinuousClock.Instant { instant.withLock { $0 } }
    var minimumResolution: Duration { .nanoseconds(1) }
    func advance(by duration: Duration) { instant.withLock { $0 += duration } }

    func sleep(until deadline: ContinuousClock.Instant, tolerance: Duration?) async throws {
      while now < deadline { try await Task.sleep(for: .milliseconds(1)) }
    }
  }

  private let time = Time()
  private let inner = ScriptedDataSource<String>()

  func cache(limit: Int = 100) -> TimedCacheDataSource<String> {
    TimedCacheDataSource(inner, lifetime: .seconds(10), limit: limit, clock: time)
  }

  @Test func `57: values are cached until they expire`() async throws {
    let cache = cache()
    try await inner.put("one", forId: "a")
    try await inner.putAll(["x"], forId: "l")
    for _ in 0..<3 {
      #expect(try await cache.get("a") == "one")
      #expect(try await cache.getAll("l") == ["x"])
    }
    #expect(inner.calls == [.put, .putAll, .get, .getAll])
    try await inner.put("two", forId: "a")
    time.advance(by: .milliseconds(9_999))
    #expect(try await cache.get("a") == "one")
    time.advance(by: .milliseconds(1))
    #expect(try await cache.get("a") == "two")
  }

  @Test func `57: writes and deletions drop cached values`() async throws {
    let cache = cache()
    func fill() async throws {
      try await cache.putAll(["1", "2"], forId: ["a", "b"])
      #expect(try await cache.get("a") == "1")
      #expect(try await cache.get("b") == "2")
    }
    try await fill()
    try await cache.put("3", forId: "a")
    #expect(try await cache.get("a") == "3")
    try await fill()
    try await cache.putAll(["5", "6"], forId: ["a", "b"])
    #expect(try await cache.get("b") == "6")
    try await fill()
    try await cache.putAll(["x"], forId: "a")
    #expect(await failure { try await cache.get("a") } == .notFound)
    try await fill()
    try await cache.delete(["a"])
    #expect(await failure { try await cache.get("a") } == .notFound)
    try await fill()
    try await cache.delete(AllObjectsQuery())
    #expect(await failure { try await cache.get("b") } == .notFound)
  }

  @Test func `a failed write also drops the cached value`() async throws {
    let cache = cache()
    try await cache.put("1", forId: "a")
    #expect(try await cache.get("a") == "1")
    inner.fail(with: DataSourceError.unknown)
    #expect(await failure { try await cache.put("2", forId: "a") } == .unknown)
    #expect(try await cache.get("a") == "1")
    #expect(inner.calls == [.put, .get, .put, .get])
  }

  @Test func `a slow reader doesn't bring back a replaced value`() async throws {
    for isDuringChange in [false, true] {
      let main = PausedDataSource(over: inner)
      let cache = TimedCacheDataSource(main, lifetime: .seconds(10))
      try await inner.put("old", forId: "a")
      main.pause(after: .get)
      if isDuringChange { main.pause(before: .put) }
      let put = isDuringChange ? Task { try await cache.put("new", forId: "a") } : nil
      if isDuringChange { await main.waitForPaused(.put) }
      // Reads the value of then, and returns it later.
      let reader = Task { try await cache.get("a") }
      await main.waitForPaused(.get)
      if !isDuringChange { try await cache.put("new", forId: "a") }
      main.resume(.put)
      _ = try await put?.value
      main.resume(.get)
      #expect(try await reader.value == "old")
      #expect(try await cache.get("a") == "new")
      try await inner.put("newer", forId: "a")
      #expect(try await cache.get("a") == "new")
    }
  }

  @Test func `a change of one key doesn't keep the value of another from being cached`() async throws {
    let main = PausedDataSource(over: inner)
    let cache = TimedCacheDataSource(main, lifetime: .seconds(10))
    try await inner.put("1", forId: "a")
    main.pause(after: .put)
    // Keys share the counters of changes.
    let slot = EntryKey("a").slot(below: 512)
    let other = (0..<100).map { "other \($0)" }.first { EntryKey($0).slot(below: 512) != slot }!
    let put = Task { try await cache.put("2", forId: other) }
    await main.waitForPaused(.put)
    for _ in 0..<3 { #expect(try await cache.get("a") == "1") }
    main.resume(.put)
    _ = try await put.value
    #expect(inner.calls == [.put, .put, .get])
  }

  @Test func `a reader that comes after a write doesn't wait for a read that began before`() async throws {
    let main = PausedDataSource(over: inner)
    let cache = TimedCacheDataSource(main, lifetime: .seconds(10))
    try await inner.put("old", forId: "a")
    main.pause(after: .get)
    let early = Task { try await cache.get("a") }
    await main.waitForPaused(.get)
    try await cache.put("new", forId: "a")
    main.resume(.get)
    #expect(try await cache.get("a") == "new")
    #expect(try await early.value == "old")
  }

  @Test func `concurrent misses of one key make one call`() async throws {
    let main = PausedDataSource(over: inner)
    let cache = TimedCacheDataSource(main, lifetime: .seconds(10))
    try await inner.put("1", forId: "a")
    main.pause(after: .get)
    let readers = (0..<20).map { _ in Task { try await cache.get("a") } }
    await main.waitForPaused(.get)
    await letOthersRun()
    main.resume(.get)
    for reader in readers { #expect(try await reader.value == "1") }
    #expect(inner.calls == [.put, .get])
  }

  @Test func `a full cache drops the least recently used value`() async throws {
    let cache = cache(limit: 4)
    for id in 0..<20 { try await inner.put("\(id)", forId: id) }
    for id in 0..<20 {
      #expect(try await cache.get(id) == "\(id)")
      #expect(try await cache.get(0) == "0")
    }
    let before = inner.calls.count
    for id in [0, 17, 18, 19] { #expect(try await cache.get(id) == "\(id)") }
    #expect(inner.calls.count == before)
    #expect(try await cache.get(16) == "16")
    #expect(inner.calls.count == before + 1)
  }

  @Test func `an expired value is returned while it is replaced, for a limited time`() async throws {
    let cache = TimedCacheDataSource(
      inner, lifetime: .seconds(10), staleWhileRevalidate: .seconds(5), clock: time)
    try await inner.put("1", forId: "a")
    #expect(try await cache.get("a") == "1")
    try await inner.put("2", forId: "a")
    time.advance(by: .seconds(10))
    #expect(try await cache.get("a") == "1")
    while try await cache.get("a") != "2" { await Task.yield() }
    // A failed call in the background changes nothing.
    try await inner.put("3", forId: "a")
    time.advance(by: .seconds(14))
    inner.fail(with: DataSourceError.failed)
    let count = inner.calls.count
    #expect(try await cache.get("a") == "2")
    while inner.calls.count == count { await Task.yield() }
    // After the extra time, readers wait. The first ones may still share the call that fails.
    time.advance(by: .seconds(1))
    var value: String?
    while value == nil { value = try? await cache.get("a") }
    #expect(value == "3")
  }

  @Test func `a value that the source no longer has isn't returned again`() async throws {
    let cache = TimedCacheDataSource(
      inner, lifetime: .seconds(10), staleWhileRevalidate: .seconds(1_000), clock: time)
    try await inner.putAll(["1"], forId: "l")
    #expect(try await cache.getAll("l") == ["1"])
    try await inner.delete("l")
    time.advance(by: .seconds(10))
    #expect(try await cache.getAll("l") == ["1"])
    while await failure({ try await cache.getAll("l") }) == nil { await Task.yield() }
    #expect(await failure { try await cache.getAll("l") } == .notFound)
  }

  @Test func `getEach reads all uncached values in one call`() async throws {
    let counted = CountedDataSource<String>()
    let cache = TimedCacheDataSource(counted, lifetime: .seconds(10), clock: time)
    try await counted.putAll(["1", "2", "3"], forId: ["a", "b", "c"])
    #expect(try await cache.get("b") == "2")
    for _ in 0..<2 { #expect(try await cache.getEach(["a", "b", "c", "a"]) == ["1", "2", "3", "1"]) }
    #expect(counted.reads == [["b"], ["a", "c", "a"]])
  }

  @Test func `values can be forgotten`() async throws {
    let cache = cache()
    for id in [1, 2] { try await inner.put("old", forId: id) }
    func read() async throws -> [String] { [try await cache.get(1), try await cache.get(2)] }
    #expect(try await read() == ["old", "old"])
    for id in [1, 2] { try await inner.put("new", forId: id) }
    cache.forget(1)
    #expect(try await read() == ["new", "old"])
    cache.forgetAll()
    #expect(try await read() == ["new", "new"])
  }
}
