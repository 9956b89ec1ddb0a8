import InMemoryTracing
import Larder
import LarderObservability
import LarderTesting
import Testing
import Tracing

@Suite struct TracingTests {
  @Test func `each call has a span with the conventions of databases`() async throws {
    let tracer = InMemoryTracer()
    var configuration = LarderClient.Configuration()
    configuration.observers = [LarderTracing(tracer: tracer)]
    let server = try TestServer.start(stores: ["items": "memory"], client: configuration)
    let items = server.client.store("items")
    try await tracer.withSpan("request") { _ in
      try await items.put("a", Array("secret".utf8))
      _ = try await items.getMany(["a", "b"])
      await #expect(throws: LarderError.self) { try await items.put("a", [1], if: .absent) }
    }
    try await server.client.ping()

    let spans = tracer.finishedSpans
    #expect(spans.map(\.operationName) == ["put items", "get-many items", "put items", "request", "ping"])
    #expect(tracer.activeSpans.isEmpty)
    let request = spans[3]
    #expect(spans[0..<3].allSatisfy { $0.parentSpanID == request.spanID && $0.traceID == request.traceID })
    #expect(spans[4].parentSpanID == nil)
    #expect(spans.allSatisfy { $0.operationName == "request" || $0.kind == .client })

    #expect(
      spans[0].attributes == [
        "db.system.name": .string("larder"), "db.operation.name": .string("put"), "db.namespace": .string("items"),
        "server.address": .string(String(server.address.dropFirst(5))),
      ])
    #expect(spans[1].attributes.get("db.operation.batch.size") == .int64(2))
    let failed = spans[2].attributes
    #expect(failed.get("error.type") == .string("conditionFailed"))
    #expect(failed.get("db.response.status_code") == .string("\(LarderError.Kind.conditionFailed.code)"))
    #expect(spans[2].status?.code == .error)
    #expect((spans[2].errors.first?.error as? LarderError)?.kind == .conditionFailed)
    #expect(spans[0].status == nil)
    #expect(spans[4].attributes.get("db.namespace") == nil)
  }

  @Test func `the process's tracer is used by default`() async throws {
    var configuration = LarderClient.Configuration()
    configuration.observers = [LarderTracing()]
    let server = try TestServer.start(client: configuration)
    // Without a tracer.
    try await server.client.ping()
    let tracer = InMemoryTracer()
    try await withTracer(tracer) { try await server.client.ping() }
    #expect(tracer.finishedSpans.map(\.operationName) == ["ping"])
  }
}
