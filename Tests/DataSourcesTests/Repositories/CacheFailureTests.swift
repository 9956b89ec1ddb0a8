import DataSources
import Foundation
import TestSupport
import Testing

/// A cache that fails must not fail the repository, and a reader must never see what it failed to drop.
@Suite struct CacheFailureTests {
  private let main = ScriptedDataSource<Int>()
  private let cache = ScriptedDataSource<Int>()
  private let errors = Recorder<String>()

  private var repository: CacheRepository<Int> {
    CacheRepository(main: main, cache: cache) { [errors] error, operation, _ in errors.add("\(operation): \(error)") }
  }

  static let failures: [any Error] = [
    DataSourceError.dataSerialization, DataSourceError.failed, DataSourceError.unknown,
    DataSourceError.queryNotSupported, DataSourceError.illegalArgument, CocoaError(.fileReadUnknown),
    CancellationError(),
  ]

  @Test(arguments: failures.indices, [RepositoryOperation.cacheSync(), .cacheSync(fallback: true)])
  func `54: a read that fails in the cache is a miss`(_ failure: Int, _ operation: RepositoryOperation) async throws {
    let repository = repository
    try await main.put(1, forId: "a")
    try await main.putAll([1, 2], forId: "l")
    cache.fail(with: Self.failures[failure])
    #expect(try await repository.get("a", operation: operation) == 1)
    cache.fail(with: Self.failures[failure])
    #expect(try await repository.getAll("l", operation: operation) == [1, 2])
    #expect(errors.events.map { $0.prefix { $0 != ":" } } == ["get", "getAll"])
  }

  @Test func `a cache miss isn't reported as an error`() async throws {
    try await main.put(1, forId: "a")
    let repository = repository
    #expect(try await repository.get("a") == 1)
    #expect(await failure { try await repository.get("b") } == .notFound)
    #expect(errors.events == [])
  }

  @Test func `with a cache that always fails, a repository behaves like its main source`() async throws {
    let broken = DebugDataSource(cache, errorProbability: 1)
    let repository = CacheRepository(main: main, cache: broken) { [errors] _, operation, _ in
      errors.add("\(operation)")
    }
    for round in 0..<3 {
      #expect(try await repository.put(round, forId: "a") == round)
      #expect(try await repository.putAll([round, 2], forId: ["b", "c"]) == [round, 2])
      #expect(try await repository.putAll([round], forId: "l") == [round])
      #expect(try await repository.get("a") == round)
      #expect(try await repository.get("a", operation: .mainSync) == round)
      #expect(try await repository.getAll(["a", "b"]) == [round, round])
      #expect(try await repository.getEach(["a", "x"]) == [round, nil])
      #expect(try await repository.getAll("l") == [round])
      #expect(try await repository.getAll(AllObjectsQuery()) == [round, round, 2, round])
      #expect(await failure { try await repository.get("y") } == .notFound)
      try await repository.delete("a")
      #expect(await failure { try await repository.get("a") } == .notFound)
      try await repository.deleteAll(AllObjectsQuery())
      #expect(try await repository.getAll(AllObjectsQuery()) == [])
    }
    #expect(Set(errors.events) == ["get", "getAll", "put", "putAll", "delete", "deleteAll"])
    #expect(cache.calls == [])
  }

  @Test func `readers bypass a value that the cache can neither replace nor drop`() async throws {
    let repository = repository
    try await repository.putAll([1, 5], forId: ["a", "b"])
    cache.fail(with: DataSourceError.failed, DataSourceError.dataSerialization)
    #expect(try await repository.put(2, forId: "a") == 2)
    #expect(errors.events == ["put: the operation failed", "delete: the value can't be encoded or decoded"])
    #expect(try await cache.get("a") == 1)
    // Only the operation that asks for the cache alone fails.
    #expect(await failure { try await repository.get("a", operation: .cache) } == .notFound)
    #expect(await failure { try await repository.getAll(AllObjectsQuery(), operation: .cache) } == .failed)
    #expect(try await repository.get("b", operation: .cache) == 5)
    // It is no fallback either.
    main.fail(with: DataSourceError.failed, DataSourceError.failed, DataSourceError.failed)
    for query in [IdQuery("a"), IdsQuery(["a", "b"]), AllObjectsQuery()] as [any Query] {
      let fallback = RepositoryOperation.cacheSync(fallback: true)
      let error = await failure {
        if query is IdQuery<String> { return [try await repository.get(query, operation: fallback)] }
        return try await repository.getAll(query, operation: fallback)
      }
      #expect(error == .notFound)
    }
    // While the cache fails, the main source has the value. Once it works again, so does the cache.
    cache.fail(with: DataSourceError.failed, DataSourceError.failed)
    #expect(try await repository.get("a") == 2)
    #expect(try await repository.get("a") == 2)
    #expect(try await cache.get("a") == 2)
    let count = main.calls.count
    #expect(try await repository.get("a") == 2)
    #expect(try await repository.getAll(["a", "b"]) == [2, 5])
    #expect(main.calls.count == count)
  }

