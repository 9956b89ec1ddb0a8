import Dispatch
import Glibc
import Platform
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Connections over a layer that scrambles bytes, keeps some back, and must write in order to read and the reverse.
  @Suite struct ChannelTests {
    private let counters = ScramblingLayer.Counters()
    private let seed = SeededGenerator.seeds(1, "ChannelTests").lowerBound

    private func makeServer(
      renewsKey: Bool = true, limits: (inout ServerLimits) -> Void = { _ in }
    ) throws -> TestServer {
      let layers = ScramblingLayer.factory(.server, seed: seed, counters, renewsKey: renewsKey)
      return try TestServer(speaking: ListenerProtocol(NativeSession(), over: layers), limits: limits)
    }

    /// Connects a client that has not sent its hello.
    private func connect(_ server: TestServer, renewsKey: Bool = true) throws -> LayeredClient {
      let makeLayer = ScramblingLayer.factory(.client, seed: seed, counters, renewsKey: renewsKey)
      return try LayeredClient(server.address, #require(makeLayer()))
    }

    private func open(_ server: TestServer, renewsKey: Bool = true) throws -> LayeredClient {
      let client = try connect(server, renewsKey: renewsKey)
      try client.open()
      return client
    }

    @Test func `pipelined requests get their replies in order`() throws {
      let server = try makeServer()
      let client = try open(server)
      try client.expectOrderedReplies(10..<1_010)
    }

    @Test func `large values pass in both directions at the same time`() throws {
      let server = try makeServer()
      let client = try open(server)
      let values = (0..<4).map { number in (0..<1 << 20).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ number) } }
      try client.send(Request.put("first", values[0], id: 10))
      #expect(try client.receive().isDone)
      let requests = values.indices.flatMap { number in
        Request.get("first", id: 20 + UInt32(number)) + Request.put("key", values[number], id: 30 + UInt32(number))
      }
      let replies = try client.exchange(requests, forFrames: 8)
      for number in values.indices {
        #expect(replies[2 * number].id == 20 + UInt32(number))
        #expect(replies[2 * number].entries.first?.value == values[0])
        #expect(replies[2 * number + 1].id == 30 + UInt32(number) && replies[2 * number + 1].isDone)
      }
      try client.send(Request.get("key", id: 50))
      #expect(try client.receive().entries.first?.value == values[3])
      // Everything inconvenient has happened.
      for event in [.splitWrites, .deliveriesWithRest, .waitsToReadBeforeSending, .waitsToWriteBeforeReceiving]
        as [ScramblingLayer.Counters.Event]
      {
        #expect(counters[event] > 0, "\(event)")
      }
    }

    @Test func `the handshake, requests and the end of the stream may arrive in one read`() throws {
      let server = try makeServer()
      for _ in 0..<20 {
        let client = try connect(server)
        try client.send(LayeredClient.opening() + Request.put("key", [1], id: 3) + Request.get("key", id: 4))
        try client.endSending()
        for id in 1...4 as ClosedRange<UInt32> { #expect(try client.receive().id == id) }
        #expect(try client.isAtEnd())
      }
      #expect(counters[.inputBehindHandshakes] > 0)
      #expect(counters[.ends] == 40)
    }

    @Test func `a client that has ended its side gets all replies, and then the end`() throws {
      let server = try makeServer()
      let client = try open(server)
      try client.send(Request.put("key", [UInt8](repeating: 7, count: 100_000), id: 9))
      #expect(try client.receive().id == 9)
      try client.send((10..<40).flatMap { Request.get("key", id: $0) })
      try client.endSending()
      for id in 10..<40 as Range<UInt32> {
        let reply = try client.receive()
        #expect(reply.id == id && reply.entries.first?.value.count == 100_000)
      }
      #expect(try client.isAtEnd())
      #expect(eventually { counters[.ends] == 2 })
    }

    @Test func `a client that doesn't read stops being read, and others are served`() throws {
      let server = try makeServer(renewsKey: false) { $0.maxOutputBytes = 64 << 10 }
      let (lazy, busy) = (try open(server, renewsKey: false), try open(server))
      try busy.send(Request.put("key", Array(repeating: 1, count: 20_000), id: 10))
      #expect(try busy.receive().isDone)
      let requests = (0..<100_000).flatMap { Request.get("key", id: UInt32($0) + 1) }
      var sentCount = 0
      for id in 0..<300 as Range<UInt32> {
        sentCount += lazy.sendWithoutBlocking(Array(requests[sentCount..<min(sentCount + 60_000, requests.count)]))
        try busy.send(Request.make(.count, id: 100 + id))
        #expect(try busy.receive().id == 100 + id)
      }
      #expect(sentCount < requests.count)
      for id in 1..<4 as Range<UInt32> { #expect(try lazy.receive().id == id) }
    }

    @Test func `a client that leaves its replies unread is disconnected`() throws {
      let server = try makeServer { $0.writeTimeout = .milliseconds(300) }
      let (lazy, witness) = (try open(server), try open(server))
      try lazy.send(Request.put("key", [UInt8](repeating: 1, count: 1 << 20), id: 10))
      #expect(try lazy.receive().isDone)
      try lazy.send((11..<20).flatMap { Request.get("key", id: $0) })
      #expect(try witness.figures()["connections"] == 2)
      #expect(try eventually { try witness.figures()["connections"] == 1 })
    }

    @Test func `a client that reads slowly gets everything`() throws {
      let server = try makeServer { $0.writeTimeout = .milliseconds(500) }
      let client = try open(server)
      try client.send(Request.put("key", [UInt8](repeating: 1, count: 60_000), id: 9))
      #expect(try client.receive().isDone)
      try client.send((10..<40).flatMap { Request.get("key", id: $0) })
      for id in 10..<40 as Range<UInt32> {
        usleep(20_000)
        #expect(try client.receive().id == id)
      }
    }

    @Test func `a handshake that stalls ends with the time for the hello`() throws {
      let server = try makeServer { $0.helloTimeout = .milliseconds(200) }
      let clients = [try TestClient(server.address), try TestClient(server.address)]
      try clients[1].send(Array("SCR".utf8))
      for client in clients {
        #expect(try client.isClosed(within: 60))
      }
      #expect(try open(server).isServed())
    }

    @Test func `garbage in the handshake ends the connection, and the client reads why`() throws {
      let server = try makeServer()
      let witness = try open(server)
      for garbage in ["GET / HTTP/1.1\r\n\r\n", "S", "SCRAMBLED", String(repeating: "x", count: 100_000)] {
        let client = try TestClient(server.address)
        try client.send(Array(garbage.utf8))
        // Some of it is the beginning of a greeting.
        if garbage.hasPrefix("S") { try client.send(Array("!!!!!!!!!!!!!!!!".utf8)) }
        let refusal = Array(ScramblingLayer.refusal.utf8)
        if garbage != "SCRAMBLED" { #expect(try client.receive(byteCount: refusal.count) == refusal) }
        client.endSending()
      }
      #expect(try eventually { try witness.figures()["connections"] == 1 })
    }

    @Test func `a stream that is cut off ends the connection`() throws {
      let server = try makeServer()
      let (client, witness) = (try open(server), try open(server))
      #expect(try client.isServed())
      client.cutOff()
      #expect(throws: LayeredClient.Failure.failed(.layer("the stream was truncated"))) { try client.receive() }
      #expect(try eventually { try witness.figures()["connections"] == 1 })
    }

    @Test func `a notice is the last frame, and the end of the stream follows`() throws {
      let server = try makeServer()
      let client = try open(server)
      try client.send(Request.ping(0))
      #expect(try client.receive().isNotice(.malformed))
      #expect(try client.isAtEnd())
    }

    @Test func `a server that stops answers what has arrived, and ends its connections with a notice`() throws {
      let server = try makeServer { $0.shutdownTimeout = .seconds(120) }
      let client = try open(server)
      let shaking = try TestClient(server.address)
      #expect(try client.isServed())
      try client.send((10..<60).flatMap { Request.put("key\($0)", [UInt8](repeating: 1, count: 2_000), id: $0) })
      let duration = Lock<Double?>(nil)
      let stopped = DispatchSemaphore(value: 0)
      DispatchQueue.global().async {
        let seconds = server.stop()
        duration.withLock { $0 = seconds }
        stopped.signal()
      }
      var ids: [UInt32] = []
      while true {
        let reply = try client.receive()
        if reply.isNotice(.shuttingDown) { break }
        ids.append(reply.id)
      }
      #expect(ids == Array(10..<UInt32(10 + ids.count)))
      #expect(try client.isAtEnd())
      // It does not wait for a client that has not completed its handshake.
      #expect(try shaking.isClosed())
      stopped.wait()
      #expect(try #require(duration.withLock { $0 }) < 60)
    }
  }
}
