import InMemoryLogging
import Larder
import LarderLifecycle
import LarderTesting
import Logging
import ServiceLifecycle
import ServiceLifecycleTestKit
import Testing

@Suite struct LifecycleTests {
  /// A service that writes an entry when the group shuts down.
  private struct LastWriter: Service {
    let items: RemoteStore

    func run() async throws {
      try await gracefulShutdown()
      try await items.put("last", [1])
    }
  }

  @Test func `a service group shuts the client down after the services that use it`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"])
    let client = try LarderClient(server.address)
    let logger = Logger(label: "test") { _ in InMemoryLogHandler() }
    let group = ServiceGroup(services: [client, LastWriter(items: client.store("items"))], logger: logger)
    try await withThrowingTaskGroup { tasks in
      tasks.addTask { try await group.run() }
      try await client.ping()
      await group.triggerGracefulShutdown()
      try await tasks.waitForAll()
    }
    #expect(try await server.client.store("items").get("last")?.bytes == [1])
    await #expect(throws: LarderError.self) { try await client.ping() }
  }

  @Test func `a graceful shutdown ends the client's run`() async throws {
    let server = try TestServer.start()
    let client = try LarderClient(server.address)
    try await testGracefulShutdown { trigger in
      let running = Task { try await client.run() }
      try await client.ping()
      trigger.triggerGracefulShutdown()
      try await running.value
    }
    await #expect(throws: LarderError.self) { try await client.ping() }
  }

  @Test func `a cancelled run closes the client`() async throws {
    let server = try TestServer.start()
    let client = try LarderClient(server.address)
    let running = Task { try await client.run() }
    try await client.ping()
    running.cancel()
    try await running.value
    await #expect(throws: LarderError.self) { try await client.ping() }
  }
}
