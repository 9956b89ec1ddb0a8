import DataSourceFutures
import DataSources
import Foundation
import Testing

/// What Harmony's own tests expect of its repositories, mappers and validations.
@Suite struct HarmonyRepositoryTests {
  /// A validation with fixed answers.
  struct FixedValidation: ObjectValidation {
    var objectValid = true
    var arrayValid = true

    func isObjectValid<T>(_ object: T) -> Bool { objectValid }
    func isArrayValid<T>(_ objects: [T]) -> Bool { arrayValid }
  }

  /// A cache repository over sources that record their calls.
  struct Subject {
    let main: ScriptedDataSource<Int>
    let cache: ScriptedDataSource<Int>
    let repository: CacheRepository<Int>
    let query = IdQuery("some id")

    /// - Parameters:
    ///   - main: The value in the main source.
    ///   - cached: The value in the cache.
    init(main mainValue: Int? = nil, cached: Int? = nil, objectValid: Bool = true) async throws {
      let (mainStore, cacheStore) = (InMemoryDataSource<Int>(), InMemoryDataSource<Int>())
      if let mainValue { try await mainStore.put(mainValue, in: query) }
      if let cached { try await cacheStore.put(cached, in: query) }
      main = ScriptedDataSource(over: AnyDataSource(mainStore))
      cache = ScriptedDataSource(over: AnyDataSource(cacheStore))
      repository = CacheRepository(
        main: main, cache: cache, validator: FixedValidation(objectValid: objectValid))
    }

    /// Gets the value as synchronous code does.
    func get(_ operation: RepositoryOperation) async throws -> Int {
      try await onThreads(1) { [repository, query] in try repository.get(query, operation: operation).result.get() }[0]
    }
  }

  @Test func `the main operation asks only the main source`() async throws {
    let empty = try await Subject()
    await #expect(throws: CoreError.NotFound()) { try await empty.get(MainOperation()) }
    #expect(empty.main.calls == [.get] && empty.cache.calls == [])
    let full = try await Subject(main: 4)
    #expect(try await full.get(MainOperation()) == 4)
    #expect(full.main.calls == [.get] && full.cache.calls == [])
  }

  @Test func `the cache operation asks only the cache`() async throws {
    let empty = try await Subject()
    await #expect(throws: CoreError.NotFound()) { try await empty.get(CacheOperation()) }
    #expect(empty.main.calls == [] && empty.cache.calls == [.get])
    let full = try await Subject(cached: 4)
    #expect(try await full.get(CacheOperation()) == 4)
    #expect(full.main.calls == [] && full.cache.calls == [.get])
  }

  @Test func `the cache sync operation fills an empty cache`() async throws {
    let subject = try await Subject(main: 4)
    #expect(try await subject.get(CacheSyncOperation()) == 4)
    #expect(subject.main.calls == [.get] && subject.cache.calls == [.get, .put])
    #expect(try await subject.get(DefaultOperation()) == 4)
    #expect(subject.main.calls == [.get])
  }

  @Test func `the cache sync operation prefers a valid cached value`() async throws {
    let subject = try await Subject(cached: 4)
    #expect(try await subject.get(CacheSyncOperation()) == 4)
    #expect(subject.main.calls == [] && subject.cache.calls == [.get])
  }

  @Test func `the cache sync operation replaces a cached value that is no longer valid`() async throws {
    let subject = try await Subject(main: 4, cached: 3, objectValid: false)
    #expect(try await subject.get(CacheSyncOperation()) == 4)
    #expect(subject.main.calls == [.get] && subject.cache.calls == [.get, .put])
  }

  @Test func `the cache sync operation ignores an invalid value that main doesn't have`() async throws {
    let subject = try await Subject(cached: 3, objectValid: false)
    await #expect(throws: CoreError.NotFound()) { try await subject.get(CacheSyncOperation()) }
    #expect(subject.main.calls == [.get])
  }

