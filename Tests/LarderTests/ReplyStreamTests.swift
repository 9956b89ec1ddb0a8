import Testing

@testable import Larder

@Suite(.serialized) struct ReplyStreamTests {
  /// Returns a server with `count` entries of 20,000 bytes.
  private func server(_ count: Int) throws -> FakeServer {
    let server = try FakeServer()
    for number in 0..<count { server.put("\(1_000 + number)", [UInt8](repeating: UInt8(number), count: 20_000)) }
    return server
  }

  private func store(_ server: FakeServer) throws -> RemoteStore {
    try LarderClient(server.address, configuration: configuration { $0.streamCreditBytes = 65_536 }).store("items")
  }

  @Test func `all returns every entry of a store`() async throws {
    let server = try server(50)
    var keys: [String] = []
    for try await entry in try store(server).all() {
      #expect(entry.bytes?.count == 20_000)
      keys.append(entry.key)
    }
    #expect(keys == (0..<50).map { "\(1_000 + $0)" })
  }

  @Test func `a page of several frames is complete`() async throws {
    let server = try server(30)
    #expect(try await store(server).page(limit: 100).map(\.key) == (0..<30).map { "\(1_000 + $0)" })
  }

  @Test func `an empty store has no entries`() async throws {
    let server = try server(0)
    for try await _ in try store(server).all() { Issue.record("an entry of an empty store") }
    #expect(try await store(server).page().isEmpty)
  }

  @Test func `a slow consumer makes the server wait, and no other call`() async throws {
    let server = try server(50)
    let store = try store(server)
    var iterator = store.all().makeAsyncIterator()
    #expect(try await iterator.next()?.key == "1000")
    try await Task.sleep(for: .milliseconds(50))
    let sent = server.shared.withLock { $0.framesSent }
    #expect(sent <= 5)
    #expect(try await store.get("1001")?.bytes?.count == 20_000)
    #expect(server.shared.withLock { $0.framesSent } == sent)
    for number in 1..<50 { #expect(try await iterator.next()?.key == "\(1_000 + number)") }
    #expect(try await iterator.next() == nil)
  }

  @Test func `an iterator that is released cancels its reply`() async throws {
    let server = try server(50)
    let store = try store(server)
    for try await _ in store.all() { break }
    try await store.put("after", [])
    #expect(server.count(of: .cancel) == 1)
    #expect(server.shared.withLock { $0.framesSent } <= 5)
    #expect(server.shared.withLock { $0.connections } == 1)
  }

  @Test func `a consumer that is cancelled while it waits cancels its reply`() async throws {
    let server = try server(50)
    server.set { $0.operation == .credit ? .silence : .answer }
    let store = try store(server)
    let reader = Task { () -> LarderError? in
      await failure { () async throws(LarderError) in
        var iterator = store.all().makeAsyncIterator()
        while try await iterator.next() != nil {}
      }.error
    }
    while server.count(of: .credit) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    reader.cancel()
    #expect(await reader.value?.kind == .cancelled)
    try await store.put("after", [])
    #expect(server.count(of: .cancel) == 1)
  }

  @Test func `a reply whose frames stop arriving ends at the deadline`() async throws {
    let server = try server(50)
    server.set { $0.operation == .credit ? .silence : .answer }
    let store = try store(server).with(timeout: .milliseconds(100))
    let (error, _) = await failure { () async throws(LarderError) in try await store.page() }
    #expect(error?.kind == .timedOut)
    try await store.put("after", [])
    #expect(server.count(of: .cancel) == 1)
  }

  @Test func `a reply that is cut off keeps its frames and ends with an error`() async throws {
    let server = try server(50)
    server.set { $0.operation == .credit ? .hangUp([]) : .answer }
    var count = 0
    var iterator = try store(server).all().makeAsyncIterator()
    do {
      while try await iterator.next() != nil { count += 1 }
      Issue.record("the reply has an end")
    } catch {
      #expect(error.kind == .disconnected)
      #expect(error.isSafeToRetry)
    }
    #expect(count >= 1 && count < 50)
  }
}
