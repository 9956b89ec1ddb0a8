import Documents
import Foundation
import LarderServer
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Finds by indexes while entries expire, are evicted, and are large.
  struct IndexedStoreTests {
    /// Returns a store that evicts entries.
    private static func makeLimitedStore() throws -> Store {
      Store(name: try StoreName("small"), engine: .memory, limit: MemoryLimit("1MiB"))
    }

    /// Checks that the index `n` has what the store has. Documents may expire meanwhile.
    /// - Returns: The number of documents.
    @discardableResult
    private func checkIndex(_ client: TestClient, _ context: String) throws -> Int {
      let selector = #"{"n":{"$gte":0}}"#
      let before = try client.find(selector, index: "n")
      let count = try client.find(selector, countOnly: true, index: "n").result.found
      let scan = try client.find()
      let after = try client.find(selector, index: "n")
      #expect(Set([before, scan, after].map(\.result.revision)).count == 1, "\(context)")
      #expect(Set(before.keys).isSuperset(of: scan.keys) && Set(scan.keys).isSuperset(of: after.keys), "\(context)")
      #expect(Set(before.keys).count == before.keys.count, "\(context)")
      #expect(count >= scan.keys.count && count <= before.result.found, "\(context)")
      return after.keys.count
    }

    @Test func `an index has only the documents that eviction leaves`() throws {
      var random = SeededGenerator.announced()
      let server = try TestServer(serving: [Self.makeLimitedStore()]) { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30, store: "small")
      #expect(try client.ensureIndex(#"{"fields":["n"]}"#).isCreated)
      for round in 0..<(SeededGenerator.isThorough ? 100 : 15) {
        let documents = (0..<200).map { _ in
          let key = Int.random(in: 0..<8_000, using: &random)
          let filler = String(repeating: "x", count: .random(in: 0..<1_000, using: &random))
          return (key: "key\(key)", value: Array(#"{"n":\#(key),"x":"\#(filler)"}"#.utf8))
        }
        #expect(try client.call(Request.putMany(documents, id: 3)).isDone)
        try checkIndex(client, "round \(round)")
        let figures = try client.figures(store: 1)
        #expect(figures["limited_bytes"]! <= figures["limit_bytes"]!, "\(figures)")
      }
      #expect(try client.figures(store: 1)["evicted_total"]! > 100)
    }

    @Test func `an index has no documents that have expired, on every engine`() throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores) { $0.findTime = .seconds(60) }
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        #expect(try client.ensureIndex(#"{"fields":["n"]}"#).isCreated)
        let documents = (0..<2_000).map { (key: "key\($0)", value: Array(#"{"n":\#($0)}"#.utf8)) }
        #expect(try client.call(Request.putMany(documents, id: 3)).isDone)
        #expect(try client.call(Request.putMany(Array(documents[..<1_500]), id: 4, expiry: 300)).isDone)
        // They expire while finds count and return them.
        #expect(try eventually { try checkIndex(client, "\(store.name)") == 500 })
        #expect(try client.find(#"{"n":{"$lt":1600}}"#, countOnly: true, index: "n").result.found == 100)
        #expect(try client.find(#"{"n":{"$lt":1600}}"#, limit: 1, index: "n").keys == ["key1500"])
        #expect(try client.indexes()[0]["documents"] == 500)
        // A document that gets an expiry keeps its keys, and loses them in time.
        #expect(try client.call(Request.put("key1500", documents[1_500].value, id: 5, expiry: 100)).isDone)
        #expect(try client.find(#"{"n":1500}"#, countOnly: true, index: "n").result.found <= 1)
        #expect(try eventually { try client.find(#"{"n":1500}"#, countOnly: true, index: "n").result.found == 0 })
      }
    }

    @Test func `groups that an index counts have no documents that have expired`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      #expect(try client.ensureIndex(#"{"fields":["g"]}"#).isCreated)
      let documents = (0..<3_000).map { (key: "key\($0)", value: Array(#"{"g":\#($0 % 3)}"#.utf8)) }
      #expect(try client.call(Request.putMany(documents, id: 3)).isDone)
      // The first documents of each group expire, and one group as a whole.
      #expect(
        try client.call(Request.putMany(documents.filter { $0.value == Array(#"{"g":2}"#.utf8) }, id: 4, expiry: 300))
          .isDone)
      #expect(try client.call(Request.putMany(Array(documents[..<1_500]), id: 4, expiry: 300)).isDone)
      var counts: [Int64] = []
      repeat {
        // The scan that adds "x" sees the same or a later time.
        let before = try client.aggregate("", #"{"by":["g"]}"#)
        let scan = try client.aggregate("", #"{"by":["g"],"compute":["count",{"sum":"x"}]}"#)
        let after = try client.aggregate("", #"{"by":["g"]}"#)
        func total(_ groups: [DocumentGroup]) -> Int64 { groups.reduce(0) { $0 + ($1.values[0]?.integer ?? 0) } }
        #expect(before.result.examinedKeys == 3 || before.rows.count < 3)
        #expect(total(before.rows) >= total(scan.rows) && total(scan.rows) >= total(after.rows))
        counts = after.rows.map { $0.values[0]?.integer ?? 0 }
      } while counts.count == 3
      #expect(try eventually { try client.aggregate("", #"{"by":["g"]}"#).rows.map { $0.values[0] } == [500, 500] })
    }

    /// Documents count before they are written, and their keys afterward: no write is refused because of an index, and
    /// none evicts what it has just written.
    @Test func `a put-many whose keys need more memory than the store may use is executed as a whole`() throws {
      let server = try TestServer(serving: [Self.makeLimitedStore()]) { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30, store: "small")
      #expect(try client.ensureIndex(#"{"fields":["n"]}"#).isCreated)
      #expect(try client.ensureIndex(#"{"fields":["t.v"]}"#).isCreated)
      for round in 0..<2 {
        let documents = (0..<80).map { number in
          let values = (0..<900).map { #"{"v":\#($0 + number + round)}"# }.joined(separator: ",")
          return (key: "key\(number)", value: Array(#"{"n":\#(number),"t":[\#(values)]}"#.utf8))
        }
        #expect(try client.call(Request.putMany(documents, id: 3)).number == UInt64(2 * round + 1))
        #expect(try checkIndex(client, "round \(round)") == 80)
        #expect(try client.find(#"{"t.v":\#(round + 899)}"#, countOnly: true, index: "t.v").result.found == 80)
        #expect(try client.indexes()[1]["overflowDocuments"] == 0)
        // The next write makes room, for which it evicts what was there before.
        #expect(try client.call(Request.put("key0", Array(#"{"n":0}"#.utf8), id: 4)).isDone)
        let figures = try client.figures(store: 1)
        #expect(figures["limited_bytes"]! <= figures["limit_bytes"]!, "\(figures)")
        #expect(try checkIndex(client, "round \(round)") < 80)
      }
    }

    @Test func `finds go on while the largest documents are put under three indexes`() throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(workers: 2, serving: opened.stores) { $0.findTime = .seconds(60) }
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        for fields in [#"["n"]"#, #"["g",{"n":"desc"}]"#, #"["t"]"#] {
          #expect(try client.ensureIndex(#"{"fields":\#(fields)}"#).isCreated)
        }
        let small = (0..<100).map { (key: "small\($0)", value: Array(#"{"n":\#($0),"g":1,"t":[1,2]}"#.utf8)) }
        #expect(try client.call(Request.putMany(small, id: 3)).isDone)
        try client.waitForIndexes()
        let name = store.name.text
        let writer = BackgroundThread {
          let writer = try server.connect(store: name)
          let filler = String(repeating: "x", count: (16 << 20) - 9_000)
          for number in 0..<3 {
            let text = Array(#"{"n":\#(1_000 + number),"x":"\#(filler)","g":2,"t":[2,3]}"#.utf8)
            try writer.send(Request.put("large\(number % 2)", text, id: 4))
            try #require(try writer.receive(within: 60).isDone)
          }
        }
        for round in 0..<20 {
          let found = try client.find(#"{"n":{"$gte":50,"$lt":60}}"#, fields: #"["_id","n"]"#)
          #expect(found.keys == (50..<60).map { "small\($0)" }, "\(round)")
          let tagged = try client.find(#"{"t":2}"#, countOnly: true, index: "t").result.found
          #expect((100...102).contains(tagged), "\(round)")
        }
        try writer.wait()
        #expect(try client.find(#"{"n":{"$gte":1000}}"#, fields: #"["_id"]"#).keys == ["large0", "large1"].sorted())
        #expect(try client.find(#"{"g":2}"#, sort: #"[{"n":"desc"}]"#, fields: #"["n"]"#).keys == ["large0", "large1"])
        #expect(try client.find(#"{"t":3}"#, countOnly: true, index: "t").result.found == 2)
        #expect(try eventually(within: 60) { try client.indexes().allSatisfy { $0["overflowDocuments"] == 0 } })
        #expect(try client.find(#"{"n":1002}"#, fields: #"["_id"]"#, index: "n").result.examinedDocuments == 1)
        #expect(try client.find(#"{"t":3}"#, countOnly: true, index: "t").result.found == 2)
      }
    }
  }
}
