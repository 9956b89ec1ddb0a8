import Documents
import Foundation
import LarderServer
import Platform
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Updates and deletions of all documents that match: `Protocol/wire.md` §6.9.
  struct ChangeMatchingTests {
    /// The texts of all entries by key, and their revisions.
    private func contents(_ client: TestClient) throws -> [String: (text: String, revision: UInt64)] {
      try client.send(Request.all(id: 77))
      let entries = try client.receiveReplyStream(77).flatMap(\.entries)
      return Dictionary(
        uniqueKeysWithValues: entries.map { ($0.text, (String(decoding: $0.value, as: UTF8.self), $0.revision)) })
    }

    @Test func `on every engine, an update changes the documents that match, and no others`() throws {
      var random = RandomQueries(.announced())
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      let update = try DocumentUpdate(parsing: #"{"$set": {"a": 1, "z": [true]}}"#)
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        for round in 0..<(SeededGenerator.isThorough ? 200 : 15) {
          var documents: [Document] = []
          for number in 0..<20 {
            let (key, text) = ("key \(number)", random.text())
            let revision = try #require(try client.call(Request.put(key, Array(text.utf8), id: 5)).number)
            documents.append(Document(text, id: key, revision: revision))
          }
          let before = try contents(client)
          let selector = random.query().selector
          let matches = try documents.find(selector)
          let expected = try Dictionary(
            uniqueKeysWithValues: matches.map {
              ($0.id!, String(decoding: try update.apply(to: $0.text.span), as: UTF8.self))
            })
          let changedKeys = Set(expected.filter { before[$0.key]?.text != $0.value }.keys)
          let rehearsal = try client.change(selector.json.description, update.description, dryRun: true)
          #expect(rehearsal.matched == UInt64(matches.count) && rehearsal.changed == UInt64(changedKeys.count))
          #expect(rehearsal.revision == 0)
          #expect(try contents(client).mapValues(\.revision) == before.mapValues(\.revision))
          let changes = try client.change(selector.json.description, update.description)
          #expect(
            changes.matched == UInt64(matches.count) && changes.changed == UInt64(changedKeys.count), "\(selector)")
          #expect(changes.examinedDocuments <= 20 && changes.nanoseconds > 0)
          let after = try contents(client)
          for (key, entry) in after {
            #expect(entry.text == (expected[key] ?? before[key]?.text), "\(key) \(selector)")
            #expect((entry.revision == changes.revision) == changedKeys.contains(key), "\(key) \(selector)")
          }
          guard round % 3 == 0 else { continue }
          let deletion = try client.change(selector.json.description)
          let left = try contents(client)
          #expect(deletion.matched == deletion.changed && left.count == 20 - Int(deletion.changed))
          #expect(try client.find(selector.json.description, countOnly: true).result.found == 0)
        }
        #expect(try client.figures(store: 1)["snapshots"] == 0)
      }
    }

    @Test func `a change is one commit, which watches see with one revision`() throws {
      let server = try TestServer()
      let (client, watcher) = (try server.connect(), try server.connect())
      try client.putNumbered(100)
      try watcher.send(Request.watch(id: 9))
      #expect(try watcher.receive().more)
      let update = try client.change(#"{"n":{"$lt":30}}"#, #"{"$inc":{"n":1000}}"#)
      let deletion = try client.change(#"{"n":{"$gte":1000}}"#)
      #expect(update.revision == 2 && update.changed == 30 && deletion.revision == 3 && deletion.changed == 30)
      var changes: [TestChange] = []
      while changes.count < 60 { changes += try watcher.receive().changes }
      #expect(changes.map(\.revision) == Array(repeating: 2, count: 30) + Array(repeating: 3, count: 30))
      #expect(
        changes.prefix(30).allSatisfy { $0.kind == .single } && changes.suffix(30).allSatisfy { $0.kind == .deleted })
      #expect(try client.find(countOnly: true).result.found == 70)
    }

    @Test func `an update keeps the expiry of documents, and ignores those that have expired`() throws {
      let server = try TestServer()
      let client = try server.connect()
      for (key, expiry) in [("a", 0), ("b", 60_000), ("c", 20)] as [(String, UInt64)] {
        #expect(try client.call(Request.put(key, Array("{}".utf8), id: 3, expiry: expiry)).isDone)
      }
      usleep(30_000)
      #expect(try client.change("", #"{"x":1}"#).changed == 2)
      let entries = try client.find().documents
      #expect(entries.map(\.text) == ["a", "b"] && entries[0].expiry == 0 && (1...60_000).contains(entries[1].expiry))
    }

    @Test func `an update that is impossible in one document changes none`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(50)
      #expect(try client.call(Request.put("odd", Array(#"{"n":"text"}"#.utf8), id: 3)).isDone)
      let before = try contents(client)
      for isDryRun in [false, true] {
        let reply = try client.call(Request.change(id: 9, update: #"{"$inc":{"n":1}}"#, dryRun: isDryRun))
        #expect(reply.isError(.illegalArgument, id: 9) && reply.message.contains("\"odd\""), "\(reply)")
      }
      let large = String(repeating: "x", count: 1_000_000)
      #expect(try client.call(Request.put("odd", Array(#"{"y":"\#(large)"}"#.utf8), id: 3)).isDone)
      let server2 = try TestServer { $0.maxFrameBytes = 1 << 17 }
      let small = try server2.connect()
      let text = #"{"x":"\#(String(repeating: "x", count: 110_000))"}"#
      #expect(try small.call(Request.put("a", Array(text.utf8), id: 3)).isDone)
      let reply = try small.call(
        Request.change(id: 9, update: #"{"y":"\#(String(repeating: "y", count: 20_000))"}"#))
      #expect(reply.isError(.valueTooLarge, id: 9) && reply.message.contains("\"a\""), "\(reply)")
      #expect(
        try contents(client).filter { $0.key != "odd" }.mapValues(\.revision)
          == before.filter { $0.key != "odd" }.mapValues(\.revision))
    }

    @Test func `one commit changes up to 65,536 documents`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(65_536)
      #expect(try client.call(Request.put("another", Array(#"{"n":1}"#.utf8), id: 3)).isDone)
      for update in [#"{"$set":{"n":-1}}"#, nil] {
        let reply = try client.call(Request.change(id: 9, update: update))
        #expect(reply.isError(.queryStopped, id: 9) && reply.message.contains("65536"), "\(reply)")
      }
      #expect(try client.figures(store: 1)["revision"] == 2)
      #expect(try client.change(#"{"_id":{"$ne":"another"}}"#, #"{"$set":{"n":-1}}"#).changed == 65_536)
      #expect(try client.find(#"{"n":-1}"#, countOnly: true).result.found == 65_536)
      // What is unchanged does not count.
      #expect(try client.change("", #"{"$set":{"n":-1}}"#).changed == 1)
      #expect(try client.call(Request.delete("another", id: 4)).isDone)
      #expect(try client.change("").changed == 65_536)
      #expect(try client.figures(store: 1)["entries"] == 0)
    }

    @Test func `documents that are written meanwhile are examined again`() throws {
      let server = try TestServer(workers: 2) { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(1_000)
      let isDone = Flag()
      // Each put counts in the text what the updates must not lose.
      let writer = Thread {
        guard let writer = try? server.connect() else { return }
        var count = 0
        while !isDone.isSet {
          count += 1
          _ = try? writer.call(Request.put("counter\(count % 8)", Array(#"{"own":\#(count),"n":0}"#.utf8), id: 5))
          _ = try? writer.call(Request.delete("key\(1_000_000 + count % 1_000)", id: 6))
        }
        isDone.end()
      }
      writer.start()
      var updates = 0
      for _ in 0..<200 {
        try client.send(Request.change(id: 9, selector: #"{"n":{"$gte":0}}"#, update: #"{"$inc":{"n":1}}"#))
        let reply = try client.receive(within: 30)
        guard reply.isDone else {
          Issue.record("others have outpaced it: \(reply)")
          break
        }
        updates += 1
        let changes = try #require(unsafe MatchingChanges(reply.body.span.bytes))
        #expect(changes.matched == changes.changed)
      }
      isDone.set()
      #expect(isDone.waitForEnd())
      #expect(updates > 0)
      // A deleted document did not come back, and no update was lost or made twice.
      let found = try client.find(#"{"g":0}"#)
      for document in found.documents {
        let json = try JSONValue(parsing: document.value.span)
        let key = Int64(document.text.dropFirst(4))! - 0
        #expect(json["n"] == .integer(key % 1_000_000 + Int64(updates)), "\(document.text)")
      }
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `a change that is canceled before it takes place has no effect`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect()
      try client.putNumbered(20_000)
      for _ in 0..<50 {
        let revision = try #require(client.figures(store: 1)["revision"])
        try client.send(Request.change(id: 9, update: #"{"$inc":{"n":1}}"#))
        usleep(UInt32.random(in: 0..<200_000))
        try client.send(Request.cancel(9))
        let reply = try client.receive()
        if reply.isDone {
          #expect(unsafe MatchingChanges(reply.body.span.bytes)?.revision == revision + 1)
        } else {
          #expect(reply.isError(.cancelled, id: 9))
        }
        #expect(try client.figures(store: 1)["revision"] == (reply.isDone ? revision + 1 : revision))
      }
      // The job notices the last cancellation after the reply, if it waits to commit.
      #expect(try eventually { try client.figures(store: 1)["snapshots"] == 0 })
    }

    @Test(arguments: [1, 2])
    func `the reply to a change of matching documents waits until it is on the disk`(workers: Int) throws {
      let engine = TestEngine()
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(workers: workers, serving: [store])
      let (client, reader) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      try client.putNumbered(10)
      engine.pause()
      try client.send(Request.change(id: 5, selector: #"{"n":3}"#, update: #"{"n":33}"#))
      #expect(client.isSilent(for: 0.1))
      // What matches nothing reveals the change, too.
      try reader.send(Request.change(id: 6, selector: #"{"n":3}"#))
      #expect(reader.isSilent(for: 0.1))
      engine.resume()
      let reply = try client.receive()
      #expect(unsafe MatchingChanges(reply.body.span.bytes)?.revision == 2)
      let nothing = try reader.receive()
      #expect(unsafe MatchingChanges(nothing.body.span.bytes)?.matched == 0)
      engine.fail(.failed("fdatasync: Input/output error"))
      try client.send(Request.change(id: 7, update: #"{"n":34}"#))
      #expect(try client.receive().isError(.failed, id: 7))
      #expect(try client.call(Request.change(id: 8, update: #"{"n":35}"#)).isError(.storeReadOnly, id: 8))
    }

    @Test func `a change that its limits do not permit has no effect`() throws {
      let limits: [(name: String, set: (inout ServerLimits) -> Void)] = [
        ("limits.find-documents", { $0.findDocuments = 1_999 }), ("limits.find-memory", { $0.findMemory = 20_000 }),
        ("limits.find-time", { $0.findTime = .nanoseconds(1) }),
      ]
      for limit in limits {
        let server = try TestServer(limits: limit.set)
        let client = try server.connect()
        try client.putNumbered(2_000, size: 100)
        let reply = try client.call(Request.change(id: 5, update: #"{"n":0}"#))
        #expect(reply.isError(.queryStopped, id: 5) && reply.message.contains(limit.name), "\(reply)")
        #expect(try client.figures(store: 1)["revision"] == 1)
      }
    }

    @Test func `a large change in a log waits for space`() throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores) { $0.findTime = .seconds(60) }
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        for start in stride(from: 0, to: 400, by: 20) {
          let documents = (start..<start + 20).map { number in
            (key: "key\(number)", value: Array(#"{"x":"\#(String(repeating: "x", count: 40_000))"}"#.utf8))
          }
          #expect(try client.call(Request.putMany(documents, id: 3)).isDone)
        }
        try client.send(Request.change(id: 9, update: #"{"$set":{"y":1}}"#))
        let reply = try client.receive(within: 30)
        let changes = try #require(unsafe MatchingChanges(reply.body.span.bytes), "\(reply)")
        #expect(changes.changed == 400)
        #expect(try client.find(#"{"y":1}"#, countOnly: true).result.found == 400)
      }
    }

    @Test func `a store with a limit evicts nothing that a change writes`() throws {
      let store = Store(name: try StoreName("small"), engine: .memory, limit: MemoryLimit("1MiB"))
      let server = try TestServer(serving: [store])
      let client = try server.connect(store: "small")
      try client.putNumbered(2_000, size: 100)
      let changes = try client.change(#"{"n":{"$gte":1900}}"#, #"{"y":"\#(String(repeating: "y", count: 2_000))"}"#)
      #expect(changes.changed == 100)
      #expect(try client.find(#"{"y":{"$exists":true}}"#, countOnly: true).result.found == 100)
      let refused = try client.call(
        Request.change(id: 9, update: #"{"y":"\#(String(repeating: "y", count: 20_000))"}"#))
      #expect(refused.isError(.valueTooLarge, id: 9), "\(refused)")
    }

    @Test func `a change requires the right to write, also when it ends`() throws {
      let rules = [AccessRule(.tcp, .read)]
      let server = try TestServer(tcp: true, rules: [AccessRule(.tcp, .write)]) { $0.findTime = .seconds(60) }
      let client = try server.connect()
      try client.putNumbered(20_000)
      try client.send(
        Request.change(id: 5, selector: hostileSelector, update: #"{"n":0}"#) + Request.find(id: 6, limit: 1))
      var limits = ServerLimits()
      limits.findTime = .seconds(60)
      try server.server.change(stores: [], limits: limits, rules: rules)
      let replies = try [client.receive(), client.receive(within: 30)]
      #expect(replies.contains { $0.isError(.notPermitted, id: 5) }, "\(replies)")
      #expect(replies.contains { $0.id == 6 && $0.isDone }, "\(replies)")
      #expect(try client.call(Request.change(id: 7, update: #"{"n":0}"#)).isError(.notPermitted, id: 7))
      usleep(100_000)
      #expect(try client.figures(store: 1)["revision"] == 1)
    }

    @Test func `malformed bodies, and texts that are no selector or update, are refused`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let body = Array(Request.change(id: 9, selector: "{}", update: "{}")[12...])
      for (offset, byte) in [(0, 4), (0, 2), (1, 1), (2, 1), (3, 1), (4, 9)] as [(Int, UInt8)] {
        var wrong = body
        wrong[offset] = byte
        #expect(try client.call(Request.make(.changeMatching, id: 9, wrong)).isError(.malformed, id: 9), "\(offset)")
      }
      #expect(try client.call(Request.make(.changeMatching, store: 7, id: 9, body)).isError(.storeUnknown, id: 9))
      for (selector, update) in [("{", "{}"), ("", "{"), ("", "[]"), ("", #"{"$set":1}"#), ("", #"{"_id":1}"#)] {
        let reply = try client.call(Request.change(id: 9, selector: selector, update: update))
        #expect(reply.isError(.illegalArgument, id: 9), "\(reply)")
      }
    }
  }

  /// Groups of documents that match: `Protocol/wire.md` §6.8.
  struct AggregateTests {
    @Test func `on every engine, the server computes the same aggregations as Documents`() throws {
      var random = RandomQueries(.announced())
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      let aggregates: [Aggregate] = [.count, .sum("a"), .average("b"), .min("c"), .max("a.b")]
      for store in opened.stores {
        let client = try server.connect(credit: 1 << 30, store: store.name.text)
        var documents: [Document] = []
        for number in 0..<60 {
          let (key, text) = ("key \(number)", random.text())
          let revision = try #require(try client.call(Request.put(key, Array(text.utf8), id: 5)).number)
          documents.append(Document(text, id: key, revision: revision))
        }
        for _ in 0..<(SeededGenerator.isThorough ? 1_000 : 60) {
          let selector = random.query().selector
          let fields = random.paths()
          let expected = try documents.groups(of: selector, by: fields, computing: aggregates)
          let aggregation = DocumentAggregation(by: fields, computing: aggregates)
          let (rows, result) = try client.aggregate(selector.json.description, aggregation.description)
          #expect(rows == expected, "\(selector) \(fields)")
          #expect(result.found == UInt64(expected.count) && result.examinedDocuments <= 60 && result.text.isEmpty)
        }
        #expect(try client.figures(store: 1)["snapshots"] == 0)
      }
    }

    @Test func `rows arrive in frames as the credit allows`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1)
      try client.putNumbered(5_000)
      try client.send(Request.aggregate(id: 5, aggregation: #"{"by":["n"],"compute":["count",{"max":"_id"}]}"#))
      var frames = [try client.receive()]
      while frames.last!.more {
        #expect(client.isSilent(for: 0.02))
        try client.send(Request.credit(UInt32(frames.last!.size), id: 5))
        frames.append(try client.receive())
      }
      #expect(frames.count > 3 && frames.allSatisfy { $0.size <= 65_536 + 12 })
      #expect(try FoundReply(frames).documents.count == 5_000)
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `an aggregation that exceeds a limit stops`() throws {
      let product = #"{"by":[\#((0..<20).map { "\"a\($0)\"" }.joined(separator: ","))]}"#
      let server = try TestServer { $0.findMemory = 1 << 20 }
      let client = try server.connect()
      try client.putNumbered(10_000)
      let groups = try client.call(Request.aggregate(id: 9, aggregation: #"{"by":["n"]}"#))
      #expect(groups.isError(.queryStopped, id: 9) && groups.message.contains("limits.find-memory"), "\(groups)")
      // One document is in 3^20 groups.
      let members = (0..<20).map { #""a\#($0)":[1,2,3]"# }.joined(separator: ",")
      #expect(try client.call(Request.put("a", Array("{\(members)}".utf8), id: 3)).isDone)
      let reply = try client.call(Request.aggregate(id: 9, selector: #"{"a0":1}"#, aggregation: product))
      #expect(reply.isError(.queryStopped, id: 9) && reply.message.contains("limits.find-memory"), "\(reply)")
      #expect(try client.aggregate("", "{}").rows == [DocumentGroup(json: ["by": [], "values": [[10_001]]])])
    }

    @Test func `malformed bodies, and texts that are no selector or aggregation, are refused`() throws {
      let server = try TestServer()
      let client = try server.connect()
      for body in [[], [0, 0, 0, 0, 0, 0, 0], [1, 0, 0, 0, 0, 0, 0, 0], [0, 0, 0, 0, 9, 0, 0, 0, 1]] as [[UInt8]] {
        #expect(try client.call(Request.make(.aggregate, id: 9, body)).isError(.malformed, id: 9), "\(body)")
      }
      for (selector, aggregation) in [("{", "{}"), ("", ""), ("", "[]"), ("", #"{"by":"a"}"#), ("", #"{"x":1}"#)] {
        let reply = try client.call(Request.aggregate(id: 9, selector: selector, aggregation: aggregation))
        #expect(reply.isError(.illegalArgument, id: 9), "\(aggregation): \(reply)")
      }
    }
  }
}
