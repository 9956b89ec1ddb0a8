import DataSources
import Testing

@Suite struct CacheRepositoryTests {
  let main = ScriptedDataSource<Int>()
  let cache = ScriptedDataSource<Int>()

  /// Values from 0 on may be used; negative ones are stale.
  var repository: CacheRepository<Int> {
    CacheRepository(main: main, cache: cache, validity: Validation { $0 >= 0 })
  }

  @Test func `main and cache are for one source only`() async throws {
    try await repository.put(1, forId: "a", operation: .main)
    try await repository.putAll([2], forId: "b", operation: .cache)
    #expect(main.calls == [.put] && cache.calls == [.putAll])
    #expect(try await repository.get("a", operation: .main) == 1)
    #expect(await failure { try await repository.get("a", operation: .cache) } == .notFound)
    #expect(try await repository.getAll("b", operation: .cache) == [2])
    try await repository.delete("a", operation: .cache)
    #expect(try await repository.get("a", operation: .main) == 1)
  }

  @Test func `mainSync brings main's answers to the cache`() async throws {
    try await main.put(1, forId: "a")
    try await cache.put(9, forId: "a")
    #expect(try await repository.get("a", operation: .mainSync) == 1)
    #expect(try await cache.get("a") == 1)
    try await repository.putAll([1, 2], forId: ["x", "y"], operation: .mainSync)
    #expect(try await cache.getAll(["x", "y"]) == [1, 2])
    try await repository.delete("x", operation: .mainSync)
    #expect(await failure { try await cache.get("x") } == .notFound)
    #expect(await failure { try await main.get("x") } == .notFound)
  }

  @Test func `55: a mainSync that fails leaves the cache as it is`() async throws {
    try await cache.put(9, forId: "a")
    main.fail(with: DataSourceError.failed, DataSourceError.failed, DataSourceError.failed)
    #expect(await failure { try await repository.get("a", operation: .mainSync) } == .failed)
    #expect(await failure { try await repository.put(1, forId: "a", operation: .mainSync) } == .failed)
    #expect(await failure { try await repository.delete("a", operation: .mainSync) } == .failed)
    #expect(try await cache.get("a") == 9)
  }

  @Test func `54: cacheSync asks main for what the cache lacks`() async throws {
    try await main.put(1, forId: "a")
    #expect(try await repository.get("a") == 1)
    #expect(try await repository.get("a") == 1)
    #expect(main.calls == [.put, .get])
    try await cache.put(-1, forId: "a")
    #expect(try await repository.get("a", operation: .cacheSync()) == 1)
    #expect(try await cache.get("a") == 1)
    cache.fail(with: DataSourceError.notValid)
    #expect(try await repository.get("a") == 1)
    #expect(main.calls == [.put, .get, .get, .get])
  }

  @Test func `54: other errors of the cache surface`() async throws {
    try await main.put(1, forId: "a")
    cache.fail(with: DataSourceError.dataSerialization)
    #expect(await failure { try await repository.get("a") } == .dataSerialization)
    #expect(main.calls == [.put])
  }

  @Test func `54: an empty list in the cache isn't valid`() async throws {
    try await cache.putAll([], forId: "l")
    try await main.putAll([3], forId: "l")
    #expect(try await repository.getAll("l") == [3])
  }

  @Test func `a stale value is better than a main source that fails`() async throws {
    try await cache.put(-1, forId: "a")
    main.fail(with: DataSourceError.unknown, DataSourceError.unknown)
    #expect(await failure { try await repository.get("a") } == .unknown)
    #expect(try await repository.get("a", operation: .cacheSync(fallback: true)) == -1)
    // Main answers, and has nothing: that is no failure.
    #expect(await failure { try await repository.get("a", operation: .cacheSync(fallback: true)) } == .notFound)
  }

  @Test(arguments: [RepositoryOperation.cacheSync(), .cacheSync(fallback: true), .mainSync, .main])
  func `what a cache may have in part is read from main`(_ operation: RepositoryOperation) async throws {
    try await main.putAll([1, 2], forId: ["a", "b"])
    try await cache.put(1, forId: "a")
    let queries: [any Query] = [
      AllObjectsQuery(), PaginationOffsetLimitQuery(offset: 0, limit: 9), PaginationCursorQuery(limit: 9),
      IdsQuery(["a", "b", "c"], missing: .skip),
    ]
    for query in queries {
      #expect(try await repository.getAll(query, operation: operation) == [1, 2])
      #expect(try await cache.getAll(AllObjectsQuery()) == [1])
    }
  }

  @Test func `56: what a cache has in part is better than nothing, and nothing is notFound`() async throws {
    try await cache.put(1, forId: "a")
    main.fail(with: DataSourceError.unknown, DataSourceError.unknown, DataSourceError.unknown)
    #expect(await failure { try await repository.getAll(AllObjectsQuery()) } == .unknown)
    #expect(try await repository.getAll(AllObjectsQuery(), operation: .cacheSync(fallback: true)) == [1])
    try await cache.delete("a")
    let none = await failure { try await repository.getAll(AllObjectsQuery(), operation: .cacheSync(fallback: true)) }
    #expect(none == .notFound)
  }

  @Test func `56: without a stale value the fallback is notFound`() async throws {
    main.fail(with: DataSourceError.unknown)
    #expect(await failure { try await repository.get("a", operation: .cacheSync(fallback: true)) } == .notFound)
  }

  @Test func `cacheSync writes to the cache first`() async throws {
    cache.fail(with: DataSourceError.failed)
    #expect(await failure { try await repository.put(1, forId: "a") } == .failed)
    #expect(main.calls == [])
    try await repository.put(1, forId: "a")
    #expect(try await main.get("a") == 1)
  }

  @Test func `it is a source like any other`() async throws {
    let source = AnyDataSource(CacheRepository(main: repository, cache: InMemoryDataSource<Int>()))
    try await source.put(1, forId: "a")
    #expect(try await source.get("a") == 1)
    #expect(try await main.get("a") == 1)
  }
}
