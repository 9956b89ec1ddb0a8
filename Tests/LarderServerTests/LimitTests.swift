import Glibc
import LarderServer
import Testing
import Wire

extension ServerTests {
  struct LimitTests {
    @Test func `one connection too many is told so and closed, and taken when another has gone`() throws {
      let server = try TestServer { $0.connections = 3 }
      let first = try server.connect()
      var second: TestClient? = try server.connect()
      let third = try server.connect()
      for _ in 0..<5 {
        let refused = try TestClient(server.address)
        #expect(try refused.receive().isNotice(.tooManyConnections))
        #expect(try refused.endsHere())
      }
      #expect(try first.pings() && third.pings() && second!.pings())
      second = nil
      #expect(try eventually { try first.figures()["connections"] == 2 })
      #expect(try server.connect().pings())
      #expect(try first.figures()["connections_accepted_total"] == 9)
    }

    @Test func `a reply of the hello says the limits`() throws {
      let server = try TestServer {
        $0.maxFrameBytes = 1 << 20
        $0.openStores = 3
        $0.requestsInFlight = 5
        $0.keysInRequest = 7
      }
      let hello = try TestClient(server.address).greet()
      #expect(
        hello
          == ServerHello(
            maxFrameSize: 1 << 20, maxValueSize: (1 << 20) - 8_192, maxKeySize: 4_096, maxOpenStores: 3,
            maxRequestsInFlight: 5, maxKeyCount: 7, name: Server.name))
    }

