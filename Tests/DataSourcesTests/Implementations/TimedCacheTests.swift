import Testing

@testable import DataSources

@Suite struct TimedCacheTests {
  /// A clock that the test sets.
  final class Time: Sendable {
    private let instant = LockedValue(ContinuousClock.now)
    var now: ContinuousClock.Instant { instant.withLock { $0 } }
    func advance(by duration: Duration) { instant.withLock { $0 += duration } }
  }

  private let time = Time()
  private let inner = ScriptedDataSource<String>()

  func cache(limit: Int = 100) -> TimedCacheDataSource<String> {
    TimedCacheDataSource(inner, lifetime: .seconds(10), limit: limit, now: { [time] in time.now })
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

  @Test func `a slow reader doesn't bring back a replaced value`() {
    let cache = ExpiringValues<String>(lifetime: .seconds(10), limit: 10, now: { [time] in time.now })
    let (_, epoch) = cache.value(of: "a")
    cache.beginChange(["a"])
    let (_, during) = cache.value(of: "a")
    cache.insert(.single("old"), for: "a", readSince: epoch)
    cache.insert(.single("old"), for: "a", readSince: during)
    #expect(cache.value(of: "a").value == nil)
    cache.endChange()
    cache.insert(.single("old"), for: "a", readSince: epoch)
    cache.insert(.single("old"), for: "a", readSince: during)
    #expect(cache.value(of: "a").value == nil)
    cache.insert(.single("new"), for: "a", readSince: cache.value(of: "a").epoch)
    #expect(cache.value(of: "a").value == .single("new"))
  }

  @Test func `the cache stays within its limit`() async throws {
    let cache = cache(limit: 4)
    for id in 0..<20 { try await inner.put("\(id)", forId: id) }
    for id in 0..<20 { #expect(try await cache.get(id) == "\(id)") }
    let before = inner.calls.count
    for id in 0..<20 { #expect(try await cache.get(id) == "\(id)") }
    #expect(inner.calls.count >= before + 16)
  }
}
