import DocumentTestSupport
import Documents
import Synchronization
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Finds and aggregations of so many documents that several threads look at them.
  struct DividedFindTests {
    private static let count = 36_000

    private static func document(_ number: Int) -> String {
      let array = number % 7 == 0 ? #"[\#(number % 5),"x"]"# : "\(number % 5)"
      let text =
        number % 1_000 == 999 ? "[]" : #"{"n":\#(number),"a":\#(array),"m":\#(number % 3_001),"x":"\#(number % 2)"}"#
      return text
    }

    private static func fill(_ client: TestClient) throws -> [Document] {
      let documents = (0..<count).map { number in (key: "key\(1_000_000 + number)", value: Array(document(number).utf8))
      }
      for start in stride(from: 0, to: count, by: 6_000) {
        #expect(try client.call(Request.putMany(Array(documents[start..<start + 6_000]), id: 3)).isDone)
      }
      return documents.map { Document(String(decoding: $0.value, as: UTF8.self), id: $0.key) }
    }

    private static let selectors = [
      "{}", #"{"m":{"$lt":1500}}"#, #"{"a":2}"#, #"{"a":{"$in":[1,"x"]},"n":{"$gt":9}}"#,
      #"{"_id":{"$gt":"key1000010"}}"#,
      #"{"n":{"$exists":false}}"#,
      // Few that come late.
      #"{"n":{"$gt":35994}}"#, #"{"m":2500}"#, #"{"x":{"$regex":"^1"},"m":{"$mod":[3,1]}}"#,
      #"{"$or":[{"n":{"$lt":35000}},{"n":{"$gt":35500}}]}"#,
    ]

    private static let aggregations = [
      #"{"by":["m"],"compute":["count",{"sum":"n"}]}"#,
      #"{"by":["a","x"],"compute":["count",{"min":"n"},{"max":"n"},{"avg":"m"}]}"#,
      #"{"compute":["count",{"max":"x"}]}"#,
    ]

    @Test func `they find what one thread finds`() throws {
      var random = SeededGenerator.announced()
      let server = try TestServer(findThreads: 3) { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      let documents = try Self.fill(client)
      for round in 0..<2 {
        let selectors = Self.selectors.shuffled(using: &random)
        for selector in SeededGenerator.isThorough ? selectors : Array(selectors.prefix(4)) {
          let selection = try Selector(parsing: selector)
          #expect(
            try client.find(selector, countOnly: true).result.found == UInt64(documents.count(selection)), "\(selector)"
          )
          var query = DocumentQuery(selection)
          let sort = [#"["m","_id"]"#, #"[{"x":"desc"},{"n":"desc"}]"#, #"["a"]"#].randomElement(using: &random)!
          query.sort = try DocumentQuery(parsing: #"{"selector":{},"sort":\#(sort)}"#).sort
          query.limit = [1, 25, 4_000].randomElement(using: &random)
          query.skip = [0, 3, 700].randomElement(using: &random)!
          let found = try client.find(query)
          let expected = try documents.find(query)
          #expect(found.keys == expected.documents.map { $0.id! }, "\(query)")
          #expect(found.result.text == expected.bookmark ?? "", "\(query)")
          // In the order of keys, and of an index once there is one.
          query.sort = try DocumentQuery(parsing: #"{"selector":{},"sort":["\#(round == 0 ? "_id" : "m")"]}"#).sort
          query.limit = [1, 5, 25, nil].randomElement(using: &random)!
          let first = try client.find(query)
          let firstPage = try documents.find(query)
          #expect(
            first.keys == firstPage.documents.map { $0.id! } && first.result.text == firstPage.bookmark ?? "",
            "\(query)")
          if !first.result.text.isEmpty {
            query.bookmark = first.result.text
            #expect(try client.find(query).keys == documents.find(query).documents.map { $0.id! }, "\(query)")
          }
          let aggregation = Self.aggregations.randomElement(using: &random)!
          var aggregator = try DocumentAggregator(selection, DocumentAggregation(parsing: Array(aggregation.utf8).span))
          for document in documents { try aggregator.add(document) }
          #expect(try client.aggregate(selector, aggregation).rows == aggregator.result(), "\(selector) \(aggregation)")
        }
        guard round == 0 else { break }
        // Now many plans read the index instead.
        #expect(try client.ensureIndex(#"{"fields":["m"]}"#).isCreated)
        #expect(try client.ensureIndex(#"{"fields":["a"]}"#).isCreated)
        try client.waitForIndexes()
      }
      #expect(try client.figures()["finds"] == 0)
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `what fits into the memory for one thread is found`() throws {
      // Each part needs nearly all groups.
      let server = try TestServer(findThreads: 4) {
        $0.findTime = .seconds(60)
        $0.findMemory = 1 << 20
      }
      let client = try server.connect(credit: 1 << 30)
      _ = try Self.fill(client)
      let reply = try client.aggregate("{}", #"{"by":["m"],"compute":["count"]}"#)
      #expect(reply.rows.count == 3_001 && reply.result.examinedDocuments == UInt64(Self.count))
      try client.send(
        Request.aggregate(id: 7, selector: "{}", aggregation: #"{"by":["n","m","x"],"compute":["count"]}"#))
      let refusal = try client.receive(within: 30)
      #expect(refusal.isError(.queryStopped, id: 7) && "\(refusal)".contains("limits.find-memory"), "\(refusal)")
    }

    @Test func `they end with their connections, and when they take too long`() throws {
      let server = try TestServer(findThreads: 4) { $0.findTime = .milliseconds(100) }
      let client = try server.connect(credit: 1 << 30)
      _ = try Self.fill(client)
      try client.send(Request.find(id: 7, countOnly: true, selector: hostileSelector))
      let refusal = try client.receive(within: 30)
      #expect(refusal.isError(.queryStopped, id: 7) && "\(refusal)".contains("took longer"), "\(refusal)")
      for _ in 0..<20 {
        let other = try server.connect(credit: 1 << 30)
        try other.send(Request.find(id: 7, countOnly: true, selector: hostileSelector))
        #expect(try eventually { try client.figures()["finds"] == 1 })
      }
      #expect(try eventually { try client.figures()["finds"] == 0 && client.figures(store: 1)["snapshots"] == 0 })
    }

    @Test func `they see one moment while others write`() throws {
      let server = try TestServer(findThreads: 4) { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      _ = try Self.fill(client)
      let isOver = Flag()
      let thread = BackgroundThread {
        let writer = try server.connect(credit: 1 << 30)
        var random = SeededGenerator(seed: 5)
        while !isOver.isSet {
          // Each commit keeps the sum of `m`.
          let number = Int.random(in: 0..<Self.count / 2, using: &random)
          let amount = Int.random(in: 1..<100, using: &random)
          let changes = [(number, amount), (number + Self.count / 2, -amount)].map { number, amount in
            (key: "key\(1_000_000 + number)", value: Array(#"{"n":\#(number),"m":\#(amount)}"#.utf8))
          }
          #expect(try writer.call(Request.putMany(changes, id: 3)).isDone)
        }
      }
      for _ in 0..<10 {
        let rows = try client.aggregate(#"{"a":{"$exists":false}}"#, #"{"compute":[{"sum":"m"}]}"#).rows
        #expect(rows.map(\.values) == [[0]])
      }
      isOver.set()
      try thread.wait()
    }
  }
}
