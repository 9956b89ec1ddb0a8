import DataSources
import Testing

@Suite struct RepositoryTests {
  @Test func `calls by id have the same forms as those of a source`() async throws {
    let repository = CacheRepository(main: InMemoryDataSource<Int>(), cache: InMemoryDataSource<Int>())
    try await repository.putAll([1, 2], forId: ["a", "b"], operation: .main)
    #expect(try await repository.getAll(["a", "c", "b"], missing: .skip, operation: .main) == [1, 2])
    #expect(await failure { try await repository.getAll(["a", "c"], operation: .main) } == .notFound)
    #expect(try await repository.getIfPresent("a", operation: .main) == 1)
    #expect(try await repository.getIfPresent("a", operation: .cache) == nil)
    #expect(try await repository.getIfPresent(IdQuery("c"), operation: .main) == nil)
    #expect(try await repository.getIfPresent("b") == 2)
    try await repository.deleteAll("a", operation: .main)
    #expect(try await repository.getIfPresent("a") == nil)
    try await repository.deleteAll(["a", "b"], operation: .mainSync)
    #expect(try await repository.getAll(AllObjectsQuery(), operation: .main) == [])
  }

  @Test func `a mapper passes the operation on`() async throws {
    let (main, cache) = (InMemoryDataSource<Int>(), InMemoryDataSource<Int>())
    let texts = RepositoryMapper(CacheRepository(main: main, cache: cache), toOut: { String($0) }, toIn: { Int($0)! })
    #expect(try await texts.put("5", forId: "a", operation: .cache) == "5")
    #expect(try await cache.get("a") == 5)
    #expect(try await main.getIfPresent("a") == nil)
    #expect(try await texts.get("a", operation: .cache) == "5")
    #expect(await failure { try await texts.get("a", operation: .main) } == .notFound)
    try await texts.delete("a", operation: .cache)
    #expect(try await cache.count() == 0)
  }

  @Test func `the missing parts of an assembled repository are not implemented`() async throws {
    let source = InMemoryDataSource<Int>()
    try await source.put(1, forId: "a")
    let readOnly = RepositoryAssembler(get: SingleDataSourceRepository(source))
    #expect(try await readOnly.get("a", operation: .main) == 1)
    #expect(await failure { try await readOnly.put(2, forId: "a", operation: .main) } == .notImplemented)
    #expect(await failure { try await readOnly.delete("a") } == .notImplemented)
  }
}