  @Test func `readers bypass a cache that can't be emptied, until it can`() async throws {
    let repository = repository
    try await repository.putAll([1, 2], forId: ["a", "b"])
    cache.fail(with: DataSourceError.failed, DataSourceError.failed)
    try await repository.deleteAll(AllObjectsQuery())
    try await main.put(7, forId: "b")
    cache.fail(with: DataSourceError.failed)
    #expect(await failure { try await repository.get("a") } == .notFound)
    #expect(await failure { try await repository.get("a", operation: .cache) } == .notFound)
    #expect(try await repository.get("b") == 7)
    #expect(try await cache.getAll(AllObjectsQuery()) == [7])
    #expect(try await repository.get("b", operation: .cache) == 7)
  }

  @Test func `a cancelled put that the cache refuses leaves no old value for readers`() async throws {
    let cache = DebugDataSource(cache, errorProbability: 1, error: CancellationError())
    let repository = CacheRepository(main: main, cache: cache)
    try await self.cache.put(1, forId: "a")
    let put = Task {
      unsafe withUnsafeCurrentTask { unsafe $0?.cancel() }
      return try await repository.put(2, forId: "a")
    }
    #expect(try await put.value == 2)
    #expect(try await repository.get("a") == 2)
  }

  /// A main source that also takes new values without an id, as services do.
  private struct Service: GetDataSource, PutDataSource, DeleteDataSource {
    let source: ScriptedDataSource<Int>

    func get(_ query: any Query) async throws -> Int {
      query is VoidQuery ? 42 : try await source.get(query)
    }

    func getAll(_ query: any Query) async throws -> [Int] { try await source.getAll(query) }

    func put(_ value: Int?, in query: any Query) async throws -> Int {
      try await source.put(value, in: query is VoidQuery ? IdQuery("a") : query)
    }

    func putAll(_ array: [Int], in query: any Query) async throws -> [Int] {
      try await source.putAll(array, in: query)
    }

    func delete(_ query: any Query) async throws { try await source.delete(query) }
  }

  @Test func `a query that the cache doesn't support is a miss, and keeps what the cache has`() async throws {
    let repository = CacheRepository(main: Service(source: main), cache: cache)
    try await repository.put(1, forId: "a")
    for operation in [RepositoryOperation.cacheSync(), .mainSync] {
      #expect(try await repository.get(VoidQuery(), operation: operation) == 42)
      #expect(await failure { try await repository.getAll(VoidQuery(), operation: operation) } == .queryNotSupported)
    }
    #expect(try await cache.get("a") == 1)
  }

  @Test func `a put without a key empties the cache, because it may change anything`() async throws {
    let repository = CacheRepository(main: Service(source: main), cache: cache)
    try await repository.put(1, forId: "a")
    #expect(try await repository.put(2, in: VoidQuery()) == 2)
    #expect(try await repository.get("a") == 2)
  }

  @Test func `a value that is missing under the key of everything doesn't empty the cache`() async throws {
    let repository = repository
    try await repository.put(1, forId: "a")
    #expect(await failure { try await repository.get(AllObjectsQuery(), operation: .mainSync) } == .notFound)
    #expect(try await cache.get("a") == 1)
  }

  @Test func `a corrupt file and an entity that gained a field are misses`() async throws {
    struct Old: Codable, Sendable { let name: String }
    struct New: Codable, Sendable, Equatable {
      let name: String
      let age: Int
    }
    let folder = try TemporaryFolder()
    let old = DeviceStorageDataSource<Old>(directory: folder.url)
    try await old.putAll([Old(name: "Ann"), Old(name: "Bob")], forId: ["ann", "bob"])
    let people = InMemoryDataSource<New>()
    try await people.putAll([New(name: "Ann", age: 30), New(name: "Bob", age: 40)], forId: ["ann", "bob"])
    let new = DeviceStorageDataSource<New>(directory: folder.url)
    let repository = CacheRepository(main: people, cache: new) { [errors] _, operation, _ in errors.add("\(operation)")
    }
    #expect(try await repository.get("ann") == New(name: "Ann", age: 30))
    #expect(try await new.get("ann") == New(name: "Ann", age: 30))
    for file in try FileManager.default.contentsOfDirectory(atPath: folder.url.path) where file.contains("bob") {
      try Data("{".utf8).write(to: folder.url.appendingPathComponent(file))
    }
    #expect(try await repository.get("bob") == New(name: "Bob", age: 40))
    #expect(try await new.get("bob") == New(name: "Bob", age: 40))
    #expect(errors.events == ["get", "get"])
  }
}
