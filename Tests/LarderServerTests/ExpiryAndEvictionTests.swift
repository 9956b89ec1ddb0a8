import Glibc
import LarderServer
import Platform
import Storage
import Testing
import Wire

extension ServerTests {
  struct ExpiryTests {
    @Test func `an expired entry is absent in every respect`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("brief", [1], id: 3, expiry: 40)).isDone)
      #expect(try client.call(Request.put("lasting", [2], id: 4, expiry: 60_000)).isDone)
      let left = try client.call(Request.get("lasting", id: 5)).entries[0].expiry
      #expect((50_000...60_000).contains(left))
      #expect((1...40).contains(try client.call(Request.get("brief", id: 5)).entries[0].expiry))
      usleep(60_000)
      #expect(try client.call(Request.get("brief", id: 5)).isError(.notFound, id: 5))
      #expect(try client.figures(store: 1)["entries"] == 1)
      #expect(try client.figures(store: 1)["revision"] == 2)
      let many = try client.call(Request.keys(.getMany, ["brief", "lasting"], id: 6))
      #expect(many.entries.map(\.isPresent) == [false, true])
      #expect(try client.call(Request.make(.count, id: 7)).number == 1)
      #expect(try client.call(Request.all(id: 8)).entries.map(\.text) == ["lasting"])
      #expect(try client.call(Request.delete("brief", id: 9)).number == 0)
      #expect(try client.call(Request.put("brief", [3], id: 10, ifRevision: 1)).isError(.conditionFailed, id: 10))
      #expect(try client.call(Request.put("brief", [3], id: 11, ifAbsent: true)).number == 3)
    }

    @Test func `delete-all and delete-many do not count expired entries, and use no revision for them`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let brief = (0..<5).map { (key: "brief\($0)", value: [UInt8(1)]) }
      #expect(try client.call(Request.putMany(brief, id: 3, expiry: 20)).number == 1)
      #expect(try client.call(Request.put("lasting", [1], id: 4)).number == 2)
      usleep(40_000)
      #expect(try client.call(Request.keys(.deleteMany, ["brief0", "brief1"], id: 5)).number == 0)
      #expect(try client.call(Request.make(.deleteAll, id: 6)).number == 1)
      #expect(try client.figures(store: 1)["revision"] == 3)
      #expect(try client.call(Request.putMany(brief, id: 7, expiry: 20)).number == 4)
      usleep(40_000)
      #expect(try client.call(Request.make(.deleteAll, id: 8)).number == 0)
      #expect(try client.figures(store: 1)["revision"] == 4)
    }

    @Test func `a write without an expiry removes an earlier one`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("k", [1], id: 3, expiry: 30)).isDone)
      #expect(try client.call(Request.put("k", [2], id: 4)).isDone)
      usleep(50_000)
      let entry = try client.call(Request.get("k", id: 5)).entries[0]
      #expect(entry.expiry == 0 && entry.value == [2])
      #expect(try client.figures(store: 1)["expiring"] == 0)
    }

    @Test func `entries that expire during a reply stream are omitted from it`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1)
      try putEntries(client, 2)
      #expect(try client.call(Request.put("key2", [1], id: 3, expiry: 60)).isDone)
      try client.send(Request.all(id: 5) + Request.keys(.getMany, ["key0", "key1", "key2"], id: 6))
      #expect(try client.receive().more)
      #expect(try client.receive().more)
      usleep(80_000)
      try client.send(Request.credit(1 << 20, id: 5))
      #expect(try client.receiveReplyStream(5).flatMap(\.entries).map(\.text) == ["key1"])
      try client.send(Request.credit(1 << 20, id: 6))
      #expect(try client.receiveReplyStream(6).flatMap(\.entries).map(\.isPresent) == [true, false])
    }

    /// The test requests only the server's figures, which access no entry.
    @Test func `the memory of expired entries is freed without any access to them`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let empty = try client.figures()["memory_bytes"]!
      for index in 0..<100 {
        let request = Request.put("key\(index)", [UInt8](repeating: 1, count: 100_000), id: 3, expiry: 200)
        #expect(try client.call(request).isDone)
      }
      #expect(try client.figures()["memory_bytes"]! > empty + 9_000_000)
      #expect(try eventually { try client.figures()["memory_bytes"]! < empty + 1_000_000 })
    }

    @Test func `an entry that expires while a batch is executed is absent for the rest of it`() throws {
      let server = try TestServer()
      let client = try server.connect()
      // The statistics take much longer than the entry lives.
      let statistics = (10..<2_000).flatMap { Request.make(.stats, id: $0) }
      try client.send(Request.put("brief", [1], id: 3, expiry: 1) + statistics + Request.get("brief", id: 4))
      #expect(try client.receive().number == 1)
      for id in 10..<2_000 as Range<UInt32> { #expect(try client.receive().id == id) }
      #expect(try client.receive().isError(.notFound, id: 4))
    }

    /// A later expiry is planned already when the test writes entries with sooner ones.
    @Test func `the memory of an expired entry is freed soon after its end`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("lasting", [1], id: 3, expiry: 60_000)).isDone)
      let before = try client.figures()["memory_bytes"]!
      for _ in 0..<3 {
        let request = Request.put("brief", [UInt8](repeating: 1, count: 1_000_000), id: 3, expiry: 30)
        #expect(try client.call(request).isDone)
        #expect(try client.figures()["memory_bytes"]! > before + 900_000)
        #expect(try eventually(within: 30) { try client.figures()["memory_bytes"]! < before + 100_000 })
      }
    }

    @Test func `requests that count are right while many entries expire, and keep their order`() throws {
      let server = try TestServer()
      let (client, other) = (try server.connect(), try server.connect())
      #expect(try client.call(Request.putMany((0..<10).map { ("a\($0)", [1]) }, id: 3)).isDone)
      #expect(try client.call(Request.put("other", [1], id: 3)).isDone)
      let brief = (0..<60_000).map { (key: "b\($0)", value: [UInt8(1)]) }
      #expect(try client.call(Request.putMany(brief, id: 3, expiry: 300)).isDone)
      let end = monotonicMilliseconds() + 300
      while monotonicMilliseconds() <= end { #expect(try other.pings()) }
      try client.send(
        Request.make(.count, id: 10) + Request.page(id: 11, offset: 8, limit: 100) + Request.put("c", [1], id: 12)
          + Request.find(id: 13, countOnly: true) + Request.make(.count, id: 14, Array("b".utf8))
          + Request.make(.deleteAll, id: 15) + Request.make(.count, id: 16))
      #expect(try other.call(Request.get("b77", id: 4)).isError(.notFound, id: 4))
      #expect(try other.pings())
      var replies: [Reply] = []
      for _ in 10...16 { replies.append(try client.receive()) }
      let found = try #require(replies.first { $0.id == 13 })
      replies.removeAll { $0.id == 13 }
      #expect(found.isDone)
      #expect(replies.map(\.id) == [10, 11, 12, 14, 15, 16])
      #expect(replies[0].number == 11)
      #expect(replies[1].entries.map(\.text) == ["a8", "a9", "other"])
      #expect(replies[3].number == 0 && replies[4].number == 12 && replies[5].number == 0)
      #expect(try client.pings())
    }

    /// Sessions are extended repeatedly: they stay after their first expiry passes.
    @Test func `entries whose expiry was extended do not delay freeing others`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let kept = (0..<20_000).map { (key: "kept\($0)", value: [UInt8(1)]) }
      #expect(try client.call(Request.putMany(kept, id: 3, expiry: 300)).isDone)
      #expect(try client.call(Request.putMany(kept, id: 4, expiry: 600_000)).isDone)
      let before = try client.figures()["memory_bytes"]!
      let gone = Request.put("gone", [UInt8](repeating: 1, count: 4_000_000), id: 5, expiry: 310)
      #expect(try client.call(gone).isDone)
      #expect(try eventually(within: 30) { try client.figures()["memory_bytes"]! < before + 1_000_000 })
      #expect(try client.call(Request.make(.count, id: 6)).number == 20_000)
    }
  }
}

extension ServerTests {
  /// Eviction from stores with a limit: `Protocol/wire.md` §6.6.
  struct EvictionTests {
    private func withLimitedStore(_ body: (TestClient, TestServer) throws -> Void) throws {
      let server = try TestServer(stores: [])
      let client = try TestClient(server.address)
      try client.handshake()
      #expect(try client.call(Request.create("test", engine: "memory?limit=1MiB", id: 2)).isDone)
      try body(try server.connect(), server)
    }

    @Test func `a store stays within its limit, and counts what it has evicted`() throws {
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

    @Test func `a store without a limit has no figures about one`() throws {
      let server = try TestServer()
      let figures = try server.connect().figures(store: 1)
      #expect(figures["entries"] == 0 && figures["limit_bytes"] == nil && figures["evicted_total"] == nil)
    }

    @Test func `a write that can never fit is refused with the limit in its message, and evicts nothing`() throws {
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

    @Test func `a watch reports the entries that a write evicts, with its revision`() throws {
      try withLimitedStore { client, server in
        let value = [UInt8](repeating: 1, count: 200_000)
        for number in 0..<4 { #expect(try client.call(Request.put("\(number)", value, id: 3)).isDone) }
        // A get spares the entry.
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
