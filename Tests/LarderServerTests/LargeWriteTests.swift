import Documents
import Foundation
import LarderServer
import Platform
import Storage
import Synchronization
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Writes that are made in slices, while others use the store.
  struct LargeWriteTests {
    private static let count = 2_000

    private static func documents(_ generation: Int, count: Int = count) -> [(key: String, value: [UInt8])] {
      (0..<count).map {
        ("key\($0)", Array(#"{"g":\#(generation),"tags":[\#($0 % 7),\#($0 % 5),\#(generation)]}"#.utf8))
      }
    }

    private static func generation(_ value: [UInt8]) -> Int? {
      Int(String(decoding: value.dropFirst(5).prefix { $0 != 44 }, as: UTF8.self))
    }

    // MARK: Atomicity

    @Test func `on every engine, readers see all of a large write or nothing`() throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(workers: 2, serving: opened.stores) { $0.findTime = .seconds(60) }
      for store in opened.stores {
        let writer = try server.connect(store: store.name.text)
        #expect(try writer.ensureIndex(#"{"fields":["g"]}"#).isCreated)
        #expect(try writer.ensureIndex(#"{"fields":["tags"]}"#).isCreated)
        #expect(try writer.call(Request.putMany(Self.documents(0), id: 3)).isDone)
        let watcher = try server.connect(credit: 1 << 30, store: store.name.text)
        try watcher.send(Request.watch(id: 9, keysOnly: true))
        #expect(try watcher.receive().more)
        let (address, name) = (server, store.name.text)
        let rounds = 4
        let isDone = Atomic(false)
        let seen = try inParallel(4) { index -> Int in
          let client = try address.connect(credit: 1 << 30, store: name)
          var last = 0
          if index == 0 {
            defer { isDone.store(true, ordering: .relaxed) }
            for round in 1...rounds {
              let reply =
                round % 2 == 1
                ? try client.call(Request.putMany(Self.documents(round), id: 3))
                : try client.call(Request.apply(Self.documents(round).map { .put($0.key, $0.value) }, id: 3))
              #expect(reply.number == UInt64(round + 1), "\(reply)")
            }
            return rounds
          }
          while !isDone.load(ordering: .relaxed) {
            var generations: Set<Int> = []
            switch index {
            case 1:
              try client.send(Request.keys(.getMany, ["key0", "key1000", "key1999"], id: 5))
              for entry in try client.receiveReplyStream(5).flatMap(\.entries) {
                generations.insert(try #require(Self.generation(entry.value)))
              }
            case 2:
              try client.send(Request.all(id: 6))
              let entries = try client.receiveReplyStream(6).flatMap(\.entries)
              #expect(entries.count == Self.count)
              for entry in entries { generations.insert(try #require(Self.generation(entry.value))) }
            default:
              let found = try client.find(#"{"g":{"$gte":\#(last)}}"#, countOnly: true, index: "g").result
              #expect(found.found == UInt64(Self.count))
              generations = [Int(found.revision) - 1]
              #expect(try client.call(Request.make(.count, id: 7)).number == UInt64(Self.count))
            }
            #expect(generations.count == 1, "\(generations)")
            #expect(generations.first ?? 0 >= last)
            last = generations.first ?? last
          }
          return last
        }
        #expect(seen.allSatisfy { $0 <= rounds })
        var counts: [UInt64: Int] = [:]
        while counts.values.reduce(0, +) < rounds * Self.count {
          for change in try watcher.receive().changes { counts[change.revision, default: 0] += 1 }
        }
        #expect(counts.count == rounds && counts.values.allSatisfy { $0 == Self.count })
        #expect(try writer.find(#"{"g":\#(rounds)}"#, countOnly: true, index: "g").result.found == UInt64(Self.count))
        let tagged = (0..<Self.count).filter { $0 % 7 == 3 || $0 % 5 == 3 }.count
        #expect(try writer.find(#"{"tags":3}"#, countOnly: true, index: "tags").result.found == UInt64(tagged))
      }
    }

    // MARK: Order

    @Test func `requests behind a large write take effect after it, and are answered in order`() throws {
      let server = try TestServer(workers: 2)
      let client = try server.connect(credit: 1 << 30)
      let keys = (0..<Self.count).map { "key\($0)" }
      for round in 0..<3 {
        try client.send(
          Request.put("key7", [9], id: 3) + Request.putMany(Self.documents(round), id: 4) + Request.get("key7", id: 5)
            + Request.put("key7", [8], id: 6) + Request.keys(.deleteMany, keys + ["nobody"], id: 7)
            + Request.get("key7", id: 8) + Request.make(.count, id: 9) + Request.ping(10))
        #expect(try client.receive().isDone)
        let revision = try #require(try client.receive().number)
        let entry = try client.receive().entries[0]
        #expect(entry.revision == revision && Self.generation(entry.value) == round)
        #expect(try client.receive().number == revision + 1)
        #expect(try client.receive().number == UInt64(Self.count))
        #expect(try client.receive().isError(.notFound, id: 8))
        #expect(try client.receive().number == 0)
        #expect(try client.receive().id == 10)
      }
    }

    @Test func `a write of another client during a large one takes effect before or after it`() throws {
      let server = try TestServer(workers: 2)
      let documents = Self.documents(1, count: 20_000)
      let (client, other) = (try server.connect(), try server.connect())
      for _ in 0..<5 {
        try client.send(Request.putMany(documents, id: 4))
        var revisions: [UInt64] = []
        while client.isSilent(for: 0.001) {
          revisions.append(try #require(try other.call(Request.put("key5", [1], id: 5)).number))
        }
        let large = try #require(try client.receive().number)
        #expect(!revisions.contains(large))
        let newest = max(large, revisions.last ?? 0)
        #expect(try other.call(Request.get("key5", id: 6)).entries[0].revision == newest)
        #expect(try other.call(Request.get("key6", id: 6)).entries[0].revision == large)
      }
    }

    // MARK: Refusals

    @Test func `a large write that is refused changes nothing`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("key1999", [1], id: 3)).number == 1)
      var records = Self.documents(1).map { Request.write($0.key, $0.value) }
      records[1_999] = Request.write("key1999", [2], ifAbsent: true)
      var reply = try client.call(Request.putMany(records: records, id: 4))
      #expect(
        reply.isError(.conditionFailed, id: 4) && reply.message.contains("record 2000 on \"key1999\""), "\(reply)")
      records[1_999] = Request.write("", [2])
      reply = try client.call(Request.putMany(records: records, id: 5))
      #expect(reply.isError(.keyInvalid, id: 5) && reply.message.contains("record 2000"), "\(reply)")
      records[1_999].removeLast()
      reply = try client.call(Request.putMany(records: records, id: 6))
      #expect(reply.isError(.malformed, id: 6), "\(reply)")
      let operations = Self.documents(1).map { TestOperation.put($0.key, $0.value) }
      reply = try client.call(Request.apply(operations + [.check("key1999", revision: 2)], id: 7))
      #expect(reply.isError(.conditionFailed, id: 7) && reply.message.contains("operation 2001"), "\(reply)")
      #expect(try client.call(Request.make(.count, id: 8)).number == 1)
      #expect(try client.call(Request.get("key1999", id: 9)).entries[0].revision == 1)
      // A commit without changes takes no revision.
      #expect(try client.call(Request.keys(.deleteMany, (0..<2_000).map { "none\($0)" }, id: 10)).number == 0)
      #expect(try client.call(Request.apply((0..<2_000).map { .checkAbsent("none\($0)") }, id: 11)).number == 0)
      #expect(try client.call(Request.put("next", [1], id: 12)).number == 2)
    }

    // MARK: Ends

    @Test func `a store can be dropped during a large write`() throws {
      let server = try TestServer(workers: 2)
      let documents = Self.documents(1, count: 20_000)
      for round in 0..<5 {
        let (client, other) = (try server.connect(), try server.connect(store: "test"))
        #expect(try client.ensureIndex(#"{"fields":["tags"]}"#).isCreated)
        try client.send(Request.putMany(documents, id: 4))
        _ = client.isSilent(for: 0.02 * Double(round))
        try other.send(Request.put("a", [1], id: 5))
        #expect(try other.call(Request.drop("test", id: 6)).id == 5)
        #expect(try other.receive().isDone)
        let reply = try client.receive()
        #expect(reply.number == 1 || reply.number == 2 || reply.isError(.storeUnknown, id: 4), "\(reply)")
        #expect(try other.call(Request.create("test", id: 7)).isDone)
      }
    }

    @Test func `a large write of a client that disconnects takes place as a whole or not at all`() throws {
      let server = try TestServer(workers: 2)
      let client = try server.connect()
      let documents = Self.documents(1, count: 20_000)
      for round in 0..<5 {
        let writer = try server.connect()
        try writer.send(Request.putMany(documents, id: 4))
        _ = writer.isSilent(for: 0.01 * Double(round))
      }
      // It waits for large writes before it.
      #expect(try client.call(Request.put("last", [1], id: 5)).isDone)
      let count = try client.call(Request.make(.count, id: 6)).number
      #expect(count == 1 || count == 20_001)
    }

    @Test func `the server stops during large writes`() throws {
      let server = try TestServer(workers: 2) { $0.shutdownTimeout = .milliseconds(1) }
      let clients = try (0..<3).map { _ in try server.connect() }
      for client in clients { try client.send(Request.putMany(Self.documents(1, count: 20_000), id: 4)) }
      #expect(server.stop() != nil)
    }

    // MARK: Indexes

    @Test func `indexes are correct after large writes, also of documents with many keys`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      for field in ["a", "b", "c"] { #expect(try client.ensureIndex(#"{"fields":["\#(field)"]}"#).isCreated) }
      var random = SeededGenerator.announced()
      var expected: [String: (a: Set<Int>, b: Int)] = [:]
      for round in 0..<3 {
        var records: [(key: String, value: [UInt8])] = []
        for _ in 0..<1_100 {
          // Some keys are there several times.
          let key = "key\(Int.random(in: 0..<1_200, using: &random))"
          let numbers = (0..<Int.random(in: 0..<150, using: &random)).map { _ in Int.random(in: 0..<400, using: &random)
          }
          let list = numbers.map { "\($0)" }.joined(separator: ",")
          records.append((key, Array(#"{"a":[\#(list)],"b":\#(round),"c":[\#(list)]}"#.utf8)))
          expected[key] = (Set(numbers), round)
        }
        #expect(try client.call(Request.putMany(records, id: 3)).isDone)
        let gone = (0..<300).map { _ in "key\(Int.random(in: 0..<1_200, using: &random))" }
        #expect(try client.call(Request.keys(.deleteMany, gone, id: 4)).isDone)
        for key in gone { expected[key] = nil }
        for number in [0, 7, 399] {
          let keys = expected.filter { $0.value.a.contains(number) }.map(\.key).sorted()
          #expect(try client.find(#"{"a":\#(number)}"#, index: "a").keys.sorted() == keys)
          #expect(try client.find(#"{"c":\#(number)}"#, index: "c").keys.sorted() == keys)
        }
        let keys = expected.filter { $0.value.b == round }.map(\.key).sorted()
        #expect(try client.find(#"{"b":\#(round)}"#, index: "b").keys.sorted() == keys)
      }
      #expect(try client.change("{}").changed == UInt64(expected.count))
      #expect(try client.indexes().allSatisfy { $0["entries"] == 0 })
    }

    @Test func `entries of a large write expire on time`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.putMany(Self.documents(1), id: 3, expiry: 100)).isDone)
      #expect(try eventually { try client.figures(store: 1)["expired_total"] == UInt64(Self.count) })
    }

    // MARK: Starvation

    @Test func `a large update ends although others write its documents all the time`() throws {
      let server = try TestServer(workers: 2) { $0.findTime = .seconds(60) }
      let (client, writer) = (try server.connect(), try server.connect())
      try client.putNumbered(10_000)
      try client.send(Request.change(id: 4, selector: "{}", update: #"{"$inc":{"g":1}}"#))
      var number = 0
      while client.isSilent(for: 0.001) {
        let key = "key\(1_000_000 + number % 10_000)"
        #expect(try writer.call(Request.put(key, Array(#"{"g":0,"w":1}"#.utf8), id: 5)).isDone)
        number += 37
      }
      let reply = try client.receive()
      let changes = try #require(unsafe MatchingChanges(reply.body.span.bytes), "\(reply)")
      #expect(changes.changed == 10_000)
    }
  }
}
