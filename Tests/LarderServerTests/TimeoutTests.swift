import Glibc
import LarderServer
import Testing
import Wire

extension ServerTests {
  struct TimeoutTests {
    @Test func `a client that sends no hello gets the notice in time`() throws {
      let server = try TestServer { $0.helloTimeout = .milliseconds(150) }
      let silent = try TestClient(server.address)
      let duration = try seconds { () throws in #expect(try silent.receive().isNotice(.timedOut)) }
      #expect(duration >= 0.1)
      #expect(try silent.isClosed())
    }

    @Test func `a hello that arrives byte by byte must be complete in time`() throws {
      let server = try TestServer { $0.helloTimeout = .milliseconds(200) }
      let client = try TestClient(server.address)
      var buffer = ByteBuffer()
      buffer.appendRequest(ClientHello(credit: 1, name: "slow"), id: 1)
      for byte in buffer.toArray() {
        guard (try? client.send([byte])) != nil else { break }
        usleep(20_000)
      }
      #expect(try client.receive().isNotice(.timedOut))
      #expect(try client.isClosed())
    }

    @Test func `a frame that stalls times out, and one that trickles does not`() throws {
      let server = try TestServer { $0.frameTimeout = .milliseconds(250) }
      let stalled = try server.connect()
      let trickling = try server.connect()
      let request = Request.put("key", [1, 2, 3, 4, 5], id: 7)
      try stalled.send(Array(request[..<9]))
      for byte in request {
        try trickling.send([byte])
        usleep(30_000)
      }
      #expect(try trickling.receive().id == 7)
      #expect(try stalled.receive().isNotice(.timedOut))
      #expect(try stalled.isClosed())
      #expect(try trickling.pings())
    }

    @Test func `a frame that trickles must be complete in time`() throws {
      let server = try TestServer { $0.frameTime = .milliseconds(400) }
      let client = try server.connect()
      let request = Request.put("key", [1, 2, 3, 4, 5], id: 7)
      // Frames that are complete in time don't add up.
      for _ in 0..<4 {
        for byte in request {
          try client.send([byte])
          usleep(5_000)
        }
        #expect(try client.receive().id == 7)
      }
      try client.send(Array(request[..<9]))
      for byte in request[9...] {
        usleep(60_000)
        guard (try? client.send([byte])) != nil else { break }
      }
      let notice = try client.receive()
      #expect(notice.isNotice(.timedOut) && notice.message.contains("limits.frame-time"), "\(notice)")
      #expect(try client.isClosed())
      #expect(try server.connect().figures(store: 1)["written_total"] == 4)
    }

    @Test func `an idle connection is closed, and one with an open reply stream is not`() throws {
      let server = try TestServer {
        $0.idleTimeout = .milliseconds(300)
        $0.helloTimeout = .milliseconds(100)
      }
      let idle = try server.connect()
      let busy = try server.connect()
      let reader = try server.connect(credit: 1)
      try putEntries(reader, 3)
      try reader.send(Request.all(id: 5))
      #expect(try reader.receive().more)
      for _ in 0..<10 {
        usleep(60_000)
        #expect(try busy.pings())
      }
      #expect(try idle.receive(within: 1).isNotice(.timedOut))
      #expect(try idle.isClosed())
      #expect(reader.isSilent(for: 0.1))
      // Its idle timeout starts when its reply stream ends.
      try reader.send(Request.cancel(5))
      #expect(try reader.receive().isError(.cancelled, id: 5))
      for _ in 0..<4 {
        usleep(30_000)
        #expect(try busy.pings())
      }
      #expect(try reader.pings())
    }

    /// The server does not read from a client whose replies are unread, so a frame that the client cannot finish has
    /// not stalled.
    @Test func `a frame does not stall while the server itself does not read`() throws {
      let server = try TestServer {
        $0.frameTimeout = .milliseconds(200)
        $0.maxOutputBytes = 1 << 16
        $0.helloTimeout = .milliseconds(50)
      }
      let client = try server.connect()
      _ = try client.call(Request.put("k", [UInt8](repeating: 1, count: 1 << 20), id: 3))
      let last = Request.ping(99)
      try client.send(Request.get("k", id: 4) + Request.get("k", id: 5) + last[..<6])
      usleep(500_000)
      // Silent connections make the server check its timers often.
      let silent = try (0..<20).map { _ in
        usleep(5_000)
        return try TestClient(server.address)
      }
      #expect(try client.receive().id == 4)
      #expect(try client.receive().id == 5)
      usleep(60_000)
      try client.send(Array(last[6...]))
      let reply = try client.receive()
      #expect(reply.isDone && reply.id == 99, "\(reply)")
      #expect(silent.count == 20)
    }

    @Test func `a client that does not read its replies is dropped without a notice, and others are served meanwhile`()
      throws
    {
      let server = try TestServer {
        $0.writeTimeout = .milliseconds(600)
        $0.maxOutputBytes = 1 << 17
      }
      let other = try server.connect()
      let client = try server.connect()
      try putEntries(client, 1, size: 60_000)
      // More than the socket and the server's output can hold.
      let requests = (1...200).flatMap { Request.get("key0", id: UInt32($0)) }
      try client.send(requests)
      var maxOutput: UInt64 = 0
      var pings = 0
      let isDropped = try eventually {
        #expect(try other.pings())
        pings += 1
        let figures = try other.figures()
        maxOutput = max(maxOutput, figures["output_bytes"]!)
        return figures["connections"] == 1
      }
      #expect(isDropped)
      #expect(maxOutput > 0)
      // One reply may exceed the limit.
      #expect(maxOutput <= (1 << 17) + 60_100)
      #expect(pings >= 5)
      #expect(try other.figures()["output_bytes"] == 0)
      var received = 0
      while (try? client.receive(within: 1)) != nil { received += 1 }
      #expect(received < 200)
    }

    @Test func `a client that reads slowly is not dropped`() throws {
      let server = try TestServer { $0.writeTimeout = .milliseconds(300) }
      let client = try server.connect()
      try putEntries(client, 1, size: 60_000)
      try client.send((1...30).flatMap { Request.get("key0", id: UInt32($0)) })
      for id in 1...30 {
        usleep(20_000)
        #expect(try client.receive().id == UInt32(id))
      }
      #expect(try client.pings())
    }

    @Test func `after a notice, the server waits at most a second for the client to close`() throws {
      let server = try TestServer()
      let witness = try server.connect()
      let client = try server.connect()
      try client.send(Request.ping(0))
      #expect(try client.receive().isNotice(.malformed))
      #expect(try client.isClosed())
      // Requests sent after the notice are discarded.
      _ = try? client.send(Request.put("k", [1], id: 5))
      #expect(try witness.call(Request.get("k", id: 6)).isError(.notFound, id: 6))
      #expect(try witness.figures()["connections"] == 2)
      #expect(try eventually { try witness.figures()["connections"] == 1 })
    }
  }
}
