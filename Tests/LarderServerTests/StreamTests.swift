import Testing
import Wire

extension ServerTests {
  /// The way in which a stream is split into writes has no effect.
  struct StreamTests {
    /// Requests of every operation on entries, which get the same replies every time on a new store.
    private static let script: [[UInt8]] = {
      let value = Array("value".utf8)
      return [
        Request.ping(10),
        Request.put("a", value, id: 11),
        Request.put("b", [], id: 12, ifAbsent: true),
        Request.put("b", value, id: 13, ifAbsent: true),
        Request.putMany([("c", [1]), ("d", [2]), ("ключ", [3])], id: 14),
        Request.get("a", id: 15),
        Request.get("absent", id: 16),
        Request.keys(.getMany, ["a", "x", "ключ", "a"], id: 17),
        Request.page(id: 18, offset: 1, limit: 2),
        Request.page(id: 19, limit: 9, after: "b", reverse: true, keysOnly: true),
        Request.all(id: 20, prefix: "к"),
        Request.make(.count, id: 21),
        Request.delete("a", id: 22, ifRevision: 1),
        Request.delete("a", id: 23),
        Request.keys(.deleteMany, ["b", "b", "x"], id: 24),
        Request.make(.storeList, store: 7, id: 25),
        Request.make(.getMany, id: 26, [1, 0, 0, 0, 9]),
        Request.make(.get, store: 99, id: 27, [0x61]),
        Request.credit(5, id: 28),
        Request.cancel(28),
        Request.make(.deleteAll, id: 29),
        Request.make(.storeClose, id: 30),
        Request.get("a", id: 31),
        Request.ping(32),
      ]
    }()

    /// Returns the replies to the script's requests when each request waits for its reply.
    private func expected(_ server: TestServer) throws -> [Reply] {
      let client = try connect(server, "whole")
      return try Self.script.filter { $0[4] != 2 && $0[4] != 3 }.map { try client.call($0) }
    }

    /// Returns a connection with a new store of the given name, which has handle 1.
    private func connect(_ server: TestServer, _ store: String) throws -> TestClient {
      let client = try server.connect()
      _ = try client.call(Request.make(.storeClose, id: 3))
      _ = try client.call(Request.create(store, id: 4))
      let opened = try client.call(Request.open(store, id: 5))
      try #require(opened.isDone && opened.body[..<2] == [1, 0])
      return client
    }

    private func drop(_ store: String, _ client: TestClient) throws {
      #expect(try client.call(Request.drop(store, id: 6)).isDone)
    }

    @Test(arguments: [false, true])
    func `all requests in one write get the same replies as one by one`(_ tcp: Bool) throws {
      let server = try TestServer(tcp: tcp)
      let expected = try expected(server)
      let client = try connect(server, "together")
      try client.send(Self.script.flatMap { $0 })
      for reply in expected { #expect(try client.receive() == reply) }
      #expect(try client.pings())
    }

    /// The reply to a ping on another connection of the same worker shows that the server has read the bytes before it.
    @Test func `every request split at every byte gets the same reply as in one piece`() throws {
      let server = try TestServer()
      let witness = try server.connect()
      let expected = try expected(server)
      let maxCount = Self.script.map(\.count).max()!
      for cut in 1..<maxCount {
        let client = try connect(server, "split")
        var replies: [Reply] = []
        for request in Self.script {
          let split = min(cut, request.count - 1)
          try client.send(Array(request[..<split]))
          #expect(try witness.pings())
          try client.send(Array(request[split...]))
          if request[4] != 2, request[4] != 3 { replies.append(try client.receive()) }
        }
        #expect(replies == expected, "cut at \(cut)")
        try drop("split", client)
      }
    }

    @Test(arguments: [1, 3, 11, 12, 13, 17, 100])
    func `a stream in pieces of any size gets the same replies`(_ size: Int) throws {
      let server = try TestServer()
      let expected = try expected(server)
      let client = try connect(server, "pieces")
      let stream = Self.script.flatMap { $0 }
      for start in stride(from: 0, to: stream.count, by: size) {
        try client.send(Array(stream[start..<min(start + size, stream.count)]))
      }
      for reply in expected { #expect(try client.receive() == reply) }
    }

    @Test func `requests after the hello in the same write get replies`() throws {
      let server = try TestServer()
      var buffer = ByteBuffer()
      buffer.appendRequest(ClientHello(credit: 1, name: ""), id: 1)
      let client = try TestClient(server.address)
      try client.send(
        buffer.toArray() + Request.open("test", id: 2) + Request.put("k", [1], id: 3) + Request.get("k", id: 4))
      for id: UInt32 in 1...4 {
        let reply = try client.receive()
        #expect(reply.isDone && reply.id == id)
      }
    }

    @Test func `a client that shuts down its sending side still gets every reply, and then the end`() throws {
      let server = try TestServer()
      for count in [1, 100, 5_000] {
        let client = try server.connect()
        try client.send(
          (1...UInt32(count)).flatMap { Request.put("k", [1, 2, 3], id: $0) } + Request.ping(9).dropLast())
        client.endSending()
        for id in 1...UInt32(count) { #expect(try client.receive().id == id) }
        #expect(try client.isClosed())
      }
    }

    @Test func `a client that shuts down its sending side gets its open reply streams to their end`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1 << 30)
      for index in 0..<40 {
        #expect(try client.call(Request.put("k\(index)", [UInt8](repeating: 7, count: 60_000), id: 9)).isDone)
      }
      try client.send(Request.all(id: 10))
      client.endSending()
      let frames = try client.receiveReplyStream(10)
      #expect(frames.flatMap(\.entries).count == 40)
      #expect(try client.isClosed())
    }

    @Test func `a large value is returned unchanged`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let maxValueSize = (16 << 20) - 8_192
      for size in [65_535, 65_536, 1 << 20, maxValueSize] {
        let value = [UInt8](repeating: 1, count: size / 2) + [UInt8](repeating: 2, count: size - size / 2)
        #expect(try client.call(Request.put("large", value, id: 5)).isDone)
        let reply = try client.call(Request.get("large", id: 6))
        #expect(reply.entries.first?.value == value)
      }
      let tooLarge = try client.call(Request.put("large", [UInt8](repeating: 0, count: maxValueSize + 1), id: 7))
      #expect(tooLarge.isError(.valueTooLarge, id: 7))
      #expect(try client.pings())
    }
  }
}
