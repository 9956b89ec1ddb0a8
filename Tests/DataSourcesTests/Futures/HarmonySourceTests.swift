import DataSourceFutures
import DataSources
import Foundation
import Testing

/// What Harmony's own tests expect of its sources, in their style: synchronous, with futures that are waited for.
@Suite struct HarmonySourceTests {
  typealias Source = GetDataSource<Int> & PutDataSource<Int> & DeleteDataSource<Int>

  /// A source that Harmony's tests exercise.
  enum Subject: CaseIterable, Sendable {
    case inMemory, timedCache, regularStorage, prefixStorage, rootKeyStorage, files, mapped

    func make(in directory: URL) -> any Source {
      switch self {
      case .inMemory: return InMemoryDataSource<Int>()
      case .timedCache: return TimedCacheDataSource(InMemoryDataSource<Int>())
      case .regularStorage: return DeviceStorageDataSource<Int>(directory: directory)
      case .prefixStorage: return DeviceStorageDataSource<Int>(directory: directory, .prefix("test-prefix"))
      case .rootKeyStorage: return DeviceStorageDataSource<Int>(directory: directory, .rootKey("test-root-key"))
      case .files:
        return DataSourceMapper(
          dataSource: FileSystemDataSource(directory: directory), toInMapper: EncodableToDataMapper<Int>(),
          toOutMapper: DataToDecodableMapper<Int>())
      case .mapped:
        return DataSourceMapper(
          dataSource: InMemoryDataSource<String>(), toInMapper: ClosureMapper { String($0) },
          toOutMapper: ClosureMapper { Int($0)! })
      }
    }
  }

