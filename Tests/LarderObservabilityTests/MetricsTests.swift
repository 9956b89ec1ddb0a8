import Larder
import LarderObservability
import LarderTesting
import MetricsTestKit
import Testing

@Suite struct MetricsTests {
  private let metrics = TestMetrics()

  private var configuration: LarderClient.Configuration {
    var configuration = LarderClient.Configuration()
    configuration.observers = [LarderMetrics(factory: metrics)]
    return configuration
  }

  /// The dimensions of a call's metrics.
  private func dimensions(_ server: TestServer, _ operation: String) -> [(String, String)] {
    [
      ("db.system.name", "larder"), ("db.operation.name", operation), ("db.namespace", "items"),
      ("server.address", String(server.address.dropFirst(5))),
    ]
  }

  @Test func `calls are measured by operation, store and error`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: configuration)
    let items = server.client.store("items")
    for key in ["a", "b"] { try await items.put(key, Array("value".utf8)) }
    _ = try await items.getMany(["a", "b", "c"])
    await #expect(throws: LarderError.self) { try await items.put("a", [1], if: .absent) }

    let puts = dimensions(server, "put")
    let durations = try metrics.expectTimer("db.client.operation.duration", puts).values
    #expect(durations.count == 2)
    #expect(durations.allSatisfy { $0 > 0 })
    let failed = puts + [("error.type", "conditionFailed")]
    #expect(try metrics.expectTimer("db.client.operation.duration", failed).values.count == 1)
    let gets = dimensions(server, "get-many")
    #expect(try metrics.expectRecorder("larder.client.operation.batch.size", gets).values == [3])
    #expect(metrics.counterTotal(label: "larder.client.response.bytes", dimensions: puts) == 16)
    #expect(metrics.counterTotal(label: "larder.client.request.bytes", dimensions: puts) > 10)
    #expect(metrics.counterTotal(label: "larder.client.retries", dimensions: puts) == 0)
  }

  @Test func `connections and calls in progress are counted`() async throws {
    let server = try TestServer.start(stores: ["items": "memory"], client: configuration)
    let pool = [("db.client.connection.pool.name", server.address)]
    let used = pool + [("db.client.connection.state", "used")]
    try await server.client.ping()
    let count = try metrics.expectMeter("db.client.connection.count", used)
    #expect(count.values.last == 1)
    #expect(try metrics.expectTimer("db.client.connection.create_time", pool).values.count == 1)
    #expect(try metrics.expectMeter("db.client.connection.pending_requests", pool).values == [1, 0])

    await server.stop()
    while count.values.last != 0 { try await Task.sleep(for: .milliseconds(1)) }
    #expect(metrics.counterTotal(label: "larder.client.connection.losses") == 1)
    await #expect(throws: LarderError.self) {
      try await server.client.with(timeout: .milliseconds(250)).ping()
    }
    #expect(metrics.counterTotal(label: "larder.client.connection.failures") > 0)
    let failures = metrics.counters(label: "larder.client.connection.failures")
    #expect(failures.first?.dimensions.last?.1 == "connectFailed")

    try server.restart()
    try await server.client.ping()
    #expect(count.values.last == 1)
  }
}
