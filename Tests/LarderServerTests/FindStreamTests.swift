import Foundation
import LarderServer
import Platform
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// How finds are answered while other things happen: `Protocol/wire.md` §5 and §6.7.
  struct FindStreamTests {
    /// A server whose finds may take their time.
    private func makeServer(workers: Int = 1, limits: (inout ServerLimits) -> Void = { _ in }) throws -> TestServer {
      try TestServer(workers: workers) {
        $0.findTime = .seconds(60)
        limits(&$0)
      }
    }

    private let expensive = hostileSelector

    /// Whether all snapshots end soon. A job that was ended keeps its own until it has looked at a batch.
    private func hasNoSnapshots(_ client: TestClient) throws -> Bool {
      try eventually { try client.figures(store: 1)["snapshots"] == 0 }
    }

    @Test func `documents are sent while the credit is above zero, and the result is the end`() throws {
      let server = try makeServer()
      let client = try server.connect(credit: 1)
      try client.putNumbered(3, size: 40_000)
      for fields in ["", #"["x"]"#] {
        try client.send(Request.find(id: 5, fields: fields))
        var frames = [try client.receive()]
        while frames.last!.more {
          #expect(client.isSilent(for: 0.03))
          try client.send(Request.credit(UInt32(frames.last!.size), id: 5))
          frames.append(try client.receive())
        }
        #expect(frames.count == 3)
        #expect(try FoundReply(frames).keys == ["key1000000", "key1000001", "key1000002"])
        #expect(try hasNoSnapshots(client))
      }
    }

    @Test func `a result that does not fit has a frame to itself`() throws {
      let server = try makeServer()
      let client = try server.connect()
      let text = #"{"x":"\#(String(repeating: "x", count: 65_536 - 16 - 1 - 8))"}"#
      #expect(try client.call(Request.put("a", Array(text.utf8), id: 3)).isDone)
      let found = try client.find()
      #expect(found.frameSizes == [65_536 + 12, 60] && found.keys == ["a"])
    }

    @Test func `credit that arrives before the documents are found counts`() throws {
      let server = try makeServer()
      let client = try server.connect(credit: 1)
      try client.putNumbered(3, size: 40_000)
      try client.send(Request.find(id: 5) + Request.credit(1 << 20, id: 5))
      #expect(try FoundReply(client.receiveReplyStream(5)).keys.count == 3)
    }

    @Test func `a find is canceled before its documents are found, and between its frames`() throws {
      let server = try makeServer { $0.finds = 1 }
      let client = try server.connect(credit: 1)
      try client.putNumbered(2_000, size: 100)
      // Before it runs, while it runs, and after its first frame.
      try client.send(Request.find(id: 5) + Request.cancel(5))
      #expect(try client.receive().isError(.cancelled, id: 5))
      try client.send(Request.find(id: 5, selector: expensive))
      usleep(20_000)
      try client.send(Request.cancel(5) + Request.cancel(5))
      #expect(try client.receive().isError(.cancelled, id: 5))
      try client.send(Request.find(id: 5))
      #expect(try client.receive().more)
      try client.send(Request.cancel(5))
      #expect(try client.receive().isError(.cancelled, id: 5))
      #expect(try hasNoSnapshots(client))
      #expect(try client.find(countOnly: true).result.found == 2_000)
    }

    @Test func `a find whose client disconnects, or whose store is dropped, ends`() throws {
      let server = try makeServer { $0.finds = 1 }
      let witness = try server.connect()
      try witness.putNumbered(2_000, size: 100)
      do {
        let client = try server.connect()
        try client.send(Request.find(id: 5, selector: expensive))
        #expect(try eventually { try witness.figures(store: 1)["snapshots"] == 1 })
      }
      #expect(try hasNoSnapshots(witness))
      // Before it runs, while it runs, and after its first frame.
      let client = try server.connect(credit: 1)
      try client.send(Request.find(id: 5) + Request.drop("test", id: 6))
      let replies = try [client.receive(), client.receive()]
      #expect(replies.contains { $0.isError(.storeUnknown, id: 5) } && replies.contains { $0.id == 6 && $0.isDone })
      for selector in [expensive, ""] {
        #expect(try client.call(Request.create("test", id: 7)).isDone)
        #expect(try client.call(Request.open("test", id: 8)).isDone)
        try client.putNumbered(2_000, size: 100)
        try client.send(Request.find(id: 5, selector: selector))
        if selector.isEmpty { #expect(try client.receive().more) }
        #expect(try witness.call(Request.drop("test", id: 9)).isDone)
        try client.send(Request.credit(1 << 20, id: 5))
        #expect(try client.receive().isError(.storeUnknown, id: 5))
      }
    }

    @Test func `a find that is never read expires`() throws {
      let server = try makeServer { $0.streamTimeout = .milliseconds(100) }
      let client = try server.connect(credit: 1)
      try client.putNumbered(2, size: 70_000)
      #expect(try client.call(Request.find(id: 5)).more)
      #expect(try client.receive().isError(.answerExpired, id: 5))
      #expect(try hasNoSnapshots(client))
    }

    @Test func `a find shows one snapshot, whatever is written meanwhile`() throws {
      let server = try makeServer(workers: 2)
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(2_000, size: 100)
      let isDone = Flag()
      let writer = Thread {
        guard let writer = try? server.connect() else { return }
        var generation = 1
        while !isDone.isSet {
          try? writer.putNumbered(2_000, size: 100, generation: generation)
          _ = try? writer.call(Request.keys(.deleteMany, ["key1000007", "key1001007"], id: 5))
          generation += 1
        }
        isDone.end()
      }
      writer.start()
      for round in 0..<20 {
        let found = try client.find(sort: round % 2 == 0 ? "" : #"["g",{"n":"desc"}]"#)
        #expect(Set(found.documents.map(\.revision)).count == 1 && [1_998, 2_000].contains(found.documents.count))
        #expect(found.documents.allSatisfy { $0.revision <= found.result.revision })
        #expect(found.keys == (round % 2 == 0 ? found.keys.sorted() : found.keys.sorted().reversed()))
      }
      isDone.set()
      #expect(isDone.waitForEnd())
      #expect(try hasNoSnapshots(client))
    }

    @Test func `gets are answered while a find runs`() throws {
      let server = try makeServer()
      let (finder, client) = (try server.connect(), try server.connect())
      try finder.putNumbered(4_000, size: 100)
      try finder.send(Request.find(id: 5, countOnly: true, selector: expensive) + Request.get("key1000000", id: 6))
      #expect(try finder.receive().id == 6)
      var gets = 0
      while finder.isSilent(for: 0.001) {
        #expect(try client.call(Request.get("key1000001", id: 7)).isDone)
        gets += 1
      }
      #expect(gets > 0)
      let reply = try finder.receive()
      #expect(try FoundReply([reply]).result.examinedDocuments == 4_000)
    }

    @Test func `a short find does not wait for a long one`() throws {
      let server = try makeServer()
      let (long, short) = (try server.connect(), try server.connect())
      try long.putNumbered(4_000, size: 100)
      try long.send(Request.find(id: 5, countOnly: true, selector: expensive))
      #expect(try short.find(limit: 1).keys == ["key1000000"])
      #expect(long.isSilent(for: 0.001))
      #expect(try long.receive(within: 60).isDone)
    }

    @Test func `an open find counts as a request in flight, and its id is in use`() throws {
      let server = try makeServer { $0.maxRequestsInFlight = 1 }
      let client = try server.connect(credit: 1)
      try client.putNumbered(3, size: 70_000)
      try client.send(Request.find(id: 5) + Request.find(id: 6) + Request.all(id: 7))
      for id: UInt32 in [6, 7] { #expect(try client.receive().isError(.tooManyRequests, id: id)) }
      #expect(try client.receive().more)
      try client.send(Request.find(id: 5))
      #expect(try client.receive().isNotice(.malformed))
      #expect(try client.isClosed())
    }

    @Test func `a client that shuts down its sending side still gets the documents of its find`() throws {
      let server = try makeServer()
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(2_000, size: 100)
      try client.send(Request.find(id: 5, selector: #"{"n":{"$lt":1500}}"#))
      client.endSending()
      #expect(try FoundReply(client.receiveReplyStream(5)).documents.count == 1_500)
      #expect(try client.isClosed())
    }

    @Test func `stopping the server lets finds run until the shutdown timeout`() throws {
      let server = try makeServer { $0.shutdownTimeout = .milliseconds(300) }
      let (client, witness) = (try server.connect(credit: 1 << 30), try server.connect())
      try client.putNumbered(20_000, size: 100)
      try client.send(Request.find(id: 5, limit: 1) + Request.find(id: 6, selector: expensive))
      #expect(try eventually { try witness.figures(store: 1)["snapshots"] == 1 })
      #expect(try #require(server.stop()) < 5)
      #expect(try FoundReply([client.receive()]).keys == ["key1000000"])
      #expect(try client.receive().isNotice(.shuttingDown))
    }

    @Test func `a find ends when its client may not read the store any more`() throws {
      let server = try TestServer(tcp: true, rules: [AccessRule(.tcp, .read)]) { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1)
      var limits = ServerLimits()
      limits.findTime = .seconds(60)
      try server.server.change(stores: [], limits: limits, rules: [AccessRule(.tcp, .write)])
      try client.putNumbered(3_000, size: 100)
      try client.send(Request.find(id: 5) + Request.find(id: 6, selector: expensive))
      #expect(try client.receive().more)
      let other = try StoreName("other")
      try server.server.change(stores: [], limits: limits, rules: [AccessRule(.tcp, .read, store: other)])
      let replies = try [client.receive(), client.receive()]
      for id: UInt32 in 5...6 { #expect(replies.contains { $0.isError(.notPermitted, id: id) }, "\(replies)") }
      try server.server.change(stores: [], limits: limits, rules: [AccessRule(.tcp, .read)])
      #expect(try hasNoSnapshots(client))
      #expect(try client.find(limit: 1, countOnly: true).result.found == 3_000)
    }

    @Test func `a find sends entries evicted while it runs, but not expired ones`()
      throws
    {
      let store = Store(name: try StoreName("small"), engine: .memory, limit: MemoryLimit("1MiB"))
      let server = try TestServer(serving: [store]) { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1, store: "small")
      let writer = try server.connect(store: "small")
      try writer.putNumbered(2_000, size: 100)
      #expect(try writer.call(Request.put("zzz", Array("{}".utf8), id: 3, expiry: 50)).isDone)
      try client.send(Request.find(id: 5))
      var frames = [try client.receive()]
      // These take the place of all others.
      for generation in 0..<4 { try writer.putNumbered(2_000, size: 150, generation: 1 + generation) }
      usleep(60_000)
      try client.send(Request.credit(1 << 30, id: 5))
      while frames.last!.more { frames.append(try client.receive()) }
      let found = try FoundReply(frames)
      #expect(found.keys == (0..<2_000).map { "key\(1_000_000 + $0)" })
      #expect(Set(found.documents.map(\.revision)) == [1] && found.result.found == 2_001)
      #expect(try hasNoSnapshots(client))
    }

    // MARK: Figures

    @Test func `a find counts when its result is known, with its outcome and all of its time`() throws {
      let server = try TestServer {
        $0.findTime = .milliseconds(20)
        $0.slowThreshold = .milliseconds(5)
      }
      let client = try server.connect()
      try client.putNumbered(4_000, size: 100)
      let before = try client.figures()
      #expect(try client.find(limit: 3).keys.count == 3)
      #expect(try client.call(Request.find(id: 5, selector: expensive)).isError(.queryStopped, id: 5))
      try client.send(Request.find(id: 6, selector: expensive) + Request.cancel(6))
      #expect(try client.receive().isError(.cancelled, id: 6))
      let after = try client.figures()
      #expect(after["requests_total"]! >= before["requests_total"]! + 3)
      #expect(after["scans_total"]! - before["scans_total"]! == 1 && after["finds"] == 0)
      #expect((4...256).contains(after["examined_documents_total"]! - before["examined_documents_total"]!))
      let log = try client.call(Request.make(.slowLog, store: 0, id: 9))
      let finds = try #require(unsafe SlowLogRecord.decode(log.body.span.bytes))
        .filter { $0.operations == 1 << UInt32(Operation.find.rawValue) }
      // The others are in the log, too, if the machine is slow.
      let slowest = try #require(finds.max { $0.nanoseconds < $1.nanoseconds })
      #expect(slowest.nanoseconds > 20_000_000 && slowest.store == "test")
      #expect(slowest.requests == 1 && slowest.receivedBytes > 4_000)
    }

    // MARK: Limits

    @Test func `a find that exceeds a limit stops with an error that names the limit`() throws {
      let limits: [(name: String, set: (inout ServerLimits) -> Void, request: [UInt8])] = [
        ("limits.find-time", { $0.findTime = .milliseconds(1) }, Request.find(id: 5, selector: expensive)),
        ("limits.find-documents", { $0.findDocuments = 1_999 }, Request.find(id: 5, selector: #"{"n":1}"#)),
        ("limits.find-memory", { $0.findMemory = 7_999 }, Request.find(id: 5)),
        ("limits.find-memory", { $0.findMemory = 20_000 }, Request.find(id: 5, sort: #"["x"]"#)),
      ]
      for limit in limits {
        let server = try TestServer(limits: limit.set)
        let client = try server.connect(credit: 1 << 30)
        try client.putNumbered(2_000, size: 100)
        let reply = try client.call(limit.request)
        #expect(reply.isError(.queryStopped, id: 5) && reply.message.contains(limit.name), "\(reply)")
        #expect(reply.message.contains("of 2000 entries"), "\(reply)")
        #expect(try hasNoSnapshots(client))
      }
      // Exactly as much as the limits permit; and with a limit of its own, a query keeps little.
      let server = try TestServer {
        $0.findDocuments = 2_000
        $0.findMemory = 8_000
      }
      let client = try server.connect(credit: 1 << 30)
      try client.putNumbered(2_000)
      #expect(try client.find().documents.count == 2_000)
      #expect(try client.find(sort: #"["x",{"n":"desc"}]"#, limit: 2, skip: 1).keys == ["key1001998", "key1001997"])
    }

    @Test func `finds beyond the limit of the server are refused until one has ended`() throws {
      let server = try makeServer { $0.finds = 5 }
      let clients = try (0..<3).map { _ in try server.connect() }
      try clients[0].putNumbered(2_000, size: 100)
      // One connection has a quarter of them, rounded up.
      for client in clients[..<2] {
        for id: UInt32 in 5...6 { try client.send(Request.find(id: id, selector: expensive)) }
        for _ in 0..<3 { #expect(try client.call(Request.find(id: 7)).isError(.tooManyRequests, id: 7)) }
      }
      try clients[2].send(Request.find(id: 5, selector: expensive))
      #expect(try clients[2].figures()["finds"] == 5)
      // No other connection has more than this one would have.
      for _ in 0..<3 { #expect(try clients[2].call(Request.find(id: 6)).isError(.tooManyRequests, id: 6)) }
      try clients[0].send(Request.cancel(5))
      #expect(try clients[0].receive().isError(.cancelled, id: 5))
      try clients[2].send(Request.find(id: 6, selector: expensive))
      #expect(try clients[2].figures()["finds"] == 5)
      #expect(try clients[0].call(Request.find(id: 5)).isError(.tooManyRequests, id: 5))
    }

    @Test func `no frame of a find is larger than the maximum`() throws {
      let server = try makeServer { $0.maxFrameBytes = 1 << 17 }
      let client = try server.connect(credit: 1 << 30)
      let text = #"{"x":"\#(String(repeating: "x", count: 110_000))","y":[1]}"#
      for key in ["a", "b"] { #expect(try client.call(Request.put(key, Array(text.utf8), id: 3)).isDone) }
      #expect(try client.find().frameSizes.allSatisfy { $0 <= 4 + 1 << 17 })
      // The bookmark would have the value of the sort.
      let stopped = try client.call(Request.find(id: 5, limit: 1, sort: #"["x"]"#))
      #expect(stopped.isError(.queryStopped, id: 5) && stopped.message.contains("bookmark"), "\(stopped)")
      // An object that is made of an array's elements is longer than the array.
      let array = (0..<999).map { _ in "[1]" }.joined(separator: ",")
      let large = #"{"x":"\#(String(repeating: "x", count: 118_000))","y":[\#(array)]}"#
      #expect(try client.call(Request.put("b", Array(large.utf8), id: 3)).isDone)
      let elements = (0..<999).map { "\"y.\($0).0\"" }.joined(separator: ",")
      #expect(try client.find(fields: "[\(elements)]").documents.count == 2)
      let tooLarge = try client.call(Request.find(id: 5, fields: #"["x",\#(elements)]"#))
      #expect(tooLarge.isError(.valueTooLarge, id: 5) && tooLarge.message.contains("\"b\""), "\(tooLarge)")
      #expect(try hasNoSnapshots(client))
    }

    // MARK: Durability

    @Test(arguments: [1, 2])
    func `a find never shows writes or deletions that are not on the disk`(workers: Int) throws {
      let engine = TestEngine()
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(workers: workers, serving: [store])
      let (writer, reader) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      let finders = try (0..<3).map { _ in try server.connect(store: "durable") }
      try writer.putNumbered(10)
      #expect(try reader.find().documents.count == 10)
      engine.pause()
      try writer.send(Request.put("key1000003", Array("1".utf8), id: 20))
      #expect(writer.isSilent(for: 0.05))
      // An overwrite has removed a match, which all of them reveal.
      try finders[0].send(Request.find(id: 5, limit: 1))
      try finders[1].send(Request.find(id: 5, countOnly: true))
      try finders[2].send(Request.find(id: 5, fields: #"["n"]"#))
      for finder in finders { #expect(finder.isSilent(for: 0.05)) }
      #expect(try reader.call(Request.get("key1000001", id: 6)).isDone)
      engine.resume()
      #expect(try writer.receive().isDone)
      #expect(try FoundReply(finders[0].receiveReplyStream(5)).keys == ["key1000000"])
      #expect(try FoundReply(finders[1].receiveReplyStream(5)).result.found == 9)
      #expect(try FoundReply(finders[2].receiveReplyStream(5)).documents.count == 9)
      engine.pause()
      try writer.send(Request.put("key1000004", Array("1".utf8), id: 21))
      #expect(writer.isSilent(for: 0.05))
      try finders[0].send(Request.find(id: 5, limit: 1))
      #expect(finders[0].isSilent(for: 0.05))
      engine.fail(.failed("fdatasync: Input/output error"))
      #expect(try finders[0].receive().isError(.failed, id: 5))
      #expect(try finders[0].pings())
    }
  }
}
