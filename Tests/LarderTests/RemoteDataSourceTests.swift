import DataSources
import LarderTesting
import Testing
import Wire

@testable import Larder

/// What is specific to a data source with a server. The conformance suite tests what all data sources have in common.
@Suite struct RemoteDataSourceTests {
  private struct Item: Codable, Hashable, Sendable {
    var title: String
  }

  @Test func `a remote source stores values as documents and lists as lists of documents`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"])
    let items = server.client.dataSource(of: Item.self, store: "items")
    try await items.put(Item(title: "a/b"), forId: "single")
    try await items.putAll([Item(title: "x"), Item(title: "y")], forId: "list")
    #expect(try await items.store.get("single")?.bytes == Array(#"{"title":"a/b"}"#.utf8))
    #expect(
      try await items.store.get("list")?.value
        == .list([Array(#"{"title":"x"}"#.utf8), Array(#"{"title":"y"}"#.utf8)]))
  }

  @Test func `a missing store is an error that says what to do`() async throws {
    let server = try TestServer.start()
    let items = server.client.dataSource(of: Item.self, store: "items")
    let error = await #expect(throws: LarderError.self) { try await items.get("a") }
    #expect(error?.kind == .storeUnknown)
    #expect(error?.description.contains("creating:") == true)
    #expect(try await server.client.stores().isEmpty)
  }

  @Test func `concurrent callers create a missing store once`() async throws {
    let server = try TestServer.start()
    let items = server.client.dataSource(of: Int.self, store: "items", creating: "log?durability=none")
    try await withThrowingTaskGroup { group in
      for number in 0..<50 { group.addTask { try await items.put(number, forId: number) } }
      try await group.waitForAll()
    }
    #expect(try await items.getAll(AllObjectsQuery()).sorted() == Array(0..<50))
    #expect(try await server.client.stores().map(\.engine) == ["log"])
  }

  @Test func `a store that can't be created is an error`() async throws {
    let server = try TestServer.start()
    let items = server.client.dataSource(of: Int.self, store: "items", creating: "marble")
    let error = await #expect(throws: DataSourceError.self) { try await items.get("a") }
    #expect(error?.kind == .illegalArgument && error?.message.contains("marble") == true)
  }

  @Test func `a store larger than a frame is streamed`() async throws {
    let server = try TestServer.start()
    let texts = server.client.dataSource(of: String.self, store: "texts", creating: "memory")
    var none = 0
    for try await _ in texts.all { none += 1 }
    #expect(none == 0)
    let text = String(repeating: "text ", count: 2_000)
    let ids = (0..<200).map { 1_000 + $0 }
    try await texts.putAll(ids.map { "\($0) \(text)" }, forId: ids)
    var keys: [String] = []
    for try await entry in texts.all {
      #expect(entry.value == .single("\(entry.key) \(text)"))
      keys.append(entry.key)
    }
    #expect(keys == ids.map(String.init))
    #expect(try await texts.getAll(AllObjectsQuery()).count == 200)
  }

  @Test func `a call with more ids than the server takes is refused`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"])
    let items = server.client.dataSource(of: Int.self, store: "items")
    let ids = Array(0..<70_000)
    let error = await #expect(throws: DataSourceError.self) { try await items.putAll(ids, forId: ids) }
    #expect(error?.kind == .illegalArgument && error?.message.contains("split") == true)
    #expect(try await items.getAll(AllObjectsQuery()) == [])
  }
}

/// The errors of a remote data source: those of the server, and those of the connection.
@Suite struct RemoteErrorTests {
  private static func error(_ code: ErrorCode) -> FakeServer.Script {
    { request in
      guard request.operation == .get || request.operation == .put else { return .answer }
      var output = ByteBuffer()
      output.appendError(code, id: request.id, message: "as told")
      return .send(output.toArray())
    }
  }

  @Test(arguments: ErrorCode.allCases)
  func `49: the codes of data sources become their errors, and all others stay LarderErrors`(_ code: ErrorCode)
    async throws
  {
    let server = try FakeServer(Self.error(code))
    let items = try LarderClient(server.address).dataSource(of: Int.self, store: "items")
    for call in [{ _ = try await items.put(1, forId: "a") }, { _ = try await items.get("a") }] {
      do {
        try await call()
        Issue.record("no error")
      } catch let error as DataSourceError {
        #expect(error.code == Int(code.rawValue) || code == .keyInvalid && error.kind == .illegalArgument)
      } catch let error as LarderError {
        #expect(error.code == code.rawValue && code.rawValue > 7)
      }
    }
  }

