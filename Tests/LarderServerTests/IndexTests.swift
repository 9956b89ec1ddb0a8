import Documents
import Foundation
import LarderServer
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Indexes of documents, and finds that use them: `Protocol/wire.md` §6.7 and §6.10.
  struct IndexTests {
    // MARK: Definitions

    @Test func `an index is created, confirmed, listed and deleted`() throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        try client.putNumbered(100)
        #expect(try client.indexes().isEmpty)
        #expect(try client.ensureIndex(#"{"fields":["n"]}"#) == EnsuredIndex(name: "n", isCreated: true))
        #expect(try client.ensureIndex(#"{"name":"n","fields":["n"]}"#) == EnsuredIndex(name: "n", isCreated: false))
        let partial = #"{"name":"some","fields":["g",{"n":"desc"}],"where":{"n":{"$gte":50}}}"#
        #expect(try client.ensureIndex(partial).isCreated)
        try client.waitForIndexes()
        let list = try client.indexes()
        #expect(list.map { $0["name"] } == ["n", "some"])
        #expect(list[0]["state"] == "ready" && list[0]["entries"] == 100 && list[0]["documents"] == 100)
        #expect(list[1]["documents"] == 50 && list[1]["where"] != nil && list[1]["arrayFields"] == [])
        if case .integer(let byteCount)? = list[0]["memoryBytes"] { #expect(byteCount > 100) } else { Issue.record() }
        #expect(list[0]["overflowDocuments"] == 0)
        let other = try client.call(Request.make(.indexEnsure, id: 9, Array(#"{"name":"n","fields":["g"]}"#.utf8)))
        #expect(other.isError(.indexExists, id: 9))
        #expect(try client.call(Request.make(.indexDelete, id: 9, Array("n".utf8))).isDone)
        #expect(try client.call(Request.make(.indexDelete, id: 9, Array("n".utf8))).isError(.indexUnknown, id: 9))
        let long = [UInt8](repeating: 97, count: 1_000)
        #expect(try client.call(Request.make(.indexDelete, id: 9, long)).isError(.indexUnknown, id: 9))
        #expect(try client.indexes().map { $0["name"] } == ["some"])
      }
    }

    @Test func `definitions that are wrong are refused`() throws {
      let server = try TestServer()
      let client = try server.connect()
      for text in ["", "{", "[]", "{}", #"{"fields":[]}"#, #"{"fields":["a","a"]}"#, #"{"fields":["a"],"x":1}"#] {
        let reply = try client.call(Request.make(.indexEnsure, id: 9, Array(text.utf8)))
        #expect(reply.isError(.illegalArgument, id: 9) && !reply.message.isEmpty, "\(text): \(reply)")
      }
      #expect(try client.call(Request.make(.indexList, id: 9, [1])).isError(.malformed, id: 9))
      #expect(try client.call(Request.make(.indexList, store: 7, id: 9)).isError(.storeUnknown, id: 9))
      for number in 0..<64 { #expect(try client.ensureIndex(#"{"fields":["a\#(number)"]}"#).isCreated) }
      let reply = try client.call(Request.make(.indexEnsure, id: 9, Array(#"{"fields":["b"]}"#.utf8)))
      #expect(reply.isError(.tooManyIndexes, id: 9))
      // The handle is of a store that was dropped, and another one has its name.
      let second = try server.connect()
      #expect(try second.call(Request.drop("test", id: 5)).isDone)
      #expect(try second.call(Request.create("test", id: 6)).isDone)
      for operation in [Operation.indexEnsure, .indexDelete, .indexList] {
        let body = operation == .indexList ? [] : Array(#"{"fields":["a"]}"#.utf8)
        #expect(try client.call(Request.make(operation, id: 9, body)).isError(.storeUnknown, id: 9))
      }
    }

    // MARK: Finds

    @Test func `an explanation is that of the golden vector`() throws {
      struct Vector: Decodable {
        let name: String
        let hex: String
      }
      let vectors = try ProjectFiles.vectors("replies.json", as: Vector.self)
      let vector = [UInt8](hex: try #require(vectors.first { $0.name == "find-that-explains" }).hex)
      let server = try TestServer()
      let client = try server.connect()
      for age in 4..<16 {
        #expect(try client.call(Request.put("\(age)", Array(#"{"age":\#(age)}"#.utf8), id: 5)).isDone)
      }
      #expect(try client.ensureIndex(#"{"fields":["age"],"name":"byAge"}"#).isCreated)
      try client.waitForIndexes()
      var body = try client.call(
        Request.find(id: 27, limit: 20, selector: #"{"age":{"$gt":12}}"#, sort: #"["age"]"#, explain: true)
      ).body
      // The time that it took.
      body.replaceSubrange(40..<48, with: vector[52..<60])
      #expect(body == Array(vector[12...]))
    }

    /// Indexes over the fields of random documents: single, compound, descending, through arrays, partial.
    private static let definitions = [
      #"{"fields":["a"]}"#, #"{"fields":["a",{"b":"desc"}]}"#, #"{"fields":[{"b":"desc"},{"c":"desc"}]}"#,
      #"{"fields":["a.b","c"]}"#, #"{"fields":["c"],"where":{"a":{"$gt":1}}}"#, #"{"fields":["b.0"]}"#,
      #"{"fields":["_rev"]}"#, #"{"fields":["c","_id"]}"#,
    ]

    @Test func `on every engine, finds return the same documents with indexes as without`() throws {
      var random = RandomQueries(.announced())
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores) { $0.findTime = .seconds(60) }
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        for round in 0..<(SeededGenerator.isThorough ? 20 : 3) {
          let definitions = Self.definitions.filter { _ in random.number(2) == 0 }
          for definition in definitions { #expect(try client.ensureIndex(definition).isCreated) }
          var documents: [Document] = []
          // With arrays, fewer plans are possible.
          let hasArrays = round % 3 != 0
          for number in 0..<(round % 2 == 0 ? 30 : 300) {
            let key = "key \(number)"
            var text = random.text()
            while !hasArrays, text.contains("[") { text = random.text() }
            let revision = try #require(try client.call(Request.put(key, Array(text.utf8), id: 5)).number)
            documents.append(Document(text, id: key, revision: revision))
          }
          try client.waitForIndexes()
          for _ in 0..<(SeededGenerator.isThorough ? 500 : 25) {
            try compare(random.query(), documents, client)
          }
          for definition in try client.indexes() {
            #expect(try client.call(Request.make(.indexDelete, id: 9, Array(definition["name"]!.string!.utf8))).isDone)
          }
          #expect(try client.call(Request.make(.deleteAll, id: 9)).isDone)
        }
        #expect(try client.figures(store: 1)["snapshots"] == 0)
      }
      #expect(try server.connect().figures()["indexed_finds_total"]! > 40)
    }

    private func compare(_ query: DocumentQuery, _ documents: [Document], _ client: TestClient) throws {
      var (query, pages) = (query, 0)
      repeat {
        let (found, expected) = (try client.find(query), try documents.find(query))
        #expect(found.keys == expected.documents.map { $0.id! }, "\(query)")
        #expect(found.documents.map(\.value) == expected.documents.map(\.text), "\(query)")
        #expect(found.result.text == expected.bookmark ?? "", "\(query)")
        query.bookmark = expected.bookmark
        pages += 1
      } while query.bookmark != nil && pages < 5
      let count = try client.find(query.selector.json.description, countOnly: true)
      #expect(try count.result.found == UInt64(documents.find(query.selector).count), "\(query)")
      let groups = try client.aggregate(query.selector.json.description, #"{"by":["a"]}"#)
      #expect(try groups.rows == documents.groups(of: query.selector, by: ["a"]), "\(query)")
      let changes = try client.change(query.selector.json.description, dryRun: true)
      #expect(changes.matched == count.result.found, "\(query)")
    }

    @Test func `a find that is served by an index examines few documents, and skips without examining any`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(20_000)
      #expect(try client.ensureIndex(#"{"fields":["n"]}"#).isCreated)
      try client.waitForIndexes()
      let point = try client.find(#"{"n":777}"#)
      #expect(point.keys == ["key1000777"])
      #expect(point.result.examinedDocuments == 1 && point.result.examinedKeys == 1)
      let range = try client.find(#"{"n":{"$gte":100,"$lt":120}}"#, sort: #"["n"]"#, limit: 7)
      #expect(range.keys == (100..<107).map { "key\(1_000_000 + $0)" } && range.result.examinedDocuments == 8)
      let skipped = try client.find(sort: #"[{"n":"desc"}]"#, limit: 3, skip: 15_000)
      #expect(skipped.keys == (0..<3).map { "key\(1_000_000 + 4_999 - $0)" })
      #expect(skipped.result.examinedDocuments == 4 && skipped.result.examinedKeys == 4)
      let count = try client.find(#"{"n":{"$gt":9999}}"#, countOnly: true).result
      #expect(count.found == 10_000 && count.examinedDocuments == 0)
      // Every page starts where the previous one ended.
      var (keys, bookmark) = ([String](), "")
      repeat {
        let page = try client.find(sort: #"[{"n":"desc"}]"#, limit: 999, bookmark: bookmark)
        #expect(page.result.examinedDocuments <= 1_001)
        keys += page.keys
        bookmark = page.result.text
      } while !bookmark.isEmpty
      #expect(keys == (0..<20_000).reversed().map { "key\(1_000_000 + $0)" })
      // Many documents are found by the runner.
      let many = try client.find(#"{"n":{"$lt":15000}}"#, sort: #"["g",{"n":"desc"}]"#, fields: #"["n"]"#)
      #expect(many.keys == (0..<15_000).reversed().map { "key\(1_000_000 + $0)" })
      #expect(many.result.examinedDocuments == 15_000)
    }

    @Test func `on every engine, groups that an index counts are those of all documents`() throws {
      var random = RandomQueries(.announced())
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores) { $0.findTime = .seconds(60) }
      let definitions = [
        #"{"fields":["a"]}"#, #"{"fields":["a",{"b":"desc"}]}"#, #"{"fields":[{"b":"desc"}]}"#,
        #"{"fields":["c","a"],"where":{"a":{"$gt":1}}}"#,
      ]
      // Equal values are written in several ways.
      let values = [
        "null", "false", "true", "0", "-0.0", "1", "1.0", "10e-1", "9007199254740993", "9007199254740992.0", #""""#,
        #""a""#, #""\u0061""#, #""ab""#, #"{"x":1,"y":2}"#, #"{"y":2.0,"x":1}"#, "[1]", "[1,2]", "[]",
      ]
      let selectors = [
        "", #"{"a":{"$gt":1}}"#, #"{"a":{"$in":[1,"a",null]}}"#, #"{"b":1}"#, #"{"c":{"$exists":true}}"#,
      ]
      let aggregations = [
        #"{"by":["a"]}"#, #"{"by":["b"],"compute":[]}"#, #"{"by":["b","a"],"sort":[{"count":"desc"}],"limit":5}"#,
        #"{"by":["a"],"compute":["count",{"min":"a"},{"max":"b"}],"sort":[{"by:a":"desc"}]}"#, "{}",
        #"{"by":["a"],"compute":["count",{"sum":"n"}]}"#, #"{"compute":[{"max":"b"},{"min":"a"}]}"#,
      ]
      var groupedCount = 0
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        for round in 0..<(SeededGenerator.isThorough ? 60 : 6) {
          for definition in definitions { #expect(try client.ensureIndex(definition).isCreated) }
          let hasArrays = round % 3 == 2
          var documents: [Document] = []
          for number in 0..<300 {
            let members = ["a", "b", "c"].compactMap { name -> String? in
              random.number(8) == 0
                ? nil : #""\#(name)":\#(values[random.number(values.count - (hasArrays ? 0 : 3))])"#
            }
            var text = "{\((members + [#""n":\#(number)"#]).joined(separator: ","))}"
            if random.number(20) == 0 { text = random.pick(["", "[]", "null", #"{"a":1,}"#]) }
            let id = "key \(number)"
            let revision = try #require(try client.call(Request.put(id, Array(text.utf8), id: 5)).number)
            documents.append(Document(text, id: id, revision: revision))
          }
          try client.waitForIndexes()
          for (selector, text) in selectors.flatMap({ selector in aggregations.map { (selector, $0) } }) {
            let aggregation = try DocumentAggregation(parsing: text)
            var aggregator = try DocumentAggregator(Selector(parsing: selector.isEmpty ? "{}" : selector), aggregation)
            for document in documents { try aggregator.add(document) }
            let (rows, result) = try client.aggregate(selector, text)
            #expect(rows == aggregator.result(), "\(selector) \(text)")
            if result.examinedKeys > 0, result.examinedDocuments < 100, selector.isEmpty { groupedCount += 1 }
          }
          for definition in try client.indexes() {
            #expect(try client.call(Request.make(.indexDelete, id: 9, Array(definition["name"]!.string!.utf8))).isDone)
          }
          #expect(try client.call(Request.make(.deleteAll, id: 9)).isDone)
        }
        #expect(try client.figures(store: 1)["snapshots"] == 0)
      }
      #expect(groupedCount > 30)
    }

    @Test func `groups of an indexed field take one document each, unless they are many`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1 << 30)
      let documents = (0..<20_000).map { number in
        (key: "key\(100_000 + number)", value: Array(#"{"n":\#(number),"g":\#(number % 20),"s":"x"}"#.utf8))
      }
      #expect(try client.call(Request.putMany(documents, id: 3)).isDone)
      #expect(try client.ensureIndex(#"{"fields":["g","n"]}"#).isCreated)
      #expect(try client.ensureIndex(#"{"fields":["n"]}"#).isCreated)
      try client.waitForIndexes()
      let groups = try client.aggregate("", #"{"by":["g"],"compute":["count",{"max":"g"}]}"#)
      let number = { (value: Int) in JSONValue.integer(Int64(value)) }
      #expect(
        groups.rows == (0..<20).map { DocumentGroup(json: ["by": [[number($0)]], "values": [[1_000], [number($0)]]]) })
      #expect(groups.result.examinedDocuments == 20 && groups.result.examinedKeys == 20)
      let range = try client.aggregate(#"{"g":{"$gte":18}}"#, #"{"by":["g"]}"#)
      #expect(range.rows.count == 2 && range.result.examinedDocuments == 2)
      let count = try client.aggregate(#"{"n":{"$lt":19000}}"#, "{}")
      #expect(count.rows == [DocumentGroup(json: ["by": [], "values": [[19_000]]])])
      #expect(count.result.examinedDocuments == 1)
      let unique = try client.aggregate("", #"{"by":["n"]}"#)
      #expect(unique.rows.count == 20_000 && unique.result.examinedKeys == 0)
      let sum = try client.aggregate("", #"{"by":["g"],"compute":[{"sum":"n"}]}"#)
      #expect(sum.rows.count == 20 && sum.result.examinedDocuments == 20_000)
    }

    @Test func `changes use indexes, and keep them right`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(5_000)
      #expect(try client.ensureIndex(#"{"fields":["n"]}"#).isCreated)
      try client.waitForIndexes()
      let update = try client.change(#"{"n":{"$gte":4000}}"#, #"{"$inc":{"n":-4000}}"#)
      #expect(update.changed == 1_000 && update.examinedDocuments == 1_000 && update.examinedKeys == 1_000)
      #expect(try client.find(#"{"n":7}"#).keys == ["key1000007", "key1004007"])
      #expect(try client.change(#"{"n":{"$lt":1000}}"#).changed == 2_000)
      #expect(try client.find(#"{"n":{"$lt":1000}}"#, countOnly: true).result.found == 0)
      #expect(try client.find(countOnly: true).result.found == 3_000)
      #expect(try client.aggregate(#"{"n":{"$in":[1000,1001]}}"#, "{}").result.examinedDocuments == 2)
    }

    @Test func `unions and intersections of indexes have each document once`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1 << 30)
      let documents = (0..<10_000).map { number in
        let text = #"{"a":\#(number % 100),"b":\#(number % 101),"c":[\#(number % 50),\#((number + 1) % 50)]}"#
        return (key: "key\(10_000 + number)", value: Array(text.utf8))
      }
      #expect(try client.call(Request.putMany(documents, id: 3)).isDone)
      for field in ["a", "b", "c"] { #expect(try client.ensureIndex(#"{"fields":["\#(field)"]}"#).isCreated) }
      try client.waitForIndexes()
      let cases: [(selector: String, kind: String, matches: (Int) -> Bool)] = [
        (#"{"$or":[{"a":1},{"b":2}]}"#, "union", { $0 % 100 == 1 || $0 % 101 == 2 }),
        (#"{"$and":[{"a":1},{"b":2}]}"#, "intersection", { $0 % 100 == 1 && $0 % 101 == 2 }),
        (#"{"c":{"$in":[7,8]}}"#, "index", { [6, 7, 8].contains($0 % 50) }),
        (#"{"_id":{"$gte":"key19990"}}"#, "ids", { $0 >= 9_990 }),
        (#"{"x":1}"#, "scan", { _ in false }),
        (#"{"a":{"$in":[]}}"#, "nothing", { _ in false }),
      ]
      for (selector, kind, matches) in cases {
        let expected = (0..<10_000).filter(matches).map { "key\(10_000 + $0)" }
        #expect(try client.find(selector).keys == expected, "\(selector)")
        #expect(try client.find(selector, countOnly: true).result.found == UInt64(expected.count), "\(selector)")
        let explanation = try client.explain(selector)
        #expect(explanation["plan"]?["kind"] == .string(kind), "\(explanation)")
      }
    }

    @Test func `a find is explained, and uses the index that it names`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(1_000)
      for field in ["n", "g"] { #expect(try client.ensureIndex(#"{"fields":["\#(field)"]}"#).isCreated) }
      try client.waitForIndexes()
      try client.send(Request.find(id: 5, selector: #"{"n":5}"#, explain: true))
      let reply = try FoundReply(client.receiveReplyStream(5))
      #expect(reply.documents.isEmpty && reply.result.found == 1 && reply.result.examinedKeys == 1)
      let explanation = try JSONValue(parsing: Array(reply.result.text.utf8).span)
      #expect(explanation["plan"]?["kind"] == "index" && explanation["plan"]?["index"] == "n")
      #expect(explanation["selector"] != nil && explanation["candidates"] != nil)
      let hinted = try client.find(#"{"n":{"$lt":3},"g":0}"#, index: "g")
      #expect(hinted.result.examinedKeys == 1_000 && hinted.keys == ["key1000000", "key1000001", "key1000002"])
      for (name, reason) in [("x", "x"), ("g", "g")] {
        let refused = try client.call(Request.find(id: 6, selector: #"{"n":1}"#, index: name))
        #expect(refused.isError(.illegalArgument, id: 6) && refused.message.contains(reason), "\(refused)")
      }
    }

    @Test func `finds while an index is built, deleted and dropped are right`() throws {
      let server = try TestServer(workers: 2) { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(SeededGenerator.isThorough ? 30_000 : 4_000)
      let isDone = Flag()
      let changer = Thread {
        guard let changer = try? server.connect() else { return }
        while !isDone.isSet {
          _ = try? changer.ensureIndex(#"{"fields":["n"]}"#)
          usleep(20_000)
          _ = try? changer.call(Request.put("key1000001", Array(#"{"n":1,"g":7}"#.utf8), id: 5))
          _ = try? changer.call(Request.make(.indexDelete, id: 6, Array("n".utf8)))
        }
        isDone.end()
      }
      changer.start()
      for round in 0..<(SeededGenerator.isThorough ? 100 : 40) {
        let found = try client.find(#"{"n":{"$gte":1,"$lt":\#(10 + round * 10)}}"#, sort: #"["n"]"#)
        #expect(found.keys == (1..<10 + round * 10).map { "key\(1_000_000 + $0)" })
      }
      isDone.set()
      #expect(isDone.waitForEnd())
      // A build that was canceled ends soon.
      while try client.figures(store: 1)["snapshots"] != 0 { usleep(1_000) }
    }

    @Test func `a find by an index replies once the documents it found are on the disk`() throws {
      let engine = TestEngine()
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(serving: [store])
      let (writer, reader) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      try writer.putNumbered(10)
      #expect(try writer.ensureIndex(#"{"fields":["n"]}"#).isCreated)
      try writer.waitForIndexes()
      engine.pause()
      try writer.send(Request.put("key1000003", Array("1".utf8), id: 20))
      #expect(writer.isSilent(for: 0.05))
      try reader.send(Request.find(id: 5, selector: #"{"n":3}"#))
      #expect(reader.isSilent(for: 0.05))
      engine.resume()
      #expect(try FoundReply(reader.receiveReplyStream(5)).documents.isEmpty)
      #expect(try writer.receive().isDone)
    }
  }
}

extension TestClient {
  func ensureIndex(_ definition: String) throws -> EnsuredIndex {
    let reply = try call(Request.make(.indexEnsure, id: 910, Array(definition.utf8)))
    return try #require(unsafe EnsuredIndex(reply.body.span.bytes), "\(reply)")
  }

  func indexes() throws -> [JSONValue] {
    let reply = try call(Request.make(.indexList, id: 911))
    try #require(reply.isDone, "\(reply)")
    return try #require(JSONValue(parsing: reply.body.span).array)
  }

  func waitForIndexes() throws {
    #expect(try eventually { try indexes().allSatisfy { $0["state"] == "ready" } })
  }

  fileprivate func explain(_ selector: String) throws -> JSONValue {
    try send(Request.find(id: 912, selector: selector, explain: true))
    let text = try FoundReply(receiveReplyStream(912)).result.text
    return try JSONValue(parsing: Array(text.utf8).span)
  }
}
