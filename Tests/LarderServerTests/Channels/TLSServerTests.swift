import Dispatch
import Platform
import TLS
import TLSTestSupport
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Connections with TLS.
  @Suite struct TLSServerTests {
    private static let authority = TestAuthority()
    private static let serverFiles = authority.issue()

    /// Starts a server whose clients may show a certificate.
    private func makeServer(
      speaking spoken: ListenerProtocol = .native, rules: [AccessRule] = [],
      limits: (inout ServerLimits) -> Void = { _ in },
      onRefusal: (@Sendable (RefusalLog.Event) -> Void)? = nil
    ) throws -> TestServer {
      let identity = try Self.serverFiles.identity()
      let clients = TLSContext.ClientCertificates.optional(try Self.authority.trust())
      let contexts = [
        "redis": try TLSContext.server(
          [identity], clients: clients, applicationProtocol: "redis", mayBeUnnamed: true),
        "http/1.1": try TLSContext.server(
          [identity], clients: clients, applicationProtocol: "http/1.1", mayBeUnnamed: true),
        "larder/1": try TLSContext.server([identity], clients: clients, applicationProtocol: "larder/1"),
      ]
      return try TestServer(
        rules: rules, speaking: spoken, limits: limits, onRefusal: onRefusal,
        tls: { name in contexts[name ?? ""].flatMap { TLSLayer(accepting: $0) } })
    }

    private func layer(_ principal: String? = nil, protocol name: String? = "larder/1") throws -> TLSLayer {
      let files = principal.map { name in
        Self.authority.issue(.init(name) { $0.names = ["DNS:\(name)"] })
      }
      let context = try TLSContext.client(
        trusting: Self.authority.trust(), identity: files?.identity(), applicationProtocol: name)
      return try #require(TLSLayer(connectingTo: "127.0.0.1", context))
    }

    private func connect(_ server: TestServer, as principal: String? = nil) throws -> LayeredClient {
      let client = try LayeredClient(server.address, layer(principal))
      try client.open()
      return client
    }

    // MARK: Requests

    @Test func `pipelined requests get their replies in order`() throws {
      let server = try makeServer()
      let client = try connect(server)
      try client.expectOrderedReplies(10..<2_010)
    }

    @Test func `large values pass in both directions at the same time`() throws {
      let server = try makeServer()
      let client = try connect(server)
      let value = (0..<3 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7) }
      try client.send(Request.put("first", value, id: 10))
      #expect(try client.receive().isDone)
      let requests = (0..<4 as Range<UInt32>).flatMap { number in
        Request.get("first", id: 20 + number) + Request.put("key", value, id: 30 + number)
      }
      let replies = try client.exchange(requests, forFrames: 8)
      #expect(replies.map(\.id) == [20, 30, 21, 31, 22, 32, 23, 33])
      for reply in replies where reply.id < 30 { #expect(reply.entries.first?.value == value) }
    }

    @Test func `a client that reads slowly gets everything`() throws {
      let server = try makeServer()
      let client = try connect(server)
      try client.send(Request.put("key", [UInt8](repeating: 1, count: 100_000), id: 9))
      #expect(try client.receive().isDone)
      try client.send((10..<200).flatMap { Request.get("key", id: $0) })
      for id in 10..<200 as Range<UInt32> {
        let reply = try client.receive()
        #expect(reply.id == id && reply.entries.first?.value.count == 100_000)
      }
    }

    @Test func `a client that has ended its side gets all replies, and then the announced end`() throws {
      let server = try makeServer()
      let client = try connect(server)
      try client.send((10..<40).flatMap { Request.get("key", id: $0) })
      try client.endSending()
      for id in 10..<40 as Range<UInt32> { #expect(try client.receive().id == id) }
      #expect(try client.isAtEnd())
    }

    @Test func `Redis's protocol needs no application protocol, and Larder's does`() throws {
      let redis = try makeServer(speaking: .resp)
      let client = try LayeredClient(redis.address, layer(protocol: nil))
      try client.send(Array("PING\r\n".utf8))
      #expect(try client.receiveBytes(7) == Array("+PONG\r\n".utf8))

      let native = try makeServer()
      let error = #expect(throws: LayeredClient.Failure.self) {
        try LayeredClient(native.address, layer(protocol: nil))
      }
      guard case .failed(.refused(let reason)) = error else {
        Issue.record("\(String(describing: error))")
        return
      }
      #expect(reason.contains("it doesn't serve this protocol"))
    }

    // MARK: Rights

    /// So a browser that was sent to the wrong server gets nothing from it.
    @Test(arguments: [(ListenerProtocol.http, "http/1.1"), (.resp, "redis")])
    func `a client may name no protocol, but not only others`(spoken: ListenerProtocol, name: String) throws {
      let server = try makeServer(speaking: spoken)
      _ = try LayeredClient(server.address, layer(protocol: nil))
      _ = try LayeredClient(server.address, layer(protocol: name))
      for other in ["h2", "larder/1", name == "redis" ? "http/1.1" : "redis"] {
        #expect(throws: LayeredClient.Failure.self) { try LayeredClient(server.address, layer(protocol: other)) }
      }
    }

    @Test func `a certificate gives its owner the rights of the principal`() throws {
      let events = Lock<[RefusalLog.Event]>([])
      let server = try makeServer(
        rules: [AccessRule(.principal("web.example"), .write), AccessRule(.principal("audit.example"), .read)],
        onRefusal: { event in events.withLock { $0.append(event) } })
      let writer = try connect(server, as: "web.example")
      try writer.send(Request.put("key", [1], id: 10))
      #expect(try writer.receive().isDone)
      let reader = try connect(server, as: "audit.example")
      try reader.send(Request.get("key", id: 10) + Request.put("key", [2], id: 11))
      #expect(try reader.receive().entries.first?.value == [1])
      #expect(try reader.receive().isError(.notPermitted, id: 11))
      for stranger in [nil, "other.example"] {
        let client = try LayeredClient(server.address, layer(stranger))
        try client.send(LayeredClient.opening())
        #expect(try client.receive().isError(.notPermitted, id: 1))
        #expect(try client.isAtEnd())
      }
      #expect(
        eventually {
          events.withLock { events in
            events.map { event in if case .refused(let refusal) = event { refusal.clientName } else { "" } }
          } == ["principal audit.example", "a TLS client", "principal other.example"]
        })
    }

    // MARK: Handshakes

    @Test func `handshakes that are too many end the oldest`() throws {
      let server = try makeServer { $0.handshakes = 3 }
      let silent = try (0..<10).map { _ in try TestClient(server.address) }
      for client in silent.prefix(7) { #expect(try client.isClosed(within: 5)) }
      // Others are still served.
      let client = try connect(server)
      let figures = try client.figures()
      #expect(figures["handshakes"] == 2 && figures["handshakes_refused_total"] == 8)
      #expect(figures["handshakes_total"] == 1)
    }

    @Test func `a handshake that stalls ends with the time for the hello, and is reported`() throws {
      let events = Lock<[RefusalLog.Event]>([])
      let server = try makeServer(
        limits: { $0.helloTimeout = .milliseconds(200) }, onRefusal: { event in events.withLock { $0.append(event) } })
      let clients = [try TestClient(server.address), try TestClient(server.address)]
      try clients[1].send([0x16, 3, 1])
      for client in clients { #expect(try client.isClosed(within: 5)) }
      #expect(
        eventually {
          events.withLock { events in
            events.count == 2
              && events.allSatisfy { event in
                guard case .refused(let refusal) = event else { return false }
                return refusal.action == "connect" && refusal.reason?.contains("took longer than") == true
              }
          }
        })
      #expect(try connect(server).isServed())
    }

    @Test func `garbage ends the connection, and others are served`() throws {
      let server = try makeServer()
      let witness = try connect(server)
      for garbage in [Array("GET / HTTP/1.1\r\n\r\n".utf8), Array(repeating: 0x16, count: 100_000)] {
        let client = try TestClient(server.address)
        try client.send(garbage)
        client.endSending()
        #expect(try eventually { try witness.figures()["connections"] == 1 })
      }
      #expect(try witness.figures()["handshakes_failed_total"] == 2)
    }

    @Test func `a stream that is cut off ends the connection`() throws {
      let server = try makeServer()
      let (client, witness) = (try connect(server), try connect(server))
      #expect(try client.isServed())
      client.cutOff()
      #expect(try eventually { try witness.figures()["connections"] == 1 })
    }

    @Test func `a server that stops doesn't wait for handshakes`() throws {
      let server = try makeServer()
      let client = try connect(server)
      let silent = try TestClient(server.address)
      #expect(try eventually { try client.figures()["handshakes"] == 1 })
      let duration = Lock<Double?>(nil)
      let stopped = DispatchSemaphore(value: 0)
      DispatchQueue.global().async {
        let seconds = server.stop()
        duration.withLock { $0 = seconds }
        stopped.signal()
      }
      #expect(try client.receive().isNotice(.shuttingDown))
      #expect(try client.isAtEnd())
      #expect(try silent.isClosed())
      stopped.wait()
      #expect(try #require(duration.withLock { $0 }) < 3)
    }

    @Test func `a server without a certificate can't listen with TLS`() throws {
      let configuration = ServerConfiguration(addresses: [.tls(host: "127.0.0.1", port: 0)])
      #expect(throws: SecurityError.self) { try Server(configuration) }
    }
  }
}
