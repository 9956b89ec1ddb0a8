import InMemoryLogging
import Larder
import LarderLifecycle
import LarderObservability
import LarderTesting
import Logging
import Platform
import ServiceLifecycle
import Testing

/// The Swift code of the page about observability in the documentation of `Larder`, whose tests find it here.
@Suite struct DocumentationSnippets {
  private struct Worker: Service {
    func run() async throws { try await gracefulShutdown() }
  }

  private let logger = Logger(label: "test") { _ in InMemoryLogHandler() }

  @Test func `observers are set in the configuration`() async throws {
    var configuration = LarderClient.Configuration()
    configuration.observers = [LarderLogging(logger: logger), LarderMetrics(), LarderTracing()]
    // End of the snippet.
    let server = try TestServer.start(client: configuration)
    try await server.client.ping()
  }

  @Test func `a custom observer reports slow calls`() async throws {
    struct SlowCalls: ClientObserver {
      let limit: Duration
      let report: @Sendable (String) -> Void

      func callBegan(_ call: ClientCall) -> (@Sendable (ClientCallResult) -> Void)? {
        { result in
          if result.duration >= limit { report("\(call.operation) of \(call.store ?? "the server")") }
        }
      }
    }
    // End of the snippet.
    let lines = Lines()
    var configuration = LarderClient.Configuration()
    configuration.observers = [SlowCalls(limit: .zero) { lines.add($0) }]
    let server = try TestServer.start(stores: ["items": "memory"], client: configuration)
    try await server.client.ping()
    _ = try await server.client.store("items").get("apple")
    #expect(lines.all == ["ping of the server", "get of items"])
  }

  @Test func `the client is one of a group's services`() async throws {
    let (larder, worker) = (try TestServer.start().client, Worker())
    let group = ServiceGroup(services: [larder, worker], logger: logger)
    // End of the snippet.
    async let running: Void = group.run()
    await group.triggerGracefulShutdown()
    try await running
  }

  /// Texts that any thread adds.
  private final class Lines: Sendable {
    private let lines = Lock<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }
}
