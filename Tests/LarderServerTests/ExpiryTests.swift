import Glibc
import LarderServer
import Testing
import Wire

extension ServerTests {
  struct ExpiryTests {
    @Test func `an entry past its expiry is absent in every respect`() throws {
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
      #expect(many.entries.map(\.isThere) == [false, true])
      #expect(try client.call(Request.make(.count, id: 7)).number == 1)
      #expect(try client.call(Request.all(id: 8)).entries.map(\.text) == ["lasting"])
      #expect(try client.call(Request.delete("brief", id: 9)).number == 0)
      #expect(try client.call(Request.put("brief", [3], id: 10, ifRevision: 1)).isError(.conditionFailed, id: 10))
      #expect(try client.call(Request.put("brief", [3], id: 11, ifAbsent: true)).number == 3)
    }

    @Test func `delete-all and delete-many count no expired entries, and take no revision for them`() throws {
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

    @Test func `a write without an expiry takes an earlier one away`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("k", [1], id: 3, expiry: 30)).isDone)
      #expect(try client.call(Request.put("k", [2], id: 4)).isDone)
      usleep(50_000)
      let entry = try client.call(Request.get("k", id: 5)).entries[0]
      #expect(entry.expiry == 0 && entry.value == [2])
      #expect(try client.figures(store: 1)["expiring"] == 0)
    }

    @Test func `entries that expire while an answer goes on are left out of it`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1)
      try fill(client, 2)
      #expect(try client.call(Request.put("key2", [1], id: 3, expiry: 60)).isDone)
      try client.send(Request.all(id: 5) + Request.keys(.getMany, ["key0", "key1", "key2"], id: 6))
      #expect(try client.receive().more)
      #expect(try client.receive().more)
      usleep(80_000)
      try client.send(Request.credit(1 << 20, id: 5))
      #expect(try client.receiveAnswer(5).flatMap(\.entries).map(\.text) == ["key1"])
      try client.send(Request.credit(1 << 20, id: 6))
      #expect(try client.receiveAnswer(6).flatMap(\.entries).map(\.isThere) == [true, false])
    }

    /// Only the server's own figures are asked for, which touch no entry.
    @Test func `expired entries' memory comes back without anyone touching them`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let empty = try client.figures()["memory_bytes"]!
      for index in 0..<100 {
        let request = Request.put("key\(index)", [UInt8](repeating: 1, count: 100_000), id: 3, expiry: 200)
        #expect(try client.call(request).isDone)
      }
      #expect(try client.figures()["memory_bytes"]! > empty + 9_000_000)
      #expect(try eventually(within: 4) { try client.figures()["memory_bytes"]! < empty + 1_000_000 })
    }

    /// Sessions that are prolonged over and over: their first expiry comes, and they stay.
    @Test func `entries that were prolonged don't keep others from being given back`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let kept = (0..<20_000).map { (key: "kept\($0)", value: [UInt8(1)]) }
      #expect(try client.call(Request.putMany(kept, id: 3, expiry: 300)).isDone)
      #expect(try client.call(Request.putMany(kept, id: 4, expiry: 600_000)).isDone)
      let before = try client.figures()["memory_bytes"]!
      let gone = Request.put("gone", [UInt8](repeating: 1, count: 4_000_000), id: 5, expiry: 310)
      #expect(try client.call(gone).isDone)
      #expect(try eventually(within: 3.5) { try client.figures()["memory_bytes"]! < before + 1_000_000 })
      #expect(try client.call(Request.make(.count, id: 6)).number == 20_000)
    }
  }
}
