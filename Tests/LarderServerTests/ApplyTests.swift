import Documents
import Foundation
import LarderServer
import Platform
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Several operations as one commit: `Protocol/wire.md` §6.11.
  struct ApplyTests {
    /// The size of a document, in bytes, that is too large to be updated under the store's lock.
    static let largeSize = 20_000
    /// The size of a document that durable engines keep on disk only.
    static let separatedSize = 40_000

    static func document(_ n: Int, size: Int = 0) -> [UInt8] {
      Array(#"{"n":\#(n),"x":"\#(String(repeating: "x", count: size))"}"#.utf8)
    }

    /// Returns the number in a document.
    static func number(in document: [UInt8]) throws -> Int {
      let number: Int64? =
        if case .integer(let number)? = try JSONValue(parsing: document.span)["n"] { number } else { nil }
      return Int(try #require(number))
    }

    // MARK: Effects

    @Test(arguments: [0, largeSize, separatedSize])
    func `on every engine, all operations are one commit, which watches see`(size: Int) throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      for store in opened.stores {
        let client = try server.connect(store: store.name.text)
        let watcher = try server.connect(credit: 1 << 30, store: store.name.text)
        for (key, n) in [("a", 1), ("b", 2), ("c", 3), ("gone", 4)] {
          #expect(try client.call(Request.put(key, Self.document(n, size: size), id: 3)).isDone)
        }
        // The commit writer moves large values to the disk.
        if store.engine == .log, size == Self.separatedSize {
          #expect(try eventually { try client.figures(store: 1)["values_on_disk"] == 4 })
        }
        try watcher.send(Request.watch(id: 9))
        #expect(try watcher.receive().more)
        try client.send(
          Request.apply(
            [
              .check("a", revision: 1), .checkAbsent("new"), .update("a", #"{"$inc":{"n":10}}"#, ifRevision: 1),
              .put("new", [1, 2], expiry: 60_000, ifAbsent: true), .delete("gone", ifRevision: 4), .delete("nobody"),
              .update("b", #"{"x":null}"#), .putList("list", [[7], []]),
              .update("counter", #"{"$inc":{"n":5}}"#, creates: true),
              .check("c", revision: 3),
            ], id: 5))
        #expect(try client.receive(within: 30).number == 5)
        var changes: [TestChange] = []
        while changes.count < 6 { changes += try watcher.receive().changes }
        #expect(changes.allSatisfy { $0.revision == 5 } && changes.count == 6)
        #expect(Set(changes.map(\.key)) == ["a", "new", "gone", "b", "list", "counter"])
        #expect(changes.first { $0.key == "gone" }?.kind == .deleted)
        try client.send(Request.keys(.getMany, ["a", "b", "c", "new", "gone", "list", "counter"], id: 6))
        let entries = try client.receiveReplyStream(6).flatMap(\.entries)
        try #require(entries.count == 7)
        let values = entries.map(\.value)
        #expect(values[0] == Self.document(11, size: size) && values[1] == Array(#"{"n":2}"#.utf8))
        #expect(values[3] == [1, 2] && !entries[4].isPresent)
        #expect(values[5] == ListValue.encode([[7], []]) && values[6] == Array(#"{"n":5}"#.utf8))
        #expect(entries.map(\.revision) == [5, 5, 3, 5, 0, 5, 5])
        #expect((1...60_000).contains(entries[3].expiry) && entries[0].expiry == 0)
      }
    }

    @Test func `operations on one key take effect in their order`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let large = Self.document(0, size: Self.largeSize)
      for (number, first) in [Self.document(0), large].enumerated() {
        let key = "key\(number)"
        #expect(try client.call(Request.put(key, first, id: 3)).isDone)
        let increment = TestOperation.update(key, #"{"$inc":{"n":1}}"#)
        // The update after the put sees the put, and conditions see none of it.
        let many: [TestOperation] =
          [
            increment, .check(key, revision: UInt64(number * 4 + 1)), increment, .put(key, Self.document(40)),
            increment,
          ]
          + Array(repeating: increment, count: 100)
        #expect(try client.call(Request.apply(many, id: 4)).isDone)
        #expect(try client.call(Request.get(key, id: 5)).entries[0].value == Self.document(141))
        #expect(try client.call(Request.apply([increment, .delete(key), .delete(key)], id: 6)).isDone)
        #expect(try client.call(Request.get(key, id: 7)).isError(.notFound, id: 7))
        let again = try client.call(
          Request.apply([.delete(key), .update(key, #"{"a":1}"#, creates: true), .update(key, #"{"b":2}"#)], id: 8))
        #expect(again.isDone)
        #expect(try client.call(Request.get(key, id: 9)).entries[0].value == Array(#"{"a":1,"b":2}"#.utf8))
      }
      let twice = try client.call(Request.apply([.put("p", [1]), .put("p", [2]), .delete("p"), .put("p", [3])], id: 4))
      #expect(twice.isDone)
      #expect(try client.call(Request.get("p", id: 5)).entries[0].value == [3])
    }

    @Test func `an apply that changes nothing doesn't use a revision`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("a", Self.document(1), id: 3)).number == 1)
      #expect(try client.call(Request.put("large", Self.document(1, size: Self.largeSize), id: 3)).number == 2)
      let batches: [[TestOperation]] = [
        [], [.check("a", revision: 1), .checkAbsent("b")], [.delete("b")], [.update("a", #"{"n":1}"#)],
        [.update("large", #"{"n":1}"#), .check("a", revision: 1)],
      ]
      for batch in batches { #expect(try client.call(Request.apply(batch, id: 4)).number == 0) }
      #expect(try client.figures(store: 1)["revision"] == 2)
    }

    @Test func `an update keeps the expiry, and one that creates an entry has none`() throws {
      let server = try TestServer()
      let client = try server.connect()
      for size in [0, Self.largeSize] {
        #expect(try client.call(Request.put("a", Self.document(1, size: size), id: 3, expiry: 60_000)).isDone)
        #expect(try client.call(Request.put("b", Self.document(1, size: size), id: 3, expiry: 1)).isDone)
        usleep(3_000)
        let reply = try client.call(
          Request.apply(
            [
              .update("a", #"{"$inc":{"n":1}}"#), .checkAbsent("b"), .update("b", #"{"$inc":{"n":1}}"#, creates: true),
              .put("c", Self.document(1), expiry: 30_000), .update("c", #"{"$inc":{"n":1}}"#),
            ], id: 4))
        #expect(reply.isDone, "\(reply)")
        let entries = try client.call(Request.keys(.getMany, ["a", "b", "c"], id: 5)).entries
        #expect((30_001...60_000).contains(entries[0].expiry) && entries[1].expiry == 0)
        #expect((1...30_000).contains(entries[2].expiry) && entries[1].value == Array(#"{"n":1}"#.utf8))
        #expect(try client.call(Request.delete("b", id: 6)).isDone)
      }
    }

    @Test func `on every engine, indexes reflect what was applied`() throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      for store in opened.stores {
        let client = try server.connect(store: store.name.text)
        #expect(try client.ensureIndex(#"{"fields":["n"]}"#).isCreated)
        let puts = (0..<50).map { TestOperation.put("key\($0)", Self.document($0)) }
        #expect(try client.call(Request.apply(puts, id: 4)).isDone)
        let others = (0..<50).map { number in
          number % 2 == 0
            ? TestOperation.delete("key\(number)") : .update("key\(number)", #"{"$inc":{"n":100}}"#)
        }
        #expect(try client.call(Request.apply(others, id: 5)).isDone)
        #expect(try eventually { try client.call(Request.make(.indexList, id: 6)).message.contains("ready") })
        #expect(try client.find(#"{"n":{"$lt":100}}"#, countOnly: true, index: "n").result.found == 0)
        #expect(try client.find(#"{"n":{"$gte":100}}"#, countOnly: true, index: "n").result.found == 25)
      }
    }

    // MARK: Failures

    @Test func `a failed condition names the first operation that fails and its key, and nothing is written`() throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(serving: opened.stores)
      for store in opened.stores {
        let client = try server.connect(store: store.name.text)
        for (key, size) in [("a", 0), ("large", Self.largeSize)] {
          #expect(try client.call(Request.put(key, Self.document(1, size: size), id: 3)).isDone)
        }
        let failures: [(TestOperation, String)] = [
          (.check("a", revision: 7), "the entry has revision 1, not 7"),
          (.check("none", revision: 7), "there is no entry, but revision 7 was expected"),
          (.checkAbsent("a"), "the key has an entry"), (.put("a", [], ifAbsent: true), "the key has an entry"),
          (.put("none", [], ifRevision: 1), "there is no entry, but revision 1 was expected"),
          (.delete("a", ifRevision: 9), "the entry has revision 1, not 9"),
          (.update("large", "{}", ifRevision: 1), "the entry has revision 2, not 1"),
        ]
        for (operation, reason) in failures {
          let batch = [.put("x", [1]), .update("large", #"{"y":1}"#), operation, .check("a", revision: 1_000)]
          let reply = try client.call(Request.apply(batch, id: 4))
          #expect(reply.isError(.conditionFailed, id: 4), "\(reply)")
          #expect(reply.message.hasPrefix("operation 3 on \"") && reply.message.hasSuffix(": \(reason)"), "\(reply)")
        }
        #expect(try client.figures(store: 1)["revision"] == 2)
        #expect(try client.figures(store: 1)["entries"] == 2)
      }
    }

    @Test(arguments: [0, largeSize])
    func `an update that is impossible fails, and nothing is written`(size: Int) throws {
      let server = try TestServer { $0.maxFrameBytes = 1 << 17 }
      let client = try server.connect()
      #expect(try client.call(Request.put("a", Self.document(1, size: size), id: 3)).isDone)
      #expect(try client.call(Request.apply([.putList("list", [[1]]), .put("text", [1])], id: 3)).isDone)
      let long = String(repeating: "y", count: 62_000)
      let failures: [(TestOperation, ErrorCode)] = [
        (.update("none", "{}"), .notFound), (.update("list", "{}"), .illegalArgument),
        (.update("text", "{}"), .illegalArgument), (.update("a", "["), .illegalArgument),
        (.update("a", #"{"$inc":{"x":1}}"#), .illegalArgument), (.update("a", #"{"_id":1}"#), .illegalArgument),
      ]
      for (operation, code) in failures {
        let batch = [.put("b", [1]), .update("a", #"{"$inc":{"n":1}}"#), operation, .update("none2", "{}")]
        let reply = try client.call(Request.apply(batch, id: 4))
        #expect(reply.isError(code, id: 4) && reply.message.hasPrefix("operation 3 on \""), "\(reply)")
      }
      let grown = try client.call(
        Request.apply([.update("a", #"{"y":"\#(long)"}"#), .update("a", #"{"z":"\#(long)"}"#)], id: 4))
      #expect(grown.isError(.valueTooLarge, id: 4) && grown.message.hasPrefix("operation 2 on \"a\""), "\(grown)")
      #expect(try client.figures(store: 1)["revision"] == 2)
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `an operation that is not valid is named with the reason`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let failures: [(TestOperation, ErrorCode, String)] = [
        (.delete(""), .keyInvalid, #""": a key must not be empty"#),
        (.put("k", [1], ifAbsent: true, ifRevision: 1), .illegalArgument, "an operation can't have two conditions"),
        (.put("k", [1], expiry: 1 << 53 + 1), .illegalArgument, "use 1 ms to 2^53 ms"),
        (.check("k"), .illegalArgument, "a check needs a condition"),
        (.check("a \"quoted\"\n"), .illegalArgument, #"operation 2 on "a \"quoted\"\n": a check"#),
      ]
      for (operation, code, text) in failures {
        let reply = try client.call(Request.apply([.put("x", [1]), operation], id: 4))
        #expect(reply.isError(code, id: 4) && reply.message.hasPrefix("operation 2 on \""), "\(reply)")
        #expect(reply.message.contains(text), "\(reply)")
      }
      #expect(try client.figures(store: 1)["entries"] == 0)
    }

    @Test func `only a value that is a document can be updated, whatever its size`() throws {
      let server = try TestServer()
      let client = try server.connect()
      for size in [0, 1, 100, 100_000] {
        let array =
          size < 2 ? [UInt8](repeating: 0x31, count: size) : Array("[\(String(repeating: " ", count: size))]".utf8)
        #expect(try client.call(Request.put("array", array, id: 3)).isDone)
        let reply = try client.call(Request.apply([.update("array", #"{"a":1}"#)], id: 4))
        #expect(reply.isError(.illegalArgument, id: 4), "\(reply)")
        if size == 0 {
          let reason = "the value is not a JSON object, and only documents can be updated"
          #expect(reply.message == "operation 1 on \"array\": \(reason)")
        }
      }
    }

    // MARK: Limits

    @Test func `one commit has up to 65,536 operations`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect()
      let puts = (0..<65_536).map { TestOperation.put("key\($0)", Array("{}".utf8), ifAbsent: true) }
      let tooMany = try client.call(Request.apply(puts + [.put("more", [])], id: 3))
      #expect(tooMany.isError(.illegalArgument, id: 3) && tooMany.message.contains("65537 operations"), "\(tooMany)")
      try client.send(Request.apply(puts, id: 4))
      #expect(try client.receive(within: 30).number == 1)
      let updates = (0..<65_536).map { TestOperation.update("key\($0)", #"{"a":1}"#, ifRevision: 1) }
      try client.send(Request.apply(updates, id: 5))
      #expect(try client.receive(within: 60).number == 2)
      #expect(try client.find(#"{"a":1}"#, countOnly: true).result.found == 65_536)
      let checks = (0..<65_535).map { TestOperation.check("key\($0)", revision: 2) }
      try client.send(Request.apply(checks + [.check("key65535", revision: 1)], id: 6))
      let failed = try client.receive(within: 30)
      #expect(failed.isError(.conditionFailed, id: 6) && failed.message.hasPrefix("operation 65536 on \"key65535\""))
      try client.send(Request.apply((0..<65_536).map { .delete("key\($0)") }, id: 7))
      #expect(try client.receive(within: 30).number == 3)
      #expect(try client.figures(store: 1)["entries"] == 0)
    }

    @Test func `updates that its limits do not permit have no effect`() throws {
      let limits: [(name: String, set: (inout ServerLimits) -> Void)] = [
        ("limits.find-memory", { $0.findMemory = 100_000 }), ("limits.find-time", { $0.findTime = .nanoseconds(1) }),
      ]
      for limit in limits {
        let server = try TestServer(limits: limit.set)
        let client = try server.connect()
        let puts = (0..<20).map { TestOperation.put("key\($0)", Self.document(1, size: Self.largeSize)) }
        #expect(try client.call(Request.apply(puts, id: 3)).number == 1)
        let updates = (0..<200).map { TestOperation.update("key\($0 % 20)", #"{"$inc":{"n":1}}"#) }
        let reply = try client.call(Request.apply(updates, id: 5))
        #expect(reply.isError(.queryStopped, id: 5) && reply.message.contains(limit.name), "\(reply)")
        #expect(reply.message.hasSuffix("nothing was written in 1 round"), "\(reply)")
        #expect(try client.figures(store: 1)["revision"] == 1)
        #expect(try client.figures(store: 1)["snapshots"] == 0)
        #expect(try client.figures()["finds"] == 0)
      }
    }

    @Test func `a store with a limit evicts nothing that is applied`() throws {
      let store = Store(name: try StoreName("small"), engine: .memory, limit: MemoryLimit("1MiB"))
      let server = try TestServer(serving: [store])
      let client = try server.connect(store: "small")
      try client.putNumbered(2_000, size: 300)
      let puts = (0..<100).map { TestOperation.put("new\($0)", Self.document(-1, size: 4_000)) }
      let grown =
        puts + (0..<100).map { TestOperation.update("new\($0)", #"{"y":"\#(String(repeating: "y", count: 2_000))"}"#) }
      #expect(try client.call(Request.apply(grown, id: 5)).isDone)
      #expect(try client.find(#"{"y":{"$exists":true}}"#, countOnly: true).result.found == 100)
      let figures = try client.figures(store: 1)
      #expect(figures["limited_bytes"]! <= figures["limit_bytes"]! && figures["evicted_total"]! > 0)
      let refused = try client.call(
        Request.apply((0..<300).map { .put("more\($0)", Self.document(-1, size: 4_000)) }, id: 6))
      #expect(refused.isError(.valueTooLarge, id: 6), "\(refused)")
    }

    // MARK: Durability and rights

    @Test(arguments: [0, largeSize])
    func `the reply to an apply waits until what it reveals is on the disk`(size: Int) throws {
      let engine = TestEngine()
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(serving: [store])
      let (client, reader) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      #expect(try client.call(Request.put("a", Self.document(1, size: size), id: 3)).isDone)
      engine.pause()
      try client.send(Request.apply([.update("a", #"{"$inc":{"n":1}}"#)], id: 5))
      #expect(client.isSilent(for: 0.2))
      // A check that passes reveals the commit, and so does one that fails.
      let readers = [reader, try server.connect(store: "durable"), try server.connect(store: "durable")]
      try readers[0].send(Request.apply([.check("a", revision: 2)], id: 6))
      try readers[1].send(Request.apply([.check("a", revision: 1)], id: 6))
      try readers[2].send(Request.apply([.check("a", revision: 1), .update("a", "{}")], id: 6))
      for reader in readers { #expect(reader.isSilent(for: 0.1)) }
      engine.resume()
      #expect(try client.receive().number == 2)
      #expect(try readers[0].receive().number == 0)
      for reader in readers[1...] { #expect(try reader.receive().isError(.conditionFailed, id: 6)) }
      #expect(try client.call(Request.put("b", [1], id: 3)).number == 3)
      engine.fail(.failed("fdatasync: Input/output error"))
      try client.send(Request.apply([.update("a", #"{"$inc":{"n":1}}"#)], id: 7))
      #expect(try client.receive().isError(.failed, id: 7))
      #expect(try client.call(Request.apply([.delete("a")], id: 8)).isError(.storeReadOnly, id: 8))
      // Checks need no room, and wait for nothing but what they reveal.
      #expect(try client.call(Request.apply([.check("b", revision: 3), .checkAbsent("c")], id: 9)).number == 0)
      #expect(try !client.call(Request.apply([.check("a", revision: 4)], id: 9)).isDone)
    }

    @Test func `an apply of large documents can be canceled before it takes place`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect()
      let puts = (0..<200).map { TestOperation.put("key\($0)", Self.document(1, size: Self.largeSize)) }
      #expect(try client.call(Request.apply(puts, id: 3)).number == 1)
      let updates = (0..<200).map { TestOperation.update("key\($0)", #"{"$inc":{"n":1}}"#) }
      for _ in 0..<30 {
        let revision = try #require(client.figures(store: 1)["revision"])
        try client.send(Request.apply(updates, id: 9))
        usleep(UInt32.random(in: 0..<30_000))
        try client.send(Request.cancel(9))
        let reply = try client.receive(within: 30)
        #expect(reply.isDone ? reply.number == revision + 1 : reply.isError(.cancelled, id: 9), "\(reply)")
        #expect(try client.figures(store: 1)["revision"] == (reply.isDone ? revision + 1 : revision))
      }
      // The job ends its snapshot when it notices.
      #expect(try eventually { try client.figures(store: 1)["snapshots"] == 0 })
    }

    @Test func `metrics and the slow log name the operation`() throws {
      let server = try TestServer { $0.slowThreshold = .zero }
      let client = try server.connect()
      #expect(try client.call(Request.put("a", Self.document(1, size: Self.largeSize), id: 3)).isDone)
      #expect(try client.call(Request.apply([.update("a", #"{"y":1}"#)], id: 4)).isDone)
      #expect(try client.call(Request.apply([.check("a", revision: 2)], id: 5)).isDone)
      #expect(try client.figures()["scans_total"] == 0)
      let log = try client.call(Request.make(.slowLog, store: 0, id: 6))
      let entries = try #require(unsafe SlowLogRecord.decode(log.body.span.bytes))
      #expect(entries.count { $0.operations == 1 << 31 } >= 2)
      #expect(Operation(rawValue: 31)?.name == "apply")
    }

    // MARK: Concurrency

    @Test(arguments: [0, largeSize])
    func `concurrent updates of several clients are neither lost nor seen half-done`(size: Int) throws {
      let opened = try StoresOfAllEngines()
      let server = try TestServer(workers: 2, serving: opened.stores) { $0.findTime = .seconds(60) }
      for store in opened.stores {
        let name = store.name.text
        let client = try server.connect(store: name)
        let keys = ["a", "b", "c"]
        let first = keys.map { TestOperation.put($0, Self.document(1_000, size: size)) }
        #expect(try client.call(Request.apply(first, id: 3)).isDone)
        let rounds = size == 0 ? 200 : 30
        let doneCounts = try inParallel(4) { thread in
          let client = try server.connect(credit: 1 << 30, store: name)
          var doneCount = 0
          for round in 0..<rounds {
            let (from, to) = (keys[(thread + round) % 3], keys[(thread + round + 1 + round % 2) % 3])
            try client.send(
              Request.apply(
                [
                  .update(from, #"{"$inc":{"n":-1}}"#), .update(to, #"{"$inc":{"n":1}}"#),
                  .update("count", #"{"$inc":{"n":1}}"#, creates: true),
                ], id: 5))
            let reply = try client.receive(within: 30)
            if reply.isDone { doneCount += 1 } else { #expect(reply.isError(.tooManyRequests, id: 5), "\(reply)") }
            let entries = try client.call(Request.keys(.getMany, keys, id: 6)).entries
            let sum = try entries.reduce(0) { try $0 + Self.number(in: $1.value) }
            #expect(sum == 3_000, "\(name)")
          }
          return doneCount
        }
        let count = try client.call(Request.get("count", id: 7)).entries[0].value
        #expect(count == Array(#"{"n":\#(doneCounts.reduce(0, +))}"#.utf8), "\(name)")
        #expect(doneCounts.reduce(0, +) > rounds * 3, "\(name)")
      }
    }
  }
}
