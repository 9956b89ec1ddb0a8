import Testing

@testable import Larder

/// Returns the error that an operation throws, or nil, and how long the operation took.
func failure<R>(_ operation: () async throws(LarderError) -> R) async -> (error: LarderError?, took: Duration) {
  let start = ContinuousClock.now
  do {
    _ = try await operation()
    return (nil, ContinuousClock.now - start)
  } catch {
    return (error, ContinuousClock.now - start)
  }
}

/// Returns a configuration with short pauses between attempts to connect.
func configuration(_ change: (inout LarderClient.Configuration) -> Void = { _ in }) -> LarderClient.Configuration {
  var configuration = LarderClient.Configuration()
  configuration.backoff = Backoff(base: .milliseconds(5), cap: .milliseconds(20))
  change(&configuration)
  return configuration
}

@Suite(.serialized, .timeLimit(.minutes(2))) struct DeadlineTests {
  private let limit = Duration.milliseconds(200)
  /// A configuration in which nothing but a call's deadline ends it.
  private let patient = configuration {
    $0.connectTimeout = .seconds(600)
    $0.silenceLimit = .seconds(600)
  }

  private func check(_ address: String, _ kind: LarderError.Kind) async throws {
    let store = try LarderClient(address, configuration: patient).with(timeout: limit).store("items")
    let (error, took) = await failure { () async throws(LarderError) in try await store.get("key") }
    #expect(error?.kind == kind)
    #expect(error?.isSafeToRetry == true)
    #expect(took >= limit, "\(took)")
  }

  @Test func `a call to a server that accepts and sends nothing ends at its deadline`() async throws {
    let server = try FakeServer { _ in .silence }
    try await check(server.address, .timedOut)
  }

  @Test func `a call that the server does not answer ends at its deadline`() async throws {
    let server = try FakeServer { $0.operation == .get ? .silence : .answer }
    try await check(server.address, .timedOut)
  }

  @Test func `a call whose store is never opened ends at its deadline`() async throws {
    let server = try FakeServer { $0.operation == .storeOpen ? .silence : .answer }
    try await check(server.address, .timedOut)
  }

  @Test func `a call to a missing socket ends at its deadline`() async throws {
    try await check("unix:\(FakeServer.freshPath())", .connectFailed)
  }

  @Test func `a call to a port that refuses connections ends at its deadline`() async throws {
    try await check("tcp:127.0.0.1:1", .connectFailed)
  }

  @Test func `a call to an address that drops packets ends at its deadline`() async throws {
    let store = try LarderClient("tcp:192.0.2.1:7411", configuration: patient).with(timeout: limit).store("items")
    let (error, took) = await failure { () async throws(LarderError) in try await store.get("key") }
    // Without a route to the address, the attempt is refused instead.
    #expect(error?.kind == .timedOut || error?.kind == .connectFailed)
    #expect(took >= limit, "\(took)")
  }

  @Test func `a client that does not wait for connections fails with the first attempt`() async throws {
    let client = try LarderClient(
      "unix:\(FakeServer.freshPath())", configuration: configuration { $0.waitsForConnection = false }
    ).with(timeout: .seconds(600))
    let (error, _) = await failure { () async throws(LarderError) in try await client.ping() }
    #expect(error?.kind == .connectFailed)
    #expect(error?.outcome == .notExecuted)
  }

  @Test func `a server that appears within the deadline is found`() async throws {
    let path = FakeServer.freshPath()
    let client = try LarderClient("unix:\(path)", configuration: configuration())
    async let reply: Void = client.ping()
    try await Task.sleep(for: .milliseconds(100))
    let server = try FakeServer(path: path)
    try await reply
    #expect(server.count(of: .ping) == 1)
  }

  @Test func `a put that gets no reply has an unknown outcome`() async throws {
    let server = try FakeServer { $0.operation == .put ? .silence : .answer }
    let store = try LarderClient(server.address).store("items").with(timeout: .milliseconds(100))
    let (error, _) = await failure { () async throws(LarderError) in try await store.put("key", [1]) }
    #expect(error?.kind == .timedOut)
    #expect(error?.outcome == .unknown)
    #expect(error?.isSafeToRetry == false)
  }

  @Test func `a connection that is silent for too long is replaced`() async throws {
    let server = try FakeServer { $0.operation == .get && $0.count == 1 ? .silence : .answer }
    server.put("key", [1])
    let client = try LarderClient(server.address, configuration: configuration { $0.silenceLimit = .milliseconds(50) })
    let store = client.store("items").with(timeout: .milliseconds(60))
    _ = await failure { () async throws(LarderError) in try await store.get("key") }
    #expect(try await store.with(timeout: .seconds(2)).get("key")?.bytes == [1])
    try await Task.sleep(for: .milliseconds(100))
    #expect(try await store.with(timeout: .seconds(2)).get("key")?.bytes == [1])
    #expect(server.shared.withLock { $0.connections } == 2)
  }
}
