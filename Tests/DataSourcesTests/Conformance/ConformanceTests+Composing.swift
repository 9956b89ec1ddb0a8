import DataSourceFutures
import Larder
import Testing

@testable import DataSources

extension ConformanceTests {
  @Test func `51: a void source fails every call`() async {
    let source = VoidDataSource<Int>()
    #expect(await failure { try await source.get(1) } == .notImplemented)
    #expect(await failure { try await source.getAll(VoidQuery()) } == .notImplemented)
    #expect(await failure { try await source.put(nil, forId: 1) } == .notImplemented)
    #expect(await failure { try await source.putAll([], forId: 1) } == .notImplemented)
    #expect(await failure { try await source.delete(1) } == .notImplemented)
    #expect(await failure { try await source.deleteAll(AllObjectsQuery()) } == .notImplemented)
  }

  @Test(arguments: Subject.all)
  func `52: a validator checks values that are read, and no others`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let validated = DataSourceValidator(source, Validation { $0.title != "bad" })
      #expect(try await validated.put("bad", forId: "a") == "bad")
      try await validated.putAll(["good", "bad"], forId: "l")
      #expect(await failure { try await validated.get("a") } == .notValid)
      #expect(await failure { try await validated.getAll("l") } == .notValid)
      try await validated.putAll([], forId: "l")
      #expect(await failure { try await validated.getAll("l") } == .notValid)
      try await validated.delete("a")
      #expect(await failure { try await validated.get("a") } == .notFound)
    }
  }

  @Test(arguments: Subject.all)
  func `53: n retries make n + 1 attempts`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let scripted = ScriptedDataSource(over: source)
      let rule = RetryRule(retryCount: 2, pause: .zero) { ($0 as? DataSourceError)?.kind == .failed }
      let retried = RetryDataSource(scripted, rule)
      scripted.fail(with: DataSourceError.failed, DataSourceError.failed)
      #expect(try await retried.put("one", forId: "a") == "one")
      scripted.fail(with: DataSourceError.failed, DataSourceError.failed, DataSourceError(.failed, "the last"))
      let error = await #expect(throws: DataSourceError.self) { try await retried.get("a") }
      #expect(error?.message == "the last")
      #expect(await failure { try await retried.get("b") } == .notFound)
      #expect(scripted.calls == [.put, .put, .put, .get, .get, .get, .get])
    }
  }

  @Test(arguments: Subject.all)
  func `54: cacheSync reads from main what the cache lacks`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let cache = ScriptedDataSource<Item>()
      let repository = CacheRepository(main: source, cache: cache, validity: Validation { $0.title != "stale" })
      try await source.put("one", forId: "a")
      #expect(try await repository.get("a") == "one")
      #expect(try await cache.get("a") == "one")
      try await cache.put("stale", forId: "a")
      #expect(try await repository.get("a") == "one")
      cache.fail(with: DataSourceError.dataSerialization)
      #expect(try await repository.get("a") == "one")
    }
  }

  @Test(arguments: Subject.all)
  func `54: any source can be a cache`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let main = ScriptedDataSource<Item>()
      let repository = CacheRepository(main: main, cache: source)
      try await main.put("one", forId: "a")
      try await main.putAll(["x", "y"], forId: "l")
      for _ in 0..<2 {
        #expect(try await repository.get("a") == "one")
        #expect(try await repository.getAll("l") == ["x", "y"])
        #expect(try await repository.getAll(["a"]) == ["one"])
      }
      #expect(main.calls == [.put, .putAll, .get, .getAll])
    }
  }

  @Test(arguments: Subject.all)
  func `55: a failed mainSync leaves the cache unchanged`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let main = ScriptedDataSource<Item>()
      let repository = CacheRepository(main: main, cache: source, defaultOperation: .mainSync)
      try await source.put("kept", forId: "a")
      main.fail(with: DataSourceError.failed, DataSourceError.failed, DataSourceError.failed)
      #expect(await failure { try await repository.get("a") } == .failed)
      #expect(await failure { try await repository.put("new", forId: "a") } == .failed)
      #expect(await failure { try await repository.delete("a") } == .failed)
      #expect(try await source.get("a") == "kept")
    }
  }

  @Test(arguments: Subject.all)
  func `56: a fallback returns a stale value, or fails with notFound`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let main = ScriptedDataSource<Item>()
      let repository = CacheRepository(
        main: main, cache: source, validity: Validation { $0.title != "stale" },
        defaultOperation: .cacheSync(fallback: true))
      try await source.put("stale", forId: "a")
      main.fail(with: DataSourceError.failed, DataSourceError.failed)
      #expect(try await repository.get("a") == "stale")
      #expect(await failure { try await repository.get("b") } == .notFound)
    }
  }

  @Test(arguments: Subject.all)
  func `57: cached values expire, and writes drop them`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let time = TimedCacheTests.Time()
      let scripted = ScriptedDataSource(over: source)
      let timed = TimedCacheDataSource(scripted, lifetime: .seconds(10), limit: 10, clock: time)
      try await source.putAll(["1", "2"], forId: ["a", "b"])
      for _ in 0..<2 { #expect(try await timed.getEach(["a", "b"]) == ["1", "2"]) }
      #expect(scripted.calls == [.get, .get])
      time.advance(by: .seconds(10))
      #expect(try await timed.get("a") == "1")
      #expect(scripted.calls.count == 3)
      try await timed.putAll(["3", "4"], forId: ["a", "b"])
      #expect(try await timed.getEach(["a", "b"]) == ["3", "4"])
      try await timed.delete(AllObjectsQuery())
      #expect(try await timed.getEach(["a", "b"]) == [nil, nil])
    }
  }

  @Test(arguments: Subject.all)
  func `60: a future resolves once, and needs no main run loop`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      let events = Recorder<String>()
      func calls() -> (Future<Item>, Future<Item>) {
        let put = source.put("one", forId: "a")
        return (put.then { events.add("put \($0.title)") }.fail { _ in events.add("put failed") }, source.get("b"))
      }
      let (put, missing) = calls()
      #expect(try await put.value == "one")
      #expect(await failure { try await missing.value } == .notFound)
      while events.events.isEmpty { await Task.yield() }
      #expect(events.events == ["put one"])
      #expect(try await put.value == "one")
    }
  }
}