  @Test func `with a fallback, the cache sync operation returns the old value if the main source fails`() async throws {
    let subject = try await Subject(main: 4, cached: 3, objectValid: false)
    subject.main.fail(with: CoreError.Failed())
    #expect(try await subject.get(CacheSyncOperation(fallback: true)) == 3)
    subject.main.fail(with: CoreError.Failed())
    await #expect(throws: CoreError.Failed()) { try await subject.get(CacheSyncOperation(fallback: false)) }
  }

  @Test func `every call of a repository returns a future`() async throws {
    _ = try await onThreads(1) { () throws in
      let source = InMemoryDataSource<Int>()
      let repository = SingleDataSourceRepository(source)
      _ = try repository.put(1, forId: "a", operation: MainOperation()).result.get()
      _ = try repository.put(2, in: IdQuery("b"), operation: MainSyncOperation()).result.get()
      _ = try repository.putAll([3, 4], forId: "list", operation: DefaultOperation()).result.get()
      _ = try repository.putAll([5], in: IdQuery("other"), operation: DefaultOperation()).result.get()
      _ = try repository.putAll([6, 7], forId: ["c", "d"], operation: DefaultOperation()).result.get()
      #expect(try repository.get("a", operation: CacheOperation()).result.get() == 1)
      #expect(try repository.get(IdQuery("b"), operation: .main).result.get() == 2)
      #expect(try repository.getAll("list", operation: .main).result.get() == [3, 4])
      #expect(try repository.getAll(IdQuery("other"), operation: .main).result.get() == [5])
      #expect(try repository.getAll(["c", "d"], operation: .main).result.get() == [6, 7])
      try repository.delete("a", operation: .main).result.get()
      try repository.delete(IdQuery("b"), operation: .main).result.get()
      try repository.delete(["c"], operation: .main).result.get()
      try repository.deleteAll("d", operation: .main).result.get()
      try repository.deleteAll(["list"], operation: .main).result.get()
      try repository.deleteAll(IdQuery("other"), operation: .main).result.get()
      #expect(try repository.getAll(AllObjectsQuery(), operation: .main).result.get() == [])
    }
  }

  @Test func `a repository that is written with futures can be awaited`() async throws {
    struct Answer: FutureGetRepository, FuturePutRepository, FutureDeleteRepository {
      func get(_ query: any Query, operation: RepositoryOperation) -> Future<Int> { Future(42) }
      func getAll(_ query: any Query, operation: RepositoryOperation) -> Future<[Int]> { get(query).map { [$0] } }
      func put(_ value: Int?, in query: any Query, operation: RepositoryOperation) -> Future<Int> { Future(value ?? 0) }
      func putAll(_ array: [Int], in query: any Query, operation: RepositoryOperation) -> Future<[Int]> {
        Future(array)
      }
      func delete(_ query: any Query, operation: RepositoryOperation) -> Future<Void> { Future(CoreError.Failed()) }
    }
    let answer = Answer()
    #expect(try await answer.get("a") == 42)
    #expect(try await answer.getAll("a", operation: .main) == [42])
    #expect(try await answer.put(1, forId: "a") == 1)
    #expect(try await answer.putAll([1], forId: "a", operation: .main) == [1])
    #expect(await failure { try await answer.delete("a") } == .failed)
  }

  @Test func `a source becomes a repository that only gets, puts or deletes`() async throws {
    let source = InMemoryDataSource<Int>()
    try await source.toPutRepository().put(1, forId: "a", operation: .main)
    try await source.toPutRepository().putAll([1, 2], forId: "list", operation: .main)
    #expect(try await source.toGetRepository().get("a", operation: .main) == 1)
    #expect(try await source.toGetRepository().getAll("list") == [1, 2])
    try await source.toDeleteRepository().delete("a", operation: .main)
    try await source.toDeleteRepository().deleteAll(IdQuery("list"), operation: .main)
    #expect(try await source.getAll(AllObjectsQuery()) == [])
  }