    @Test func `more answers than the limit are refused until one has ended`() throws {
      let server = try TestServer { $0.requestsInFlight = 3 }
      let client = try server.connect(credit: 1)
      try fill(client, 3)
      for id: UInt32 in 1...3 { #expect(try client.call(Request.all(id: id)).more) }
      #expect(try client.call(Request.all(id: 4)).isError(.tooManyRequests, id: 4))
      #expect(try client.call(Request.keys(.getMany, ["key0", "key1"], id: 5)).isError(.tooManyRequests, id: 5))
      #expect(try client.pings())
      try client.send(Request.cancel(2))
      #expect(try client.receive().isError(.cancelled, id: 2))
      #expect(try client.call(Request.all(id: 4)).more)
    }

    @Test func `too many stores, of the server and on a connection`() throws {
      let server = try TestServer {
        $0.stores = 3
        $0.openStores = 2
      }
      let client = try server.connect()
      #expect(try client.call(Request.create("second", id: 3)).isDone)
      #expect(try client.call(Request.create("third", id: 4)).isDone)
      #expect(try client.call(Request.create("fourth", id: 5)).isError(.tooManyStores, id: 5))
      #expect(try client.call(Request.open("second", id: 6)).body[..<2] == [2, 0])
      #expect(try client.call(Request.open("third", id: 7)).isError(.tooManyStores, id: 7))
      #expect(try client.call(Request.open("second", id: 8)).body[..<2] == [2, 0])
      #expect(try client.call(Request.make(.storeClose, store: 1, id: 9)).isDone)
      #expect(try client.call(Request.open("third", id: 10)).body[..<2] == [1, 0])
    }

    @Test func `more keys than the limit are refused before they are looked at`() throws {
      let server = try TestServer { $0.keysInRequest = 2 }
      let client = try server.connect()
      for operation in [Operation.getMany, .deleteMany, .putMany] {
        let refused = try client.call(Request.make(operation, id: 3, [3, 0, 0, 0, 0xFF, 0xFF, 0xFF]))
        #expect(refused.isError(.illegalArgument, id: 3))
        let huge = try client.call(Request.make(operation, id: 4, [0xFF, 0xFF, 0xFF, 0xFF]))
        #expect(huge.isError(.illegalArgument, id: 4))
      }
      #expect(try client.call(Request.putMany([("a", []), ("b", [])], id: 5)).number == 1)
      #expect(try client.call(Request.keys(.getMany, ["a", "b"], id: 6)).entries.count == 2)
    }

    /// A name may fill a whole frame; the error must not repeat it.
    @Test func `no reply is larger than the largest frame, however long a bad name is`() throws {
      let largest = 1 << 16
      let server = try TestServer { $0.maxFrameBytes = largest }
      let client = try server.connect()
      let name = [UInt8](repeating: 0xFF, count: largest - 8)
      for operation in [Operation.storeOpen, .storeDrop] {
        let reply = try client.call(Request.make(operation, store: 0, id: 3, name))
        #expect(reply.isError(.illegalArgument, id: 3))
        #expect(reply.size - 4 <= largest)
      }
      let reply = try client.call(Request.make(.storeCreate, store: 0, id: 4, [1, 0x61] + name.dropLast(2)))
      #expect(reply.isError(.illegalArgument, id: 4))
      #expect(reply.size - 4 <= largest)
      #expect(try client.pings())
    }

    @Test func `no frame of an answer is larger than the largest frame`() throws {
      let largest = 1 << 16
      let server = try TestServer { $0.maxFrameBytes = largest }
      let client = try server.connect(credit: 1 << 30)
      // 32 records of 2,048 bytes fill the 65,536 bytes that a body may have.
      for index in 0..<64 {
        let key = "key\(100 + index)"
        let size = 2_048 - 16 - key.utf8.count
        #expect(try client.call(Request.put(key, [UInt8](repeating: 1, count: size), id: 3)).isDone)
      }
      try client.send(Request.all(id: 4))
      let frames = try client.receiveAnswer(4)
      #expect(frames.flatMap(\.entries).count == 64)
      for frame in frames { #expect(frame.size - 4 <= largest) }
    }

    @Test func `when all output together is too much, the longest stalled are dropped`() throws {
      let server = try TestServer {
        $0.totalOutputBytes = 3 << 20
        $0.outputBytes = 1 << 20
        $0.maxFrameBytes = 2 << 20
      }
      let witness = try server.connect()
      try fill(witness, 1, size: 1 << 20)
      let stalled = try (0..<6).map { _ in
        let client = try server.connect()
        try client.send(Request.get("key0", id: 3))
        usleep(20_000)
        return client
      }
      #expect(try eventually { try witness.figures()["output_bytes"]! <= 3 << 20 })
      #expect(try witness.figures()["output_bytes"]! > 1 << 20)
      // The first to stall went first; the last of them still gets its answer.
      #expect(throws: TestClient.Failure.ended(inFrame: true)) { try stalled[0].receive() }
      #expect(try stalled[5].receive().entries.count == 1)
      #expect(try witness.pings())
    }

    /// What a socket takes by itself is some 200 KiB; the rest waits in the server.
    @Test func `as many stalled clients are dropped as it takes`() throws {
      let server = try TestServer {
        $0.totalOutputBytes = 2 << 20
        $0.outputBytes = 1 << 16
        $0.maxFrameBytes = 1 << 20
      }
      let witness = try server.connect()
      try fill(witness, 1, size: 260_000)
      let small = try (0..<30).map { _ in
        let client = try server.connect()
        try client.send(Request.get("key0", id: 3))
        return client
      }
      #expect(try witness.call(Request.put("key0", [UInt8](repeating: 1, count: 900_000), id: 4)).isDone)
      let large = try (0..<2).map { _ in try server.connect() }
      for client in large { try client.send(Request.get("key0", id: 5)) }
      #expect(try witness.pings())
      #expect(try witness.figures()["output_bytes"]! <= 2 << 20)
      #expect(try witness.figures()["connections"]! < 33)
      for client in large { #expect(try client.receive().entries[0].value.count == 900_000) }
      #expect(throws: TestClient.Failure.ended(inFrame: true)) { try small[0].receive() }
    }

    @Test func `clients that stall one worker don't cost another worker's clients their connection`() throws {
      let server = try TestServer(workers: 2) {
        $0.totalOutputBytes = 8 << 20
        $0.outputBytes = 1 << 16
        $0.maxFrameBytes = 3_500_000
      }
      // Connections go to the workers in turn: the even ones to the first, the odd ones to the second.
      let clients = try (0..<8).map { _ in try server.connect(credit: 1 << 20) }
      try fill(clients[0], 1, size: 3 << 20)
      for index in [2, 4, 6] { try clients[index].send(Request.get("key0", id: 3)) }
      usleep(100_000)
      for _ in 0..<3 {
        for index in [1, 3, 5] {
          #expect(try clients[index].call(Request.get("key0", id: 4)).entries.first?.value.count == 3 << 20)
        }
      }
      #expect(try clients[7].pings())
    }
  }
}