  @Test func `50: the error of a lost connection says whether the call is safe to repeat`() async throws {
    let server = try FakeServer { request in
      request.operation == .get || request.operation == .put ? .hangUp([]) : .answer
    }
    var configuration = LarderClient.Configuration()
    configuration.retriesReads = false
    let items = try LarderClient(server.address, configuration: configuration).dataSource(of: Int.self, store: "items")
    let read = await #expect(throws: LarderError.self) { try await items.get("a") }
    #expect(read?.kind == .disconnected && read?.isSafeToRetry == true)
    let write = await #expect(throws: LarderError.self) { try await items.put(1, forId: "a") }
    #expect(write?.kind == .disconnected && write?.isSafeToRetry == false)
  }

  @Test func `a retrying source does not repeat a call that is not safe to repeat`() async throws {
    let server = try FakeServer { request in request.operation == .put ? .hangUp([]) : .answer }
    let items = try LarderClient(server.address).dataSource(of: Int.self, store: "items")
    let retried = RetryDataSource(items, RetryRule(retryCount: 3, pause: .zero))
    await #expect(throws: LarderError.self) { try await retried.put(1, forId: "a") }
    #expect(server.count(of: .put) == 1)
  }

  @Test func `a retrying source repeats only transient errors`() async throws {
    for (code, calls) in [(ErrorCode.tooManyRequests, 3), (.shuttingDown, 3), (.notFound, 1), (.valueTooLarge, 1)] {
      let server = try FakeServer { request in request.operation == .get ? request.error(code) : .answer }
      var configuration = LarderClient.Configuration()
      configuration.retriesReads = false
      let client = try LarderClient(server.address, configuration: configuration)
      let items = client.dataSource(of: Int.self, store: "items")
      let retried = RetryDataSource(items, RetryRule(retryCount: 2, pause: .zero))
      await #expect(throws: (any Error).self) { try await retried.get("a") }
      #expect(server.count(of: .get) == calls, "\(code)")
    }
  }

  @Test func `getEach is one request, also through composed sources`() async throws {
    let server = try FakeServer()
    let items = try LarderClient(server.address).dataSource(of: Int.self, store: "items")
    // The server replies with all entries that it has.
    for (id, value) in [("a", 1), ("b", 2)] { try await items.put(value, forId: id) }
    #expect(try await items.getEach(["a", "b"]) == [1, 2])
    #expect(server.count(of: .getMany) == 1)
    let mapped = DataSourceMapper(items, toOut: { $0 + 1 }, toIn: { $0 - 1 })
    let composed = AnyDataSource(TimedCacheDataSource(RetryDataSource(mapped, retryCount: 1), lifetime: .seconds(60)))
    let cached = CacheRepository(main: items, cache: InMemoryDataSource())
    for _ in 0..<2 {
      #expect(try await composed.getEach(["a", "b"]) == [2, 3])
      #expect(try await cached.getEach(["a", "b"]) == [1, 2])
    }
    #expect(server.count(of: .getMany) == 3 && server.count(of: .get) == 0)
  }

  @Test func `a cancelled call to a remote source throws the same error as a local one`() async throws {
    let server = try FakeServer { request in request.operation == .get ? .silence : .answer }
    let items = try LarderClient(server.address).dataSource(of: Int.self, store: "items")
    let call = Task { try await items.get("a") }
    while server.count(of: .get) == 0 { await Task.yield() }
    call.cancel()
    await #expect(throws: CancellationError.self) { try await call.value }
  }

  @Test func `each call is one request`() async throws {
    let server = try FakeServer { request in
      guard [.putMany, .deleteMany, .deleteAll].contains(request.operation) else { return .answer }
      var output = ByteBuffer()
      output.appendReply(id: request.id, number: 1)
      return .send(output.toArray())
    }
    let items = try LarderClient(server.address).dataSource(of: Int.self, store: "items")
    server.put("a", Array("1".utf8))
    server.put("b", Array("2".utf8))
    #expect(try await items.getAll(["a", "b"]) == [1, 2])
    #expect(try await items.putAll([3, 4], forId: ["a", "b"]) == [3, 4])
    try await items.delete(["a", "b"])
    #expect(try await items.getAll(AllObjectsQuery()) == [1, 2])
    #expect(try await items.getAll(PaginationOffsetLimitQuery(offset: 0, limit: 9)) == [1, 2])
    #expect(try await items.getAll(PaginationCursorQuery(limit: 9)) == [1, 2])
    #expect(try await items.getAll(SelectorQuery(.all)) == [1, 2])
    try await items.deleteAll(AllObjectsQuery())
    #expect(try await items.get("a") == 1)
    #expect(try await items.put(1, forId: "a") == 1)
    let expected: [Wire.Operation: Int] = [
      .hello: 1, .storeOpen: 1, .getMany: 1, .putMany: 1, .deleteMany: 1, .all: 1, .page: 2, .find: 1, .deleteAll: 1,
      .get: 1, .put: 1,
    ]
    #expect(server.shared.withLock { $0.counts } == expected)
  }
}
