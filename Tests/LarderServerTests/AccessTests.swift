import Platform
import Storage
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// What clients of TCP get, who are whoever runs the tests. Those of Unix sockets are other users only under root: contrib/python/service.py.
  struct AccessTests {
    /// Every operation there is, on the store `test` under handle 1.
    private func request(_ operation: Operation) -> [UInt8] {
      switch operation {
      case .storeOpen: Request.open("test", id: 9)
      case .storeCreate: Request.create("test", id: 9)
      case .storeDrop: Request.make(.storeDrop, store: 0, id: 9, Array("test".utf8))
      case .put: Request.put("a", [1], id: 9)
      case .delete: Request.delete("a", id: 9)
      case .get: Request.get("a", id: 9)
      case .page: Request.page(id: 9, limit: 1)
      case .all: Request.all(id: 9)
      case .putMany: Request.putMany([], id: 9)
      case .getMany, .deleteMany: Request.keys(operation, ["a"], id: 9)
      case .count, .deleteAll, .storeClose: Request.make(operation, id: 9)
      case .watch: Request.watch(id: 9)
      case .connections: Request.make(.connections, store: 0, id: 9, [1, 0, 0, 0])
      case .hello, .credit, .cancel, .ping, .stats, .slowLog, .storeList: Request.make(operation, store: 0, id: 9)
      }
    }

    @Test(arguments: [Right.read, .write, .admin])
    func `each operation needs its right to the store`(right: Right) throws {
      for operation in Operation.allCases where operation != .credit && operation != .cancel {
        let rules = [AccessRule(.tcp, right, store: try StoreName("test"))]
        let server = try TestServer(tcp: true, rules: rules)
        let client = try server.connect()
        let reply = try client.call(request(operation))
        let isAllowed = operation.right <= right && ![.stats, .slowLog, .connections].contains(operation)
        #expect((reply.code == .notPermitted) == !isAllowed, "\(operation): \(reply)")
        if !isAllowed {
          #expect(reply.isError(.notPermitted, id: 9) && reply.message.hasPrefix("a TCP client may not "))
        }
        #expect(try client.pings())
      }
    }

    @Test func `what is not permitted is not done`() throws {
      let server = try TestServer(tcp: true, rules: [AccessRule(.tcp, .read)])
      let client = try server.connect()
      let writes = [Request.put("a", [1], id: 3), Request.putMany([("b", [1])], id: 4), Request.put("c", [1], id: 5)]
      try client.send(writes.flatMap { $0 } + Request.make(.count, id: 6))
      for id: UInt32 in 3...5 { #expect(try client.receive().isError(.notPermitted, id: id)) }
      #expect(try client.receive().number == 0)
      #expect(try client.figures()["stores"] == 1 && client.figures(store: 1)["revision"] == 0)
      #expect(
        try client.call(Request.make(.storeDrop, store: 0, id: 7, Array("test".utf8))).isError(.notPermitted, id: 7))
      #expect(try client.call(Request.get("a", id: 8)).isError(.notFound, id: 8))
    }

    @Test func `who may do nothing is told so in reply to the hello, and requests behind it are not executed`() throws {
      let told = Lock<[RefusalLog.Event]>([])
      let server = try TestServer(
        tcp: true, rules: [AccessRule(.unix, .admin)], tellRefusal: { event in told.withLock { $0.append(event) } })
      let client = try TestClient(server.address)
      var hello = ByteBuffer()
      hello.appendRequest(ClientHello(credit: 1, name: "test"), id: 7)
      try client.send(hello.toArray() + Request.create("new", id: 8))
      #expect(try client.receive().isError(.notPermitted, id: 7))
      #expect(try client.endsHere())
      let refusal = Refusal(
        peer: nil, client: "a TCP client", listener: Listener(address: server.address), action: "use this server")
      #expect(told.withLock { $0 } == [.refused(refusal)])
      #expect(server.server.closedListeners.map(\.address) == [server.address])
    }

    @Test func `new rules hold for open connections as soon as the change returns`() throws {
      let server = try TestServer(workers: 2, stores: ["test", "other"], tcp: true, rules: [AccessRule(.tcp, .write)])
      let clients = try (0..<8).map { _ in try server.connect(credit: 1) }
      for client in clients {
        #expect(try client.call(Request.put("a", [UInt8](repeating: 1, count: 70_000), id: 3)).isDone)
      }
      #expect(try clients[0].call(Request.put("b", [UInt8](repeating: 1, count: 70_000), id: 3)).isDone)
      for client in clients { #expect(try client.call(Request.all(id: 4)).more) }
      func change(_ rules: [AccessRule]) throws {
        try server.server.change(stores: [], limits: ServerLimits(), rules: rules)
      }
      let other = try StoreName("other")
      try change([AccessRule(.tcp, .read, store: other)])
      for client in clients {
        #expect(try client.receive().isError(.notPermitted, id: 4))
        #expect(try client.call(Request.get("a", id: 5)).isError(.notPermitted, id: 5))
        #expect(try client.call(Request.open("other", id: 6)).isDone)
      }
      // One that can't be put in force leaves the others.
      #expect(throws: AccessError.self) { try change([AccessRule(.tcp, .admin, listener: "nowhere")]) }
      #expect(try clients[0].call(Request.get("a", id: 7)).isError(.notPermitted, id: 7))
      try change([])
      for client in clients { #expect(try client.call(Request.put("a", [2], id: 8)).isDone) }
      try change([AccessRule(.unix, .read)])
      for client in clients {
        #expect(try client.receive().isNotice(.notPermitted))
        #expect(try client.endsHere())
      }
    }
  }
}
