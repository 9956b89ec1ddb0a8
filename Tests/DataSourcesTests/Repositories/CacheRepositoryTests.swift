import DataSources
import Testing

@Suite struct CacheRepositoryTests {
  private let main = ScriptedDataSource<Int>()
  private let cache = ScriptedDataSource<Int>()

  /// Negative values are stale.
  private var repository: CacheRepository<Int> {
    CacheRepository(main: main, cache: cache, validity: Validation { $0 >= 0 })
  }

  @Test func `the operations main and cache use one source only`() async throws {
    try await repository.put(1, forId: "a", operation: .main)
    try await repository.putAll([2], forId: "b", operation: .cache)
    #expect(main.calls == [.put] && cache.calls == [.putAll])
    #expect(try await repository.get("a", operation: .main) == 1)
    #expect(await failure { try await repository.get("a", operation: .cache) } == .notFound)
    #expect(try await repository.getAll("b", operation: .cache) == [2])
    try await repository.delete("a", operation: .cache)
    #expect(try await repository.get("a", operation: .main) == 1)
  }

  @Test func `mainSync copies main's values to the cache`() async throws {
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

  @Test func `55: a failed mainSync leaves the cache unchanged`() async throws {
    try await cache.put(9, forId: "a")
    main.fail(with: DataSourceError.failed, DataSourceError.failed, DataSourceError.failed)
    #expect(await failure { try await repository.get("a", operation: .mainSync) } == .failed)
    #expect(await failure { try await repository.put(1, forId: "a", operation: .mainSync) } == .failed)
    #expect(await failure { try await repository.delete("a", operation: .mainSync) } == .failed)
    #expect(try await cache.get("a") == 9)
  }

  @Test func `54: cacheSync reads from main what the cache lacks`() async throws {
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

  @Test func `the operation cache validates`() async throws {
    try await cache.put(-1, forId: "a")
    try await cache.putAll([1, -1], forId: "l")
    #expect(await failure { try await repository.get("a", operation: .cache) } == .notValid)
    #expect(await failure { try await repository.getAll("l", operation: .cache) } == .notValid)
    #expect(await failure { try await repository.getAll(AllObjectsQuery(), operation: .cache) } == .notValid)
    #expect(main.calls == [])
  }

  @Test func `54: an empty list in the cache isn't valid`() async throws {
    try await cache.putAll([], forId: "l")
    try await main.putAll([3], forId: "l")
    #expect(try await repository.getAll("l") == [3])
  }

  @Test func `the fallback for a failing main source is a stale value`() async throws {
    try await cache.put(-1, forId: "a")
    main.fail(with: DataSourceError.unknown, DataSourceError.unknown)
    #expect(await failure { try await repository.get("a") } == .unknown)
    #expect(try await repository.get("a", operation: .cacheSync(fallback: true)) == -1)
    // Main responds that it has no value. That is not a failure.
    #expect(await failure { try await repository.get("a", operation: .cacheSync(fallback: true)) } == .notFound)
  }

  @Test(arguments: [RepositoryOperation.cacheSync(), .cacheSync(fallback: true), .mainSync, .main])
  func `lists that a cache may have in part are read from main`(_ operation: RepositoryOperation) async throws {
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

  @Test func `56: the fallback for a list is the part in the cache, or notFound if there is none`() async throws {
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

  private static let syncOperations: [RepositoryOperation] = [
    .default, .mainSync, .cacheSync(), .cacheSync(fallback: true),
  ]

  @Test(arguments: syncOperations)
  func `readers never see a value that main failed to store`(_ operation: RepositoryOperation) async throws {
    main.fail(with: DataSourceError.unknown, DataSourceError.unknown)
    #expect(await failure { try await repository.put(1, forId: "a", operation: operation) } == .unknown)
    #expect(
      await failure { try await repository.putAll([1, 2], forId: ["a", "b"], operation: operation) } == .unknown)
    #expect(cache.calls == [])
    // While main is away, and once it is back.
    main.fail(with: DataSourceError.unknown)
    #expect(await failure { try await repository.get("a", operation: .cacheSync(fallback: true)) } == .notFound)
    #expect(await failure { try await repository.get("a") } == .notFound)
    #expect(await failure { try await repository.get("b") } == .notFound)
  }

  @Test(arguments: syncOperations)
  func `a value that main failed to change or delete stays in the cache`(_ operation: RepositoryOperation) async throws
  {
    try await repository.put(1, forId: "a", operation: operation)
    main.fail(with: DataSourceError.unknown, DataSourceError.unknown, DataSourceError.unknown)
    #expect(await failure { try await repository.put(2, forId: "a", operation: operation) } == .unknown)
    #expect(await failure { try await repository.delete("a", operation: operation) } == .unknown)
    #expect(await failure { try await repository.deleteAll(AllObjectsQuery(), operation: operation) } == .unknown)
    #expect(try await repository.get("a") == 1)
    #expect(try await main.get("a") == 1)
  }

  @Test(arguments: syncOperations)
  func `writes go to main first, and then to the cache`(_ operation: RepositoryOperation) async throws {
    #expect(try await repository.put(1, forId: "a", operation: operation) == 1)
    #expect(try await repository.putAll([2, 3], forId: "l", operation: operation) == [2, 3])
    #expect(try await cache.get("a") == 1)
    #expect(try await cache.getAll("l") == [2, 3])
    try await repository.delete("a", operation: operation)
    #expect(await failure { try await cache.get("a") } == .notFound)
    #expect(await failure { try await main.get("a") } == .notFound)
  }

  @Test(arguments: syncOperations)
  func `a put succeeds if the cache fails, and the cache drops its old value`(
    _ operation: RepositoryOperation
  ) async throws {
    try await repository.put(1, forId: "a", operation: operation)
    cache.fail(with: DataSourceError.failed)
    #expect(try await repository.put(2, forId: "a", operation: operation) == 2)
    #expect(await failure { try await cache.get("a") } == .notFound)
    #expect(try await repository.get("a") == 2)
  }

  @Test func `a read succeeds if the cache can't store the value`() async throws {
    try await main.put(1, forId: "a")
    try await cache.put(9, forId: "a")
    cache.fail(with: DataSourceError.failed)
    #expect(try await repository.get("a", operation: .mainSync) == 1)
    #expect(await failure { try await cache.get("a") } == .notFound)
  }

  @Test func `a cancelled put leaves no old value in the cache`() async throws {
    let cache = CancellableDataSource<Int>()
    let repository = CacheRepository(main: main, cache: cache)
    try await repository.put(1, forId: "a")
    let put = Task {
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      return try await repository.put(2, forId: "a")
    }
    #expect(try await put.value == 2)
    #expect(await failure { try await cache.get("a") } == .notFound)
    #expect(try await repository.get("a") == 2)
  }

  @Test(arguments: [RepositoryOperation.mainSync, .cacheSync(), .cacheSync(fallback: true)])
  func `a value that main no longer has leaves the cache`(_ operation: RepositoryOperation) async throws {
    try await cache.put(-1, forId: "a")
    try await cache.putAll([-2, -3], forId: ["b", "c"])
    #expect(await failure { try await repository.get("a", operation: operation) } == .notFound)
    #expect(await failure { try await repository.getAll(["b", "c"], operation: operation) } == .notFound)
    #expect(try await cache.getAll(AllObjectsQuery()) == [])
    // So there is nothing to fall back to later, while main is away.
    main.fail(with: DataSourceError.unknown)
    #expect(await failure { try await repository.get("a", operation: .cacheSync(fallback: true)) } == .notFound)
  }

  @Test func `a missing value is notFound, even if the cache fails to drop it`() async throws {
    let repository = repository
    try await cache.put(1, forId: "a")
    cache.fail(with: DataSourceError.failed)
    #expect(await failure { try await repository.get("a", operation: .mainSync) } == .notFound)
    #expect(try await cache.get("a") == 1)
    // Nobody sees what the cache has left, and the next read drops it.
    #expect(await failure { try await repository.get("a") } == .notFound)
    #expect(await failure { try await cache.get("a") } == .notFound)
  }

  @Test func `a miss in both sources doesn't write to the cache`() async throws {
    #expect(await failure { try await repository.get("a") } == .notFound)
    #expect(cache.calls == [.get])
  }

  @Test func `deleteAll succeeds if the cache fails once, and empties it`() async throws {
    try await repository.putAll([1, 2], forId: ["a", "b"])
    cache.fail(with: DataSourceError.failed)
    try await repository.deleteAll(AllObjectsQuery())
    #expect(try await cache.getAll(AllObjectsQuery()) == [])
    #expect(try await main.getAll(AllObjectsQuery()) == [])
  }

  @Test func `a putAll of ids fails in main as a whole, and drops all of the ids if the cache fails`() async throws {
    try await repository.putAll([1, 2], forId: ["a", "b"])
    #expect(await failure { try await repository.putAll([3], forId: ["a", "b"]) } == .illegalArgument)
    #expect(try await cache.getAll(["a", "b"]) == [1, 2])
    cache.fail(with: DataSourceError.failed)
    #expect(try await repository.putAll([3, 4], forId: ["a", "b"]) == [3, 4])
    #expect(try await cache.getAll(AllObjectsQuery()) == [])
    #expect(try await repository.getAll(["a", "b"]) == [3, 4])
  }

  @Test func `a cache repository is a source like any other`() async throws {
    let source = AnyDataSource(CacheRepository(main: repository, cache: InMemoryDataSource<Int>()))
    try await source.put(1, forId: "a")
    #expect(try await source.get("a") == 1)
    #expect(try await main.get("a") == 1)
  }
}

/// A source whose calls fail in a task that has been cancelled.
private struct CancellableDataSource<T: Sendable>: KeyValueDataSource {
  private let source = InMemoryDataSource<T>()

  func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    try Task.checkCancellation()
    return try await source.entries(of: keys)
  }

  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    try Task.checkCancellation()
    return try await source.entries(in: range)
  }

  func store(_ entries: [KeyValueEntry<T>]) async throws {
    try Task.checkCancellation()
    try await source.store(entries)
  }

  func remove(_ keys: [String]) async throws {
    try Task.checkCancellation()
    try await source.remove(keys)
  }

  func removeAll() async throws {
    try Task.checkCancellation()
    try await source.removeAll()
  }
}
