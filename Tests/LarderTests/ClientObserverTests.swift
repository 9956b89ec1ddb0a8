import LarderTesting
import Platform
import Testing
import Wire

@testable import Larder

/// What a client tells its observers.
@Suite(.serialized) struct ClientObserverTests {
  /// An observer that records everything.
  private final class Recorder: ClientObserver {
    struct Record: Sendable {
      var calls: [ClientCall] = []
      var results: [ClientCallResult] = []
      var callers: [String] = []
      var events: [String] = []
    }

    private let lock = Lock(Record())

    var record: Record { lock.withLock { $0 } }

    func callBegan(_ call: ClientCall) -> (@Sendable (ClientCallResult) -> Void)? {
      lock.withLock { record in
        record.calls.append(call)
        record.callers.append(Caller.name)
      }
      return { [self] result in lock.withLock { $0.results.append(result) } }
    }

    func connectionOpened(_ connection: ClientConnection, after duration: Duration) {
      lock.withLock { $0.events.append(duration > .zero ? "opened" : "opened in no time") }
    }

    func connectionFailed(_ connection: ClientConnection, error: LarderError) {
      lock.withLock { $0.events.append("failed: \(error.kind)") }
    }

    func connectionClosed(_ connection: ClientConnection, error: LarderError?) {
      lock.withLock { $0.events.append(error.map { "lost: \($0.kind)" } ?? "closed") }
    }
  }

  private enum Caller {
    @TaskLocal static var name = "nobody"
  }

  private let recorder = Recorder()

  private var configuration: LarderClient.Configuration {
    var configuration = LarderClient.Configuration()
    configuration.observers = [recorder]
    return configuration
  }

  @Test func `an observer is notified of each call and its result`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: configuration)
    let client = server.client
    let items = client.store("items")
    try await Caller.$name.withValue("Ada") { _ = try await items.put("apple", Array("red".utf8)) }
    _ = try await items.get("apple")
    _ = try await items.getMany(["a", "b"])
    try await client.ping()
    await #expect(throws: LarderError.self) { try await client.store("absent").get("apple") }

    let record = recorder.record
    #expect(record.calls.map(\.operation) == ["put", "get", "get-many", "ping", "get"])
    #expect(record.calls.map(\.store) == ["items", "items", "items", nil, "absent"])
    #expect(record.calls.map(\.keyCount) == [1, 1, 2, 1, 1])
    #expect(record.calls[0].requestBytes >= 8)
    #expect(record.callers == ["Ada", "nobody", "nobody", "nobody", "nobody"])
    let connection = ClientConnection(
      number: 0, address: server.address, host: String(server.address.dropFirst(5)), port: nil)
    #expect(record.calls.allSatisfy { $0.connection == connection })
    #expect(record.results.map(\.error?.kind) == [nil, nil, nil, nil, .storeUnknown])
    #expect(record.results.map(\.retries) == [0, 0, 0, 0, 0])
    #expect(record.results.allSatisfy { $0.duration > .zero })
    #expect(record.results[0].responseBytes == 8)
    #expect(record.results[1].responseBytes == 3)
  }

  @Test func `an observer is notified of connections and repeated calls`() async throws {
    let server = try FakeServer { $0.operation == .get && $0.count == 1 ? .hangUp([]) : .answer }
    server.put("key", [1])
    let client = try LarderClient(server.address, configuration: configuration)
    #expect(try await client.store("items").get("key")?.bytes == [1])
    #expect(recorder.record.results.map(\.retries) == [1])
    #expect(recorder.record.events == ["opened", "lost: disconnected", "opened"])
    client.close()
    while recorder.record.events.count < 4 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(recorder.record.events.last == "closed")
  }

  @Test func `an observer is notified of failed attempts to connect`() async throws {
    var configuration = configuration
    configuration.waitsForConnection = false
    let client = try LarderClient("unix:\(FakeServer.freshPath())", configuration: configuration)
    await #expect(throws: LarderError.self) { try await client.ping() }
    await client.shutdown()
    let record = recorder.record
    #expect(record.events == ["failed: connectFailed"])
    #expect(record.results.map(\.error?.kind) == [.connectFailed])
  }

  @Test func `a cancelled call ends for its observer too`() async throws {
    let server = try FakeServer { $0.operation == .get ? .silence : .answer }
    let client = try LarderClient(server.address, configuration: configuration)
    let call = Task { try await client.store("items").get("key") }
    while server.count(of: .get) == 0 { try await Task.sleep(for: .milliseconds(1)) }
    call.cancel()
    _ = await call.result
    #expect(recorder.record.results.map(\.error?.kind) == [.cancelled])
  }

  @Test func `an observer of an address with a port learns the host and the port`() throws {
    let reporter = ConnectionReporter(
      number: 3, address: .tcp(host: "::1", port: 7_411), observers: [recorder])
    _ = try #require(reporter).callBegan(PingRequest(), store: nil)
    let connection = try #require(recorder.record.calls.first).connection
    #expect(connection == ClientConnection(number: 3, address: "tcp:[::1]:7411", host: "::1", port: 7_411))
  }
}
