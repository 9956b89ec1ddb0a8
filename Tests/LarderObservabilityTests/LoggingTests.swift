import InMemoryLogging
import Larder
import LarderObservability
import LarderTesting
import Logging
import Testing

@Suite struct LoggingTests {
  private let handler = InMemoryLogHandler()

  private func configuration(_ level: Logger.Level) -> LarderClient.Configuration {
    var logger = Logger(label: "larder") { _ in handler }
    logger.logLevel = level
    var configuration = LarderClient.Configuration()
    configuration.observers = [LarderLogging(logger: logger)]
    return configuration
  }

  @Test func `calls that fail are logged at a low level`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: configuration(.debug))
    let items = server.client.store("items")
    try await items.put("secret", [1])
    await #expect(throws: LarderError.self) { try await items.put("secret", [1], if: .absent) }
    let entries = handler.entries
    #expect(entries.map(\.level) == [.debug, .debug])
    #expect(entries[0].message.description.hasPrefix("Connected to \(server.address) in "))
    let metadata = entries[1].metadata
    #expect(metadata["db.operation.name"] == "put")
    #expect(metadata["db.namespace"] == "items")
    #expect(metadata["error.type"] == "conditionFailed")
    #expect(metadata["server.address"] == "\(server.address.dropFirst(5))")
    #expect(!"\(metadata)".contains("secret"))
  }

  @Test func `lost connections and failed attempts are warnings`() async throws {
    let server = try TestServer.start(client: configuration(.info))
    try await server.client.ping()
    #expect(handler.entries.isEmpty)
    await server.stop()
    await #expect(throws: LarderError.self) {
      try await server.client.with(timeout: .milliseconds(250)).ping()
    }
    let entries = handler.entries
    #expect(entries.allSatisfy { $0.level == .warning })
    #expect(entries.first?.message.description.hasPrefix("Connection lost: ") == true)
    #expect(entries.last?.message.description.hasPrefix("Connection attempt failed: ") == true)
    #expect(entries.last?.metadata["error.type"] == "connectFailed")
  }
}
