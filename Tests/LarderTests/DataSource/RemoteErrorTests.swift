import DataSources
import Testing
import Wire

@testable import Larder

/// What becomes of the errors of a server and of the way to it.
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
  func `49: the codes of data sources are their errors, and all others are the server's`(_ code: ErrorCode) async throws
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

  @Test func `50: a connection that ends says whether the call may be made again`() async throws {
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

  @Test func `what isn't safe isn't tried again by a retrying source`() async throws {
    let server = try FakeServer { request in request.operation == .put ? .hangUp([]) : .answer }
    let items = try LarderClient(server.address).dataSource(of: Int.self, store: "items")
    let retried = RetryDataSource(items, RetryRule(retryCount: 3, pause: .zero))
    await #expect(throws: LarderError.self) { try await retried.put(1, forId: "a") }
    #expect(server.count(of: .put) == 1)
  }

  @Test func `a cancelled call throws what a local one does`() async throws {
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
    try await items.deleteAll(AllObjectsQuery())
    #expect(try await items.get("a") == 1)
    #expect(try await items.put(1, forId: "a") == 1)
    let expected: [Wire.Operation: Int] = [
      .hello: 1, .storeOpen: 1, .getMany: 1, .putMany: 1, .deleteMany: 1, .all: 1, .page: 2, .deleteAll: 1, .get: 1,
      .put: 1,
    ]
    #expect(server.shared.withLock { $0.counts } == expected)
  }
}
