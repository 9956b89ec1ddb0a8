import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Requests on entries: `Protocol/wire.md` §4 and §6.4.
  struct EntryTests {
    @Test func `every request that changes a store increments its revision by one, and no other request does`() throws {
      let server = try TestServer()
      let client = try server.connect()
      var revision: UInt64 = 0
      func changes(_ request: [UInt8], by increment: UInt64, _ line: SourceLocation = #_sourceLocation) throws {
        _ = try client.call(request)
        revision += increment
        #expect(try client.figures(store: 1)["revision"] == revision, sourceLocation: line)
      }
      try changes(Request.put("a", [1], id: 3), by: 1)
      try changes(Request.put("a", [1], id: 3), by: 1)
      try changes(Request.putMany([("b", [1]), ("c", [1]), ("d", [1]), ("e", [1])], id: 3), by: 1)
      try changes(Request.putMany([], id: 3), by: 0)
      try changes(Request.putMany([("a", [1]), ("", [1])], id: 3), by: 0)
      try changes(Request.put("a", [1], id: 3, ifAbsent: true), by: 0)
      try changes(Request.get("a", id: 3), by: 0)
      try changes(Request.delete("x", id: 3), by: 0)
      try changes(Request.delete("a", id: 3, ifRevision: 99), by: 0)
      try changes(Request.delete("a", id: 3), by: 1)
      try changes(Request.keys(.deleteMany, ["x", "y"], id: 3), by: 0)
      try changes(Request.keys(.deleteMany, ["b", "c", "b", "x", "d"], id: 3), by: 1)
      try changes(Request.make(.deleteAll, id: 3), by: 1)
      try changes(Request.make(.deleteAll, id: 3), by: 0)
      try changes(Request.put("a", [1], id: 3), by: 1)
    }

    @Test func `a put-many is atomic, and its conditions see the store as it was before`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("a", [1], id: 3)).number == 1)
      let failing = [Request.write("b", [2]), Request.write("a", [2], ifAbsent: true), Request.write("c", [2])]
      #expect(try client.call(Request.putMany(records: failing, id: 4)).isError(.conditionFailed, id: 4))
      #expect(try client.call(Request.make(.count, id: 5)).number == 1)
      // Both conditions see that b is absent; the later write takes effect.
      let twice = [
        Request.write("b", [2], ifAbsent: true), Request.write("b", [3], ifAbsent: true),
        Request.write("a", [4], ifRevision: 1),
      ]
      #expect(try client.call(Request.putMany(records: twice, id: 6)).number == 2)
      let entries = try client.call(Request.all(id: 7)).entries
      #expect(entries.map(\.value) == [[4], [3]] && entries.map(\.revision) == [2, 2])
      #expect(try client.call(Request.keys(.deleteMany, ["a", "a", "b"], id: 8)).number == 2)
    }

    @Test func `a refused write changes nothing`() throws {
      let server = try TestServer()
      let client = try server.connect()
      var list = ByteBuffer()
      unsafe list.appendWrite(
        kind: .list, key: Array("l".utf8).span.bytes, value: ListValue.encode([[1], [], [2, 3]]).span.bytes)
      #expect(try client.call(Request.make(.put, id: 3, list.toArray())).number == 1)
      #expect(try client.call(Request.make(.put, id: 4, list.toArray().dropLast() + [])).code == .malformed)
      for expiry: UInt64 in [(1 << 53) + 1, .max] {
        #expect(try client.call(Request.put("k", [], id: 5, expiry: expiry)).isError(.illegalArgument, id: 5))
      }
      #expect(try client.call(Request.put("k", [], id: 6, expiry: 1 << 53)).number == 2)
      let left = try client.call(Request.get("k", id: 7)).entries[0].expiry
      #expect(((1 << 53) - 10_000...(1 << 53)).contains(left))
      #expect(try client.call(Request.make(.count, id: 8)).number == 2)
    }

    @Test func `pages match those of a sorted array`() throws {
      let server = try TestServer()
      let client = try server.connect()
      var random = SeededGenerator(seed: UInt64.random(in: 1...999_999))
      let start = random
      let alphabet = ["a", "b", "é", "鍵", "\u{0}", "/"]
      var keys: Set<String> = []
      for _ in 0..<200 {
        let key = (0..<Int.random(in: 1...4, using: &random)).map { _ in alphabet.randomElement(using: &random)! }
        keys.insert(key.joined())
      }
      let sorted = keys.sorted { Array($0.utf8).lexicographicallyPrecedes(Array($1.utf8)) }
      #expect(try client.call(Request.putMany(keys.map { ($0, [1]) }, id: 3)).isDone)
      for _ in 0..<400 {
        let prefix = Bool.random(using: &random) ? "" : alphabet.randomElement(using: &random)!
        let after =
          Bool.random(using: &random)
          ? nil : sorted.randomElement(using: &random)! + (Bool.random(using: &random) ? "" : "a")
        let reverse = Bool.random(using: &random)
        let offset = [0, 1, 7, 1_000, UInt64.max].randomElement(using: &random)!
        let limit = [0, 1, 10, UInt32.max].randomElement(using: &random)!
        var expected = sorted.filter { key in
          guard key.utf8.starts(with: prefix.utf8) else { return false }
          guard let after else { return true }
          let (left, right) = (Array(key.utf8), Array(after.utf8))
          return reverse ? left.lexicographicallyPrecedes(right) : right.lexicographicallyPrecedes(left)
        }
        if reverse { expected.reverse() }
        expected = Array(expected.dropFirst(Int(clamping: offset)).prefix(Int(limit)))
        let request = Request.page(
          id: 4, offset: offset, limit: limit, prefix: prefix, after: after, reverse: reverse, keysOnly: true)
        let found = try client.call(request).entries
        #expect(found.map(\.key) == expected.map { Array($0.utf8) }, "seed \(start)")
        #expect(
          try client.call(Request.make(.count, id: 5, Array(prefix.utf8))).number
            == UInt64(sorted.count { $0.utf8.starts(with: prefix.utf8) }))
      }
      let all = try client.call(Request.all(id: 6, after: "", reverse: true))
      #expect(all.isDone && all.entries.isEmpty)
      #expect(try client.call(Request.all(id: 7, after: "")).entries.count == sorted.count)
    }

    @Test func `stores are created, listed, opened, closed and dropped by any connection`() throws {
      let server = try TestServer(workers: 2)
      let client = try server.connect()
      let other = try server.connect()
      #expect(try client.call(Request.create("b.1", id: 3)).isDone)
      #expect(try client.call(Request.create("b.1", id: 4)).isError(.storeExists, id: 4))
      #expect(try client.call(Request.create("-", id: 4)).isError(.illegalArgument, id: 4))
      #expect(try client.call(Request.create("x", engine: "tape", id: 4)).isError(.illegalArgument, id: 4))
      #expect(try other.call(Request.open("b.1", id: 5)).body == [2, 0] + "memory".utf8)
      #expect(try other.call(Request.put("k", [1], id: 6, store: 2)).number == 1)
      let list = try client.call(Request.make(.storeList, store: 0, id: 7))
      #expect(
        unsafe ListedStore.decode(list.body.span.bytes) == [
          ListedStore(name: "b.1", specification: "memory", entries: 1),
          ListedStore(name: "test", specification: "memory", entries: 0),
        ])
      #expect(try other.figures()["stores"] == 2)
      #expect(try client.call(Request.drop("b.1", id: 8)).isDone)
      #expect(try client.call(Request.drop("b.1", id: 9)).isError(.storeUnknown, id: 9))
      #expect(try other.call(Request.make(.count, store: 2, id: 10)).isError(.storeUnknown, id: 10))
      #expect(try client.call(Request.open("b.1", id: 11)).isError(.storeUnknown, id: 11))
    }
  }
}
