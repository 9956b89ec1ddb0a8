import Testing

@testable import DataSources

@Suite struct TimedCacheTests {
  /// A clock that a test moves.
  final class Time: Sendable {
    private let instant = Locked(ContinuousClock.now)
    var now: ContinuousClock.Instant { instant.withLock { $0 } }
    func advance(by duration: Duration) { instant.withLock { $0 += duration } }
  }

  let time = Time()
  let inner = ScriptedDataSource<String>()

  func cache(limit: Int = 100) -> TimedCacheDataSource<String> {
    TimedCacheDataSource(inner, lifetime: .seconds(10), limit: limit, now: { [time] in time.now })
  }

  @Test func `57: values are remembered until their time is up`() async throws {
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

  @Test func `57: what is written or deleted is forgotten`() async throws {
    let cache = cache()
    func remembered() async throws {
      try await cache.putAll(["1", "2"], forId: ["a", "b"])
      #expect(try await cache.get("a") == "1")
      #expect(try await cache.get("b") == "2")
    }
    try await remembered()
    try await cache.put("3", forId: "a")
    #expect(try await cache.get("a") == "3")
    try await remembered()
    try await cache.putAll(["5", "6"], forId: ["a", "b"])
    #expect(try await cache.get("b") == "6")
    try await remembered()
    try await cache.putAll(["x"], forId: "a")
    #expect(await failure { try await cache.get("a") } == .notFound)
    try await remembered()
    try await cache.delete(["a"])
    #expect(await failure { try await cache.get("a") } == .notFound)
    try await remembered()
    try await cache.delete(AllObjectsQuery())
    #expect(await failure { try await cache.get("b") } == .notFound)
  }

  @Test func `a write that fails is forgotten as well`() async throws {
    let cache = cache()
    try await cache.put("1", forId: "a")
    #expect(try await cache.get("a") == "1")
    inner.fail(with: DataSourceError.unknown)
    #expect(await failure { try await cache.put("2", forId: "a") } == .unknown)
    #expect(try await cache.get("a") == "1")
    #expect(inner.calls == [.put, .get, .put, .get])
  }

  @Test func `a slow reader doesn't bring back what was replaced`() {
    let memory = TimedMemory<String>(lifetime: .seconds(10), limit: 10, now: { [time] in time.now })
    let (_, epoch) = memory.value(of: "a")
    memory.beginChange(["a"])
    let (_, during) = memory.value(of: "a")
    memory.remember(.single("old"), of: "a", since: epoch)
    memory.remember(.single("old"), of: "a", since: during)
    #expect(memory.value(of: "a").value == nil)
    memory.endChange()
    memory.remember(.single("old"), of: "a", since: epoch)
    memory.remember(.single("old"), of: "a", since: during)
    #expect(memory.value(of: "a").value == nil)
    memory.remember(.single("new"), of: "a", since: memory.value(of: "a").epoch)
    #expect(memory.value(of: "a").value == .single("new"))
  }

  @Test func `no more is remembered than the limit`() async throws {
    let cache = cache(limit: 4)
    for id in 0..<20 { try await inner.put("\(id)", forId: id) }
    for id in 0..<20 { #expect(try await cache.get(id) == "\(id)") }
    let before = inner.calls.count
    for id in 0..<20 { #expect(try await cache.get(id) == "\(id)") }
    #expect(inner.calls.count >= before + 16)
  }
}
