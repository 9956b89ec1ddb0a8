import LarderServer
import Storage
import Testing
import Wire

extension ServerTests {
  /// Stores with a limit, over a socket.
  struct EvictionTests {
    private func withLimitedStore(_ body: (TestClient, TestServer) throws -> Void) throws {
      let server = try TestServer(stores: [])
      let client = try TestClient(server.address)
      try client.greet()
      #expect(try client.call(Request.create("test", engine: "memory?limit=1MiB", id: 2)).isDone)
      try body(try server.connect(), server)
    }

    @Test func `a store stays below its limit, and says how much it has evicted`() throws {
      try withLimitedStore { client, _ in
        for number in 0..<10_000 {
          #expect(try client.call(Request.put("\(number)", .init(repeating: 1, count: 200), id: 3)).isDone)
        }
        let figures = try client.figures(store: 1)
        #expect(figures["limit_bytes"] == 1 << 20)
        #expect(figures["limited_bytes", default: 0] > 1_000_000)
        #expect(figures["limited_bytes", default: .max] <= 1 << 20)
        #expect(figures["evicted_total", default: 0] + figures["entries", default: 0] == 10_000)
        #expect(figures["entries", default: 0] > 3_000)
        #expect(try client.call(Request.get("0", id: 3)).code == .notFound)
        #expect(try client.call(Request.get("9999", id: 3)).isDone)
      }
    }

    @Test func `a store without a limit has no figures of one`() throws {
      let server = try TestServer()
      let figures = try server.connect().figures(store: 1)
      #expect(figures["entries"] == 0 && figures["limit_bytes"] == nil && figures["evicted_total"] == nil)
    }

    @Test func `a write that never fits is refused with the limit, and evicts nothing`() throws {
      try withLimitedStore { client, _ in
        let value = [UInt8](repeating: 1, count: 200_000)
        for number in 0..<4 { #expect(try client.call(Request.put("\(number)", value, id: 3)).isDone) }
        let many = (0..<6).map { (key: "many \($0)", value: value) }
        for request in [Request.put("0", .init(repeating: 1, count: 1 << 20), id: 3), Request.putMany(many, id: 3)] {
          let refused = try client.call(request)
          #expect(refused.code == .valueTooLarge && refused.outcome == .rejected)
          #expect(refused.message.contains("limit of 1MiB"))
        }
        #expect(try client.call(Request.put("0", value, id: 3, ifAbsent: true)).code == .conditionFailed)
        let figures = try client.figures(store: 1)
        #expect(figures["entries"] == 4 && figures["evicted_total"] == 0 && figures["revision"] == 4)
      }
    }

    @Test func `a watch is told of what a write has evicted, with its revision`() throws {
      try withLimitedStore { client, server in
        let value = [UInt8](repeating: 1, count: 200_000)
        for number in 0..<4 { #expect(try client.call(Request.put("\(number)", value, id: 3)).isDone) }
        // Read, and spared for it.
        #expect(try client.call(Request.get("0", id: 3)).isDone)
        let watcher = try server.connect()
        #expect(try watcher.call(Request.watch(id: 50, keysOnly: true)).isDone)
        let many = ["a", "b", "c"].map { (key: $0, value: value) }
        #expect(try client.call(Request.putMany(many, id: 3)).number == 5)
        var seen: [TestChange] = []
        while seen.count < 5 { seen += try watcher.receive().changes }
        #expect(seen.allSatisfy { $0.revision == 5 })
        #expect(seen.filter { $0.kind == .single }.map(\.key) == ["a", "b", "c"])
        #expect(seen.filter { $0.kind == .deleted }.map(\.key).sorted() == ["1", "2"])
      }
    }
  }
}