  /// Runs a test with an empty source, on a thread that may block.
  func run(_ subject: Subject, _ test: @escaping @Sendable (any Source) throws -> Void) async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: directory) }
    _ = try await onThreads(1) { try test(subject.make(in: directory)) }
  }

  @Test(arguments: Subject.allCases)
  func `a value that was put is returned`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      let query = IdQuery("some id")
      #expect(try source.put(4, in: query).result.get() == 4)
      #expect(try source.get(query).result.get() == 4)
    }
  }

  @Test(arguments: Subject.allCases)
  func `a list that was put is returned`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      let query = IdQuery("some id")
      #expect(try source.putAll([4, 2], in: query).result.get() == [4, 2])
      #expect(try source.getAll(query).result.get() == [4, 2])
    }
  }

  @Test(arguments: Subject.allCases)
  func `values of several ids are returned`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      let query = IdsQuery(["a", "b"])
      _ = try source.putAll([4, 2], in: query).result.get()
      #expect(try source.getAll(query).result.get() == [4, 2])
      #expect(try source.getEach(["a", "c"]).result.get() == [4, nil])
      #expect(throws: CoreError.IllegalArgument()) { try source.putAll([1], in: query).result.get() }
    }
  }

  @Test(arguments: Subject.allCases)
  func `a deleted value isn't found`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      let query = IdQuery("some id")
      _ = try source.put(4, in: query).result.get()
      try source.delete(query).result.get()
      #expect(throws: CoreError.NotFound()) { try source.get(query).result.get() }
    }
  }

  @Test(arguments: Subject.allCases)
  func `deleting all objects deletes values and lists`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      _ = try source.put(4, in: IdQuery("value")).result.get()
      _ = try source.putAll([4, 2], in: IdQuery("list")).result.get()
      try source.delete(AllObjectsQuery()).result.get()
      #expect(throws: CoreError.NotFound()) { try source.get(IdQuery("value")).result.get() }
      #expect(throws: CoreError.NotFound()) { try source.getAll(IdQuery("list")).result.get() }
    }
  }

  @Test(arguments: Subject.allCases)
  func `a value that was never put isn't found`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      #expect(throws: CoreError.NotFound()) { try source.get(IdQuery("some id")).result.get() }
      #expect(throws: CoreError.NotFound()) { try source.getAll(IdQuery("some id")).result.get() }
    }
  }

  @Test(arguments: Subject.allCases)
  func `a query without a key is not supported`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      let error = CoreError.QueryNotSupported()
      #expect(throws: error) { try source.get(VoidQuery()).result.get() }
      #expect(throws: error) { try source.getAll(VoidQuery()).result.get() }
      #expect(throws: error) { try source.put(4, in: VoidQuery()).result.get() }
      #expect(throws: error) { try source.putAll([4, 2], in: VoidQuery()).result.get() }
      #expect(throws: error) { try source.delete(VoidQuery()).result.get() }
    }
  }

  @Test(arguments: Subject.allCases)
  func `a value replaces the list of the same key`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      let query = IdQuery("some id")
      _ = try source.putAll([4, 2], in: query).result.get()
      _ = try source.put(4, in: query).result.get()
      #expect(try source.get(query).result.get() == 4)
      #expect(throws: CoreError.NotFound()) { try source.getAll(query).result.get() }
    }
  }

  @Test(arguments: [Subject.inMemory, .mapped])
  func `in memory, calls whose futures are dropped keep their order`(_ subject: Subject) async throws {
    try await run(subject) { source throws in
      let query = IdQuery("some id")
      _ = source.putAll([4, 2], in: query)
      _ = source.put(4, in: query)
      #expect(try source.get(query).result.get() == 4)
    }
  }

  @Test func `a storage keeps dictionaries and arrays as single values`() async throws {
    let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: directory) }
    _ = try await onThreads(1) { () throws in
      let dictionaries = DeviceStorageDataSource<[String: Int]>(directory: directory, .prefix("dictionaries"))
      _ = try dictionaries.put(["a": 1, "b": 2], forId: "some id").result.get()
      #expect(try dictionaries.get("some id").result.get() == ["a": 1, "b": 2])
      let arrays = DeviceStorageDataSource<[Int]>(directory: directory, .prefix("arrays"))
      _ = try arrays.put([1, 2], forId: "some id").result.get()
      #expect(try arrays.get("some id").result.get() == [1, 2])
    }
  }

  @Test func `pages are by offset and limit, without labels`() async throws {
    _ = try await onThreads(1) { () throws in
      let source = InMemoryDataSource<Int>()
      _ = try source.putAll(Array(0..<5), forId: ["a", "b", "c", "d", "e"]).result.get()
      #expect(try source.getAll(PaginationOffsetLimitQuery(1, 2)).result.get() == [1, 2])
    }
  }

  @Test func `a retry source tries a second time, unless told otherwise`() async throws {
    let scripted = ScriptedDataSource<Int>()
    scripted.fail(with: CoreError.Failed())
    #expect(try await onThreads(1) { try RetryDataSource(scripted).put(4, forId: 1).result.get() } == [4])
    #expect(scripted.calls == [.put, .put])
    scripted.fail(with: CoreError.Failed())
    let never = RetryDataSource(scripted, retryCount: 1, retryIf: { _ in false })
    await #expect(throws: CoreError.Failed()) { try await never.get(1) }
  }

  @Test func `a validator rejects values and empty lists`() async throws {
    struct Positive: ObjectValidation {
      func isObjectValid<T>(_ object: T) -> Bool { (object as? Int ?? 0) > 0 }
    }
    let source = InMemoryDataSource<Int>()
    let validator = DataSourceValidator(dataSource: source, validator: Positive())
    try await source.put(-1, forId: "bad")
    try await source.put(1, forId: "good")
    try await source.putAll([], forId: "none")
    #expect(try await validator.get("good") == 1)
    #expect(await failure { try await validator.get("bad") } == .notValid)
    #expect(await failure { try await validator.getAll("none") } == .notValid)
  }

  @Test func `an assembler of one source supports every operation`() async throws {
    let source = DataSourceAssembler(InMemoryDataSource<Int>())
    try await source.put(1, forId: "a")
    #expect(try await source.get("a") == 1)
    try await source.delete("a")
    #expect(await failure { try await source.get("a") } == .notFound)
  }
}
