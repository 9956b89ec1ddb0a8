import Glibc
import Testing
import Wire

@testable import Larder

@Suite(.serialized) struct ConnectionTests {
  @Test func `a get through a connection returns the value that was put`() async throws {
    let server = try FakeServer()
    let store = try LarderClient(server.address).store("items")
    #expect(try await store.get("key") == nil)
    let revision = try await store.put("key", Array("value".utf8))
    let entry = try await store.get("key")
    #expect(entry == Entry(key: "key", value: .single(Array("value".utf8)), revision: revision))
    #expect(try await store.count() == 1)
    #expect(server.count(of: .storeOpen) == 1)
    #expect(server.count(of: .hello) == 1)
  }

  @Test func `many tasks share a connection, an open store, and writes`() async throws {
    let server = try FakeServer()
    let store = try LarderClient(server.address).store("items")
    try await withThrowingTaskGroup { group in
      for task in 0..<64 {
        group.addTask {
          for round in 0..<50 {
            try await store.put("\(task)", [UInt8(round)])
            #expect(try await store.get("\(task)")?.bytes == [UInt8(round)])
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(server.count(of: .storeOpen) == 1)
    #expect(server.shared.withLock { $0.connections } == 1)
    #expect(server.shared.withLock { $0.maxInFlight } > 4)
  }

  @Test func `no more requests are in flight than the server allows`() async throws {
    let server = try FakeServer(inFlight: 3)
    let store = try LarderClient(server.address).store("items")
    try await withThrowingTaskGroup { group in
      for task in 0..<100 { group.addTask { try await store.put("\(task)", []) } }
      try await group.waitForAll()
    }
    #expect(server.shared.withLock { $0.maxInFlight } <= 3)
    #expect(server.count(of: .put) == 100)
  }

  @Test func `a cancelled call ends at once, and its late reply is ignored`() async throws {
    let server = try FakeServer { $0.operation == .get && $0.count == 1 ? .silence : .answer }
    server.put("key", [1])
    let store = try LarderClient(server.address).store("items")
    let call = Task { await failure { () async throws(LarderError) in try await store.get("key") } }
    while server.count(of: .get) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    call.cancel()
    let (error, _) = await call.value
    #expect(error?.kind == .cancelled)
    // The late reply arrives just before the next one.
    server.set { request in
      guard request.operation == .get else { return .answer }
      var bytes = ByteBuffer()
      bytes.appendError(.notFound, id: 0x0001_0001 | 0)
      return request.id == 0x0001_0002 ? .answer : .send(bytes.toArray())
    }
    #expect(try await store.get("key")?.bytes == [1])
    #expect(server.shared.withLock { $0.connections } == 1)
  }

  @Test func `a call of a cancelled task is not sent`() async throws {
    let server = try FakeServer()
    let store = try LarderClient(server.address).store("items")
    try await store.put("key", [])
    let call = Task {
      while !Task.isCancelled { await Task.yield() }
      return await failure { () async throws(LarderError) in try await store.put("key", []) }
    }
    call.cancel()
    let (error, _) = await call.value
    #expect(error?.kind == .cancelled)
    #expect(error?.outcome == .notExecuted)
    #expect(server.count(of: .put) == 1)
  }

  @Test(
    arguments: [
      [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0, 1, 0, 1, 0],
      [8, 0, 0, 0, 0, 0, 0, 0, 9, 9, 9, 9],
      [7, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0],
      Array("HTTP/1.1 400 Bad ServerRequest\r\n\r\n".utf8),
    ] as [[UInt8]])
  func `garbage ends the connection, and the call with protocolViolation`(_ garbage: [UInt8]) async throws {
    let server = try FakeServer { $0.operation == .get && $0.count == 1 ? .send(garbage) : .answer }
    let store = try LarderClient(server.address).store("items")
    let (error, _) = await failure { () async throws(LarderError) in try await store.get("key") }
    #expect(error?.kind == .protocolViolation)
    #expect(try await store.get("key") == nil)
    #expect(server.shared.withLock { $0.connections } == 2)
  }

  @Test(arguments: [
    ("-ERR unknown command 'x'\r\n", "it is a Redis server"),
    ("HTTP/1.1 400 Bad ServerRequest\r\n\r\n", "it is an HTTP server"),
    ("\u{1}\u{0}\u{0}\u{0}", "its first frame has the length 1"),
  ]) func `another kind of server is named if its reply to the hello identifies it`(_ reply: String, _ name: String)
    async throws
  {
    let server = try FakeServer { $0.operation == .hello ? .send(Array(reply.utf8)) : .answer }
    let client = try LarderClient(server.address)
    let (error, _) = await failure { () async throws(LarderError) in try await client.ping() }
    #expect(error?.kind == .protocolViolation && error?.message.contains(name) == true, "\(String(describing: error))")
  }

  @Test func `a malformed record ends the connection, and the call with protocolViolation`() async throws {
    let server = try FakeServer { request in
      guard request.operation == .get, request.count == 1 else { return .answer }
      var bytes = ByteBuffer()
      let start = bytes.beginReply(id: request.id)
      bytes.append([1, 0, 0, 0, 255, 255, 255, 255, 1, 0, 0, 0, 0, 0, 0, 0])
      bytes.endFrame(start)
      return .send(bytes.toArray())
    }
    let store = try LarderClient(server.address).store("items")
    let (error, _) = await failure { () async throws(LarderError) in try await store.get("key") }
    #expect(error?.kind == .protocolViolation)
    #expect(try await store.get("key") == nil)
  }

  @Test func `a server with another protocol is distinguished from an unreachable one`() async throws {
    let server = try FakeServer { _ in .send(Array("-ERR unknown command\r\n".utf8)) }
    let client = try LarderClient(server.address)
    let (error, _) = await failure { () async throws(LarderError) in try await client.ping() }
    #expect(error?.kind == .protocolViolation)
  }

  @Test func `a write that was sent when the server hung up has an unknown outcome`() async throws {
    let server = try FakeServer { $0.operation == .put ? .hangUp([]) : .answer }
    let store = try LarderClient(server.address).store("items")
    let (error, _) = await failure { () async throws(LarderError) in try await store.put("key", []) }
    #expect(error?.kind == .disconnected)
    #expect(error?.outcome == .unknown)
    #expect(server.count(of: .put) == 1)
  }

  @Test func `a read whose reply got lost is sent again`() async throws {
    let server = try FakeServer { $0.operation == .get && $0.count == 1 ? .hangUp([24, 0, 0, 0, 0]) : .answer }
    server.put("key", [1])
    let store = try LarderClient(server.address).store("items")
    #expect(try await store.get("key")?.bytes == [1])
    #expect(server.count(of: .get) == 2)
  }

  @Test func `a read is not sent again when the configuration says so`() async throws {
    let server = try FakeServer { $0.operation == .get && $0.count == 1 ? .hangUp([]) : .answer }
    let store = try LarderClient(server.address, configuration: configuration { $0.retriesReads = false }).store(
      "items")
    let (error, _) = await failure { () async throws(LarderError) in try await store.get("key") }
    #expect(error?.kind == .disconnected)
    #expect(error?.isSafeToRetry == true)
  }

  @Test func `a write that a notice leaves unanswered was not executed, and is sent again`() async throws {
    var notice = ByteBuffer()
    notice.appendError(.shuttingDown, id: 0)
    let bytes = notice.toArray()
    let server = try FakeServer { $0.operation == .put && $0.count == 1 ? .hangUp(bytes) : .answer }
    let store = try LarderClient(server.address, configuration: configuration()).store("items")
    #expect(try await store.put("key", []) == 1)
    #expect(server.count(of: .put) == 2)
  }

  @Test func `a write that was never sent is sent on the next connection`() async throws {
    // The server reads nothing while it sleeps, so that the last puts stay in the client.
    let server = try FakeServer { request in
      if request.operation == .put, request.count == 1 {
        usleep(150_000)
        return .hangUp([])
      }
      return .answer
    }
    let store = try LarderClient(server.address, configuration: configuration()).store("items")
    let large = [UInt8](repeating: 1, count: 400_000)
    let errors = await withTaskGroup { group in
      for task in 0..<8 {
        group.addTask { await failure { () async throws(LarderError) in try await store.put("\(task)", large) }.error }
      }
      return await group.reduce(into: []) { $0.append($1) }
    }
    let failed = errors.compactMap { $0 }
    #expect(failed.allSatisfy { $0.kind == .disconnected && $0.outcome == .unknown })
    #expect(failed.count >= 1 && failed.count < 8)
    #expect(server.shared.withLock { $0.entries.count } + failed.count >= 8)
  }

  @Test func `a stale handle is opened again, once`() async throws {
    let server = try FakeServer()
    server.put("key", [1])
    let store = try LarderClient(server.address).store("items")
    #expect(try await store.get("key")?.bytes == [1])
    server.shared.withLock { $0.handle = 8 }
    #expect(try await store.get("key")?.bytes == [1])
    #expect(server.count(of: .storeOpen) == 2)
  }

  @Test func `a missing store is an error for every caller`() async throws {
    let server = try FakeServer()
    let store = try LarderClient(server.address).store("absent")
    await withTaskGroup { group in
      for _ in 0..<20 {
        group.addTask {
          let (error, _) = await failure { () async throws(LarderError) in try await store.get("key") }
          #expect(error?.kind == .storeUnknown)
        }
      }
    }
  }

  @Test func `a request that exceeds the server's limits is refused without sending it`() async throws {
    let server = try FakeServer()
    let store = try LarderClient(server.address).store("items")
    for (key, size, kind) in [
      ("", 1, LarderError.Kind.keyInvalid), (String(repeating: "k", count: 4_097), 1, .keyInvalid),
      ("k", (1 << 19) + 1, .valueTooLarge),
    ] {
      let (error, _) = await failure { () async throws(LarderError) in
        try await store.put(key, [UInt8](repeating: 0, count: size))
      }
      #expect(error?.kind == kind)
      #expect(error?.outcome == .rejected)
    }
    let keys = (0..<1_001).map { "\($0)" }
    let (error, _) = await failure { () async throws(LarderError) in try await store.getMany(keys) }
    #expect(error?.kind == .illegalArgument)
    #expect(server.count(of: .put) == 0 && server.count(of: .getMany) == 0)
  }

  @Test func `closing ends the calls in progress`() async throws {
    let server = try FakeServer { $0.operation == .get ? .silence : .answer }
    let client = try LarderClient(server.address)
    let store = client.store("items")
    let call = Task { await failure { () async throws(LarderError) in try await store.get("key") } }
    while server.count(of: .get) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    client.close()
    let (error, _) = await call.value
    #expect(error?.kind == .closed)
    let (again, _) = await failure { () async throws(LarderError) in try await store.get("key") }
    #expect(again?.kind == .closed)
  }

  @Test func `shutting down waits for the calls in progress`() async throws {
    let server = try FakeServer { request in
      if request.operation == .put { usleep(50_000) }
      return .answer
    }
    let client = try LarderClient(server.address)
    let store = client.store("items")
    async let revision = store.put("key", [])
    while server.count(of: .put) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    await client.shutdown()
    #expect(try await revision == 1)
  }

  @Test func `released clients leave no descriptors`() async throws {
    let server = try FakeServer()
    func use() async throws {
      for _ in 0..<20 { try await LarderClient(server.address).ping() }
    }
    try await use()
    try await Task.sleep(for: .milliseconds(50))
    let before = openDescriptors()
    for _ in 0..<3 { try await use() }
    try await Task.sleep(for: .milliseconds(100))
    #expect(openDescriptors() <= before + 3)
  }

  private func openDescriptors() -> Int {
    guard let folder = unsafe opendir("/proc/self/fd") else { return 0 }
    defer { unsafe closedir(folder) }
    var count = 0
    while unsafe readdir(folder) != nil { count += 1 }
    return count
  }
}