// MARK: - Errors

extension ConformanceTests {
  @Test(arguments: Subject.all.filter { $0.misread != nil })
  func `48: a value of another type is an error`(_ subject: Subject) async throws {
    try await subject.runAtPlace { place in
      let source = try subject.make(place, "items")
      let misread = try #require(try subject.misread?(place, "items"))
      try await source.put("one", forId: "a")
      try await source.putAll(["x"], forId: "l")
      #expect(await failure { try await misread.get("a") } == .dataSerialization)
      #expect(await failure { try await misread.getAll("l") } == .dataSerialization)
      #expect(await failure { try await misread.getAll(["a"]) } == .dataSerialization)
      #expect(await failure { try await misread.getAll(AllObjectsQuery()) } == .dataSerialization)
      #expect(
        await failure { try await misread.getAll(PaginationCursorQuery(limit: 5)) } == .dataSerialization)
      #expect(try await source.get("a") == "one")
    }
  }

  @Test(arguments: Subject.all)
  func `49: errors have the same kinds and codes as those of a source in memory`(_ subject: Subject) async throws {
    try await subject.run { source async throws in
      for source in [source, AnyDataSource(InMemoryDataSource())] {
        var codes: [Int?] = []
        func note(_ body: () async throws -> Void) async { codes.append(await failure(body)?.rawValue) }
        await note { _ = try await source.get("a") }
        await note { _ = try await source.getAll(["a"]) }
        await note { _ = try await source.put(nil, forId: "a") }
        await note { _ = try await source.get("") }
        await note { _ = try await source.putAll(["1"], forId: [""]) }
        await note { try await source.delete("") }
        await note { _ = try await source.getAll(PaginationOffsetLimitQuery(offset: -1, limit: 1)) }
        await note { _ = try await source.getAll(VoidQuery()) }
        #expect(codes == [1, 1, 2, 2, 2, 2, 2, 6])
      }
    }
  }

  @Test(arguments: Subject.remote)
  func `50: a stopped server is not a missing value, and it can come back`(_ subject: Subject) async throws {
    try await subject.runAtPlace { place in
      let source = try subject.make(place, "items")
      try await source.put("one", forId: "a")
      try await place.server.stop()
      func expectAway(_ body: @Sendable () async throws -> Void) async {
        let error = await #expect(throws: LarderError.self) { try await body() }
        #expect(error?.isSafeToRetry == true)
      }
      await expectAway { _ = try await source.get("b") }
      await expectAway { _ = try await source.getAll("b") }
      await expectAway { _ = try await source.getAll(AllObjectsQuery()) }
      await expectAway { _ = try await source.put("two", forId: "b") }
      await expectAway { try await source.delete("b") }
      try place.server.restart()
      try await source.put("two", forId: "b")
      #expect(try await source.get("b") == "two")
    }
  }
}
