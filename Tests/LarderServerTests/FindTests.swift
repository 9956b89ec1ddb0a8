import Documents
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// What finds find: `Protocol/wire.md` §6.7.
  struct FindTests {
    @Test func `on every engine, the server finds what Documents finds in the same entries`() throws {
      var random = RandomQueries(.announced())
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        // Values at the end of a log stay in memory until they are written, and move to its files then.
        var documents: [Document] = []
        for number in 0..<40 {
          let (key, text) = ("key \(number)", random.text())
          let revision = try #require(try client.call(Request.put(key, Array(text.utf8), id: 5)).number)
          documents.append(Document(text, id: key, revision: revision))
        }
        for _ in 0..<(SeededGenerator.isThorough ? 2_000 : 100) {
          let query = random.query()
          let (found, expected) = (try client.find(query), try documents.find(query))
          #expect(found.keys == expected.documents.map { $0.id! }, "\(query)")
          #expect(found.documents.map(\.value) == expected.documents.map(\.text), "\(query)")
          #expect(found.documents.map(\.revision) == expected.documents.map { $0.revision! }, "\(query)")
          #expect(found.result.text == expected.bookmark ?? "", "\(query)")
          #expect(found.result.found == UInt64(expected.documents.count), "\(query)")
          #expect(found.result.revision == 40 && found.result.examinedDocuments <= 40)
          let count = try client.find(query.selector.json.description, sort: "[]", limit: 1, skip: 3, countOnly: true)
          #expect(count.documents.isEmpty && count.result.text.isEmpty && count.result.examinedDocuments <= 40)
          #expect(try count.result.found == UInt64(documents.find(query.selector).count), "\(query)")
        }
        #expect(try client.figures(store: 1)["snapshots"] == 0)
      }
    }

    @Test func `pages by bookmark have each document once, and start where the last one ended`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(1_000)
      for sort in ["", #"[{"n":"desc"}]"#] {
        var (numbers, bookmark) = ([TestEntry](), "")
        repeat {
          // With a bookmark, the skip has no effect.
          let page = try client.find(
            #"{"n":{"$gte":50}}"#, sort: sort, limit: 137, skip: bookmark.isEmpty ? 0 : 9, bookmark: bookmark)
          if sort.isEmpty { #expect(page.result.examinedDocuments <= 137 + 51 + 256) }
          numbers += page.documents
          bookmark = page.result.text
          // What is written between pages has its place.
          #expect(try client.call(Request.put("key0", Array(#"{"n":0}"#.utf8), id: 3)).isDone)
        } while !bookmark.isEmpty
        let expected = (50..<1_000).map { "key\(1_000_000 + $0)" }
        #expect(numbers.map(\.text) == (sort.isEmpty ? expected : expected.reversed()))
      }
    }

    @Test func `a find whose matches come late goes on with an index`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(20_000)
      let selector = #"{"n":{"$gte":19000}}"#
      let scanned = try client.find(selector, limit: 5)
      #expect(scanned.result.examinedDocuments > 19_000)
      #expect(try client.call(Request.make(.indexEnsure, id: 3, Array(#"{"fields":["n"]}"#.utf8))).isDone)
      #expect(try eventually { try client.call(Request.make(.indexList, id: 4)).message.contains("ready") })
      let found = try client.find(selector, limit: 5)
      #expect(found.keys == (19_000..<19_005).map { "key\(1_000_000 + $0)" } && found.keys == scanned.keys)
      #expect(found.result.text == scanned.result.text)
      #expect((1_001...4_000).contains(found.result.examinedDocuments) && found.result.examinedKeys == 1_000)
      try client.send(Request.find(id: 5, limit: 5, selector: selector, explain: true))
      let explanation = try JSONValue(parsing: FoundReply(try client.receiveReplyStream(5)).result.text)
      #expect(explanation["plan"]?["kind"] == "index" && explanation["plan"]?["insteadOf"]?["kind"] == "scan")
    }

    @Test func `a find without a sort stops at its limit`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(5_000)
      let page = try client.find(limit: 3, skip: 2)
      #expect(page.keys == (2..<5).map { "key\(1_000_000 + $0)" })
      #expect(page.result.examinedDocuments == 6 && page.result.found == 3 && !page.result.text.isEmpty)
      let nothing = try client.find(limit: 0)
      #expect(nothing.documents.isEmpty && nothing.result.text.isEmpty)
    }

    @Test func `a sort is whole, whatever comparing its keys takes`() throws {
      var random = SeededGenerator.announced()
      let server = try TestServer()
      let client = try server.connect()
      for count in [30, 150, 256] {
        for size in [1, 63, 94, 127, 500, 3_000] where count * size < 1 << 18 {
          let keys = (0..<count).shuffled(using: &random).map { number in
            let digits = "\(1_000 + number)"
            return String(repeating: "k", count: max(0, size - digits.count)) + digits
          }
          let documents = keys.enumerated().map { number, key in
            (key: "key\(number)", value: Array(#"{"size":\#(size),"k":"\#(key)"}"#.utf8))
          }
          #expect(try client.call(Request.putMany(documents, id: 3)).isDone)
          let selector = #"{"size":\#(size)}"#
          for sort in [#"["k"]"#, #"[{"k":"desc"}]"#] {
            let expected = documents.sorted { $0.value.lexicographicallyPrecedes($1.value) }.map(\.key)
            var (found, bookmark) = ([String](), "")
            repeat {
              let page = try client.find(selector, sort: sort, limit: UInt32(count * 3 / 5), bookmark: bookmark)
              found += page.keys
              bookmark = page.result.text
            } while !bookmark.isEmpty
            #expect(found == (sort.contains("desc") ? expected.reversed() : expected), "\(count) of \(size) bytes")
          }
          let groups = try client.aggregate(selector, #"{"by":["k"],"compute":["count"],"sort":[{"by:k":"asc"}]}"#).rows
          #expect(groups.map(\.key) == keys.sorted().map { [.string($0)] })
          #expect(try client.change(selector).changed == UInt64(count))
        }
      }
    }

    @Test func `lists, expired entries and values that are no objects are not found`() throws {
      let server = try TestServer()
      let client = try server.connect()
      var list = ByteBuffer()
      let (key, value) = (Array("list".utf8), ListValue.encode([Array("{}".utf8)]))
      unsafe list.appendWrite(kind: .list, key: key.span.bytes, value: value.span.bytes)
      #expect(try client.call(Request.make(.put, id: 3, list.toArray())).isDone)
      let texts = ["a": "{}", "b": "{} ", "c": "[]", "d": "{", "e": "", "f": "{}{}", "g": "\u{FEFF}{}"]
      for (key, text) in texts {
        #expect(try client.call(Request.put(key, Array(text.utf8), id: 4)).isDone)
      }
      #expect(try client.call(Request.put("h", Array("{}".utf8), id: 5, expiry: 30)).isDone)
      #expect(try client.call(Request.put("i", Array("{}".utf8), id: 5, expiry: 60_000)).isDone)
      let soon = try client.find(fields: #"["_id"]"#)
      #expect(soon.documents.last.map { (1...60_000).contains($0.expiry) } == true)
      #expect(try eventually { try client.find().keys == ["a", "b", "i"] })
      #expect(try client.find(countOnly: true).result.found == 3)
      #expect(try client.find().documents.map { String(decoding: $0.value, as: UTF8.self) } == ["{}", "{} ", "{}"])
    }

    @Test func `the key and the revision are fields of a document`() throws {
      let server = try TestServer()
      let client = try server.connect()
      for key in ["é\"", "a", "b"] {
        let text = #"{"_id":"other","_rev":"none","x":[{"y":1},{"y":2}]}"#
        #expect(try client.call(Request.put(key, Array(text.utf8), id: 3)).isDone)
      }
      let found = try client.find(
        #"{"_rev":{"$lte":2},"x.y":2}"#, sort: #"[{"_rev":"desc"}]"#, fields: #"["_id","_rev","x.1.y"]"#)
      #expect(found.keys == ["a", "é\""])
      #expect(
        found.documents.map { String(decoding: $0.value, as: UTF8.self) } == [
          #"{"_id":"a","_rev":2,"x":{"1":{"y":2}}}"#, #"{"_id":"é\"","_rev":1,"x":{"1":{"y":2}}}"#,
        ])
      #expect(found.documents.map(\.revision) == [2, 1])
    }

    @Test func `documents of every size are found, and fields of them returned`() throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      let sizes = [10, 32_767, 32_768, 65_536, 70_000, 262_144, 300_000, 1 << 20, 5 << 20]
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        let texts = sizes.map { size in
          let text = #"{"size":\#(size),"x":""#
          return Array((text + String(repeating: "x", count: max(0, size - text.utf8.count - 2)) + #""}"#).utf8)
        }
        for (number, text) in texts.enumerated() {
          #expect(try client.call(Request.put("key\(number)", text, id: 3)).isDone)
        }
        let whole = try client.find(sort: #"[{"size":"desc"}]"#)
        #expect(whole.documents.map(\.value) == texts.reversed())
        let fields = try client.find(fields: #"["size"]"#)
        #expect(fields.documents.map { String(decoding: $0.value, as: UTF8.self) } == sizes.map { #"{"size":\#($0)}"# })
        #expect(try client.find(#"{"size":{"$gt":40000}}"#, countOnly: true).result.found == 6)
        #expect(try client.figures(store: 1)["snapshots"] == 0)
      }
    }

    @Test func `fields of many large documents take several frames, and other clients are served in between`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(200, size: 60_000)
      let found = try client.find(fields: #"["n"]"#)
      #expect(found.documents.map { String(decoding: $0.value, as: UTF8.self) } == (0..<200).map { #"{"n":\#($0)}"# })
      #expect(found.frameSizes.count > 10)
      try client.putNumbered(20_000)
      let small = try client.find(fields: #"["n"]"#)
      #expect(small.documents.count == 20_000 && small.frameSizes.dropLast().allSatisfy { $0 <= 65_536 + 12 })
    }

    @Test func `finds are a feature of the hello`() throws {
      let server = try TestServer()
      for (features, common) in [
        (0, 0), (1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (32, 32), (64, 64), (128, 128), (256, 256), (512, 512),
        (.max, 1_023),
      ]
        as [(UInt32, UInt32)]
      {
        var buffer = ByteBuffer()
        buffer.appendRequest(ClientHello(features: features, credit: 1, name: "test"), id: 1)
        let reply = try TestClient(server.address).call(buffer.toArray())
        #expect(unsafe ServerHello(body: reply.body.span.bytes)?.features == common)
      }
    }

    @Test func `a limit of zero returns no documents and no bookmark, whatever matches`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(100)
      let bookmark = try client.find(limit: 2).result.text
      let sortedBookmark = try client.find(sort: #"["n"]"#, limit: 2).result.text
      #expect(!bookmark.isEmpty && !sortedBookmark.isEmpty)
      let found = [
        try client.find(limit: 0), try client.find(limit: 0, skip: 3), try client.find(limit: 0, skip: 1_000),
        try client.find(limit: 0, bookmark: bookmark), try client.find(sort: #"["n"]"#, limit: 0),
        try client.find(sort: #"["n"]"#, limit: 0, bookmark: sortedBookmark),
        try client.find(#"{"n":{"$gt":50}}"#, limit: 0, fields: #"["n"]"#), try client.find(#"{"n":-1}"#, limit: 0),
      ]
      for reply in found {
        #expect(reply.documents.isEmpty && reply.result.found == 0 && reply.result.text.isEmpty)
        #expect(reply.result.revision == 1)
      }
      #expect(try client.find(limit: 0, countOnly: true).result.found == 100)
    }

    @Test func `every operation is executed, whatever features the hello asks for`() throws {
      let server = try TestServer()
      for features in [0, Features.documents, Features.ranges, Features.uploads, 1 << 31] {
        let client = try TestClient(server.address)
        var buffer = ByteBuffer()
        buffer.appendRequest(ClientHello(features: features, credit: 1 << 20, name: "test"), id: 1)
        let hello = try client.call(buffer.toArray())
        #expect(unsafe ServerHello(body: hello.body.span.bytes)?.features == features & Features.all)
        #expect(try client.call(Request.open("test", id: 2)).isDone)
        try client.putNumbered(1)
        let range = [0, 0, 0, 0] + Request.bytes(UInt32(4)) + Request.bytes(UInt64(0)) + Array("key1000000".utf8)
        let requests = [
          Request.find(id: 3), Request.aggregate(id: 3, aggregation: "{}"), Request.change(id: 3, update: "{}"),
          Request.make(.indexList, id: 3), Request.apply([.update("key1000000", "{}")], id: 3),
          Request.make(.getRange, id: 3, range), Request.make(.uploadBegin, id: 3),
        ]
        for request in requests { #expect(try client.call(request).isDone) }
      }
    }

    @Test func `a malformed body, and text that is no query, are refused`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let body = Array(Request.find(id: 9, selector: "{}")[12...])
      for (offset, byte) in [(0, 8), (1, 1), (2, 1), (3, 1), (4, 1), (16, 3), (20, 1), (31, 0xFF)] as [(Int, UInt8)] {
        var wrong = body
        wrong[offset] = byte
        #expect(try client.call(Request.make(.find, id: 9, wrong)).isError(.malformed, id: 9), "byte \(offset)")
      }
      for size in 0..<body.count {
        #expect(try client.call(Request.make(.find, id: 9, Array(body[..<size]))).isError(.malformed, id: 9))
      }
      #expect(try client.call(Request.make(.find, store: 7, id: 9, body)).isError(.storeUnknown, id: 9))
      let texts: [(request: [UInt8], reason: String)] = [
        (Request.find(id: 9, selector: "{"), "JSON"), (Request.find(id: 9, selector: #"{"a":{"$gth":1}}"#), "$.a"),
        (Request.find(id: 9, selector: "\u{0}"), "JSON"), (Request.find(id: 9, sort: "{}"), "sort"),
        (Request.find(id: 9, sort: "[1]"), "$.sort[0]"), (Request.find(id: 9, fields: #"["a",""]"#), "$.fields[1]"),
        (Request.find(id: 9, bookmark: "x"), "bookmark"), (Request.find(id: 9, countOnly: true, sort: "x"), "sort"),
        (Request.find(id: 9, selector: #"{"$text":"x"}"#), "text"),
      ]
      for (request, reason) in texts {
        let reply = try client.call(request)
        #expect(reply.isError(.illegalArgument, id: 9) && reply.message.contains(reason), "\(reply)")
      }
      #expect(try client.figures(store: 1)["snapshots"] == 0)
      #expect(try client.find().documents.isEmpty)
    }
  }
}