  @Test func `a retry repository tries a second time`() async throws {
    let scripted = ScriptedDataSource<Int>()
    scripted.fail(with: CoreError.Failed())
    let repository = RetryRepository(SingleDataSourceRepository(scripted))
    await #expect(throws: CoreError.NotFound()) { try await repository.get("a") }
    #expect(scripted.calls.count >= 2)
  }

  // MARK: - Mappers

  @Test func `mappers map values, arrays and dictionaries`() throws {
    final class Length: Mapper<String, Int>, @unchecked Sendable {
      override func map(_ from: String) throws -> Int { from.count }
    }
    #expect(try Length().map("abc") == 3)
    #expect(try Length().map(["a", "bc"]) == [1, 2])
    #expect(try Length().map(["x": "abc"]) == ["x": 3])
    #expect(try ComposedMapper(Length(), ClosureMapper { Double($0) / 2 }).map("abc") == 1.5)
    #expect(try IdentityMapper<Int>().map(3) == 3)
    #expect(try CastMapper<Any, Int>().map(3) == 3)
    #expect(throws: CoreError.Failed()) { try CastMapper<Any, Int>().map("3") }
    #expect(throws: CoreError.NotImplemented()) { try VoidMapper<Int, Int>().map(3) }
    #expect(throws: CoreError.NotImplemented()) { try Mapper<Int, Int>().map(3) }
  }

  @Test func `codable mappers convert through JSON, and throw where Harmony crashes`() throws {
    let item = Item("Lamp", price: 4)
    let data = try EncodableToDataMapper<Item>().map(item)
    #expect(try DataToDecodableMapper<Item>().map(data) == item)
    struct Title: Decodable { let title: String }
    #expect(try EncodableToDecodableMapper<Item, Title>().map(item).title == "Lamp")
    #expect(throws: CoreError.DataSerialization()) { try DataToDecodableMapper<Item>().map(Data("[]".utf8)) }
    #expect(throws: CoreError.DataSerialization()) { try EncodableToDataMapper<Double>().map(.infinity) }
  }

  // MARK: - Validations

  struct Timed: VastraTimestampStrategyDataSource {
    var lastUpdate: Date?
    var time = Time.minutes(1)

    func expiryTimeInterval() -> Time { time }
  }

  @Test func `a timestamp strategy accepts an object until it expires`() {
    let now = Date(timeIntervalSinceReferenceDate: 1_000_000)
    let strategy = VastraTimestampStrategy(now: { now })
    #expect(strategy.isObjectValid(Timed(lastUpdate: now - 59)) == .valid)
    #expect(strategy.isObjectValid(Timed(lastUpdate: now - 60)) == .invalid)
    #expect(strategy.isObjectValid(Timed(lastUpdate: now - 604_799, time: .weeks(1))) == .valid)
    #expect(strategy.isObjectValid(Timed(lastUpdate: .distantPast, time: .never)) == .valid)
    #expect(strategy.isObjectValid(Timed()) == .unknown)
    #expect(strategy.isObjectValid("no timestamp") == .unknown)
  }

  @Test func `a validation service uses the first strategy that decides`() {
    let now = Date(timeIntervalSinceReferenceDate: 1_000_000)
    struct Fixed: VastraStrategy {
      let result: VastraStrategyResult
      func isObjectValid<T>(_ object: T) -> VastraStrategyResult { result }
    }
    var service = VastraService([VastraTimestampStrategy(now: { now }), Fixed(result: .unknown)])
    #expect(service.isObjectValid(Timed(lastUpdate: now)))
    #expect(!service.isObjectValid(Timed()))
    service.defaultValidationState = true
    #expect(service.isObjectValid(Timed()))
    #expect(!service.isArrayValid([Timed]()))
    #expect(!VastraService([Fixed(result: .invalid), Fixed(result: .valid)]).isObjectValid(1))
    #expect(DefaultObjectValidation().isArrayValid([1]) && !DefaultObjectValidation().isArrayValid([Int]()))
  }
}
