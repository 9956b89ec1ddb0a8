import LarderServer
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// The order of a connection's requests: `Protocol/wire.md` §8.
  struct OrderTests {
    private static let increment = #"{"$inc":{"n":1}}"#
    private static let documents = (0..<70).map { (key: "key\(10 + $0)", value: ApplyTests.document($0)) }
    private static let largeKey = "large"

    /// A request whose reply or effect depends on the requests before it.
    private struct Step: Sendable {
      typealias MakeRequest = @Sendable (TestClient, UInt32) throws -> [UInt8]

      let name: String
      let operation: Wire.Operation
      let isWrite: Bool
      let request: MakeRequest

      static func write(_ name: String, _ operation: Wire.Operation, _ request: @escaping MakeRequest) -> Step {
        Step(name: name, operation: operation, isWrite: true, request: request)
      }

      static func read(_ name: String, _ operation: Wire.Operation, _ request: @escaping MakeRequest) -> Step {
        Step(name: name, operation: operation, isWrite: false, request: request)
      }
    }

    private static let steps: [Step] = [
      .write("put", .put) { _, id in Request.put("key10", ApplyTests.document(500), id: id) },
      .write("put of a large value", .put) { _, id in
        Request.put("key11", ApplyTests.document(501, size: ApplyTests.separatedSize), id: id)
      },
      .write("put if absent", .put) { _, id in Request.put("key12", ApplyTests.document(1), id: id, ifAbsent: true) },
      .write("put-many", .putMany) { _, id in
        Request.putMany([("key10", ApplyTests.document(502)), ("new", ApplyTests.document(1))], id: id)
      },
      .write("delete", .delete) { _, id in Request.delete("key10", id: id) },
      .write("delete-many", .deleteMany) { _, id in Request.keys(.deleteMany, ["key10", "key12", "new"], id: id) },
      .write("delete-all", .deleteAll) { _, id in Request.make(.deleteAll, id: id) },
      .write("apply", .apply) { _, id in
        Request.apply([.update("key10", increment, creates: true), .delete("key13")], id: id)
      },
      .write("apply with many updates", .apply) { _, id in
        Request.apply((0..<65).map { .update("key\(10 + $0)", increment, creates: true) }, id: id)
      },
      .write("apply to a large document", .apply) { _, id in
        Request.apply(
          [.update(largeKey, increment, creates: true), .update("key10", increment, creates: true)], id: id)
      },
      .write("apply with a large put", .apply) { _, id in
        Request.apply(
          [
            .put("key11", ApplyTests.document(503, size: 8_000)),
            .update("key10", increment, creates: true),
          ], id: id)
      },
      .write("update of what matches", .changeMatching) { _, id in Request.change(id: id, update: increment) },
      .write("deletion of what matches", .changeMatching) { _, id in
        Request.change(id: id, selector: #"{"n":{"$lt":60}}"#)
      },
      .write("upload-put", .uploadPut) { client, id in
        let upload = try #require(client.call(Request.make(.uploadBegin, id: 7)).number)
        let value = ApplyTests.document(504)
        let part = Request.bytes(upload) + Request.bytes(UInt64(0)) + value
        try #require(client.call(Request.make(.uploadPart, store: 0, id: 8, part)).isDone)
        return Request.make(
          .uploadPut, id: id,
          Request.bytes(upload) + Request.bytes(UInt64(value.count)) + Request.write("key10", []))
      },
      .read("get", .get) { _, id in Request.get("key10", id: id) },
      .read("get-many", .getMany) { _, id in Request.keys(.getMany, ["key10", "key11", "new", largeKey], id: id) },
      .read("get-range", .getRange) { _, id in
        Request.make(
          .getRange, id: id,
          [0, 0, 0, 0] + Request.bytes(UInt32(4)) + Request.bytes(UInt64(3)) + Array("key10".utf8))
      },
      .read("count", .count) { _, id in Request.make(.count, id: id, Array("key".utf8)) },
      .read("page", .page) { _, id in Request.page(id: id, limit: 3) },
      .read("all", .all) { _, id in Request.all(id: id) },
      .read("find", .find) { _, id in Request.find(id: id, limit: 3, selector: #"{"_id":{"$beginsWith":"key1"}}"#) },
      .read("find by a job", .find) { _, id in Request.find(id: id, selector: #"{"n":{"$gt":30}}"#, sort: #"["n"]"#) },
      .read("aggregate", .aggregate) { _, id in Request.aggregate(id: id, aggregation: #"{"compute":[{"sum":"n"}]}"#) },
      .read("dry run", .changeMatching) { _, id in
        Request.change(id: id, selector: #"{"n":{"$lt":60}}"#, update: increment, dryRun: true)
      },
      .read("watch", .watch) { _, id in Request.watch(id: id) },
      .read("stats", .stats) { _, id in Request.make(.stats, id: id) },
    ]

    // MARK: Pairs

    @Test func `on every engine, a request behind any other sees what that one has done, and nothing else`() throws {
      // All stores have the same requests, and so the same revisions.
      let opened = try StoresOfAllEngines()
      let (server, reference) = (try TestServer(serving: opened.stores), try TestServer())
      let clients = try opened.stores.map { try server.connect(credit: 1 << 30, store: $0.name.text) }
      let referenceClient = try reference.connect(credit: 1 << 30)
      for first in Self.steps {
        for second in Self.steps where first.isWrite || second.isWrite {
          let expected = try run([first, second], on: referenceClient, together: false)
          for (client, store) in zip(clients, opened.stores) {
            let found = try run([first, second], on: client, together: true)
            try #require(found == expected, "\(second.name) behind \(first.name), \(store.engine)")
          }
        }
      }
    }

    private func setUp(_ client: TestClient) throws {
      let large = (key: Self.largeKey, value: ApplyTests.document(0, size: 32_000))
      try client.send(
        Request.make(.deleteAll, id: 3) + Request.putMany(Self.documents + [large], id: 4))
      for _ in 0..<2 { try #require(client.receive().isDone) }
    }

    /// What two requests return, and what the store has afterward.
    private struct Outcome: Equatable {
      var replies: [String]
      let entries: [TestEntry]
    }

    /// - Parameter together: Whether the second request is sent without waiting for the reply to the first.
    private func run(_ steps: [Step], on client: TestClient, together: Bool) throws -> Outcome {
      try setUp(client)
      let requests = try steps.enumerated().map { try $1.request(client, UInt32(10 + $0)) }
      var frames: [UInt32: [Reply]] = [:]
      var pending: Set<UInt32> = []
      func receiveReplies() throws {
        while !pending.isEmpty {
          let reply = try client.receive()
          frames[reply.id, default: []].append(reply)
          let isWatch = steps[Int(reply.id) - 10].operation == .watch
          if !reply.more || isWatch { pending.remove(reply.id) }
        }
      }
      for number in steps.indices {
        pending.insert(UInt32(10 + number))
        if !together {
          try client.send(requests[number])
          try receiveReplies()
        }
      }
      if together {
        try client.send(requests[0] + requests[1])
        try receiveReplies()
      }
      let revision = try finalRevision(client, steps, &frames)
      for (number, step) in steps.enumerated() where step.operation == .watch {
        let id = UInt32(10 + number)
        while frames[id, default: []].last?.through ?? 0 < revision {
          frames[id, default: []].append(try client.receive())
        }
        try client.send(Request.cancel(id))
        while true {
          let reply = try client.receive()
          if reply.isError(.cancelled, id: id) { break }
          frames[id, default: []].append(reply)
        }
      }
      try client.send(Request.all(id: 5))
      let entries = try client.receiveReplyStream(5).flatMap(\.entries)
      let replies = try steps.enumerated().map { try text(of: frames[UInt32(10 + $0)] ?? [], $1.operation) }
      return Outcome(replies: replies, entries: entries)
    }

    /// Returns the store's revision, and keeps the frames of watches that arrive before it.
    private func finalRevision(
      _ client: TestClient, _ steps: [Step], _ frames: inout [UInt32: [Reply]]
    ) throws -> UInt64 {
      try client.send(Request.make(.stats, id: 6))
      while true {
        let reply = try client.receive()
        if reply.id == 6 { return try #require(figures(in: reply)["revision"]) }
        frames[reply.id, default: []].append(reply)
      }
    }

    private func figures(in reply: Reply) throws -> [String: UInt64] {
      let figures = try #require(unsafe Figure.decode(reply.body.span.bytes))
      return Dictionary(uniqueKeysWithValues: figures.map { ($0.name, $0.value) })
    }

    /// Returns what a reply says, without what differs from time to time.
    private func text(of frames: [Reply], _ operation: Wire.Operation) throws -> String {
      let last = try #require(frames.last)
      guard last.isDone else { return "\(last.code) \(last.message)" }
      switch operation {
      case .find, .aggregate:
        let found = try FoundReply(frames)
        return "\(found.documents) at \(found.result.revision)"
      case .changeMatching:
        let changes = try #require(unsafe MatchingChanges(last.body.span.bytes))
        return "\(changes.matched), \(changes.changed) at \(changes.revision)"
      case .watch: return "from \(frames[0].through): \(frames.flatMap(\.changes))"
      case .stats:
        let figures = try figures(in: last)
        return "\(figures["entries"] ?? .max) at \(figures["revision"] ?? .max)"
      default: return "\(frames.flatMap(\.body))"
      }
    }

    @Test func `statistics requested after a find are no older than the find`() throws {
      let engine = TestEngine()
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(serving: [store])
      let (writer, reader) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      try writer.putNumbered(70)
      for find in [Request.find(id: 5, limit: 1), Request.find(id: 5, sort: #"["n"]"#)] {
        engine.pause()
        try writer.send(Request.put("a", Array("{}".utf8), id: 5))
        #expect(writer.isSilent(for: 0.05))
        try reader.send(find + Request.make(.stats, id: 6))
        #expect(reader.isSilent(for: 0.05))
        engine.resume()
        #expect(try writer.receive().isDone)
        var replies: [UInt32: Reply] = [:]
        for _ in 0..<2 {
          let reply = try reader.receive()
          replies[reply.id] = reply
        }
        let found = try FoundReply([try #require(replies[5])])
        #expect(try figures(in: try #require(replies[6]))["revision"] == found.result.revision)
      }
    }

    // MARK: Stores and indexes

    @Test func `changes of stores and indexes, and what follows them, take place in order`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(70)
      // Each is what the requests of a line return, in their order: a code, or done.
      let lines: [(requests: [(UInt32) -> [UInt8]], codes: [ErrorCode?])] = [
        (
          [{ Request.create("x", id: $0) }, { Request.open("x", id: $0) }, { Request.drop("x", id: $0) }],
          [nil, nil, nil]
        ),
        ([{ Request.open("x", id: $0) }, { Request.create("x", id: $0) }], [.storeUnknown, nil]),
        ([{ Request.drop("x", id: $0) }, { Request.open("x", id: $0) }], [nil, .storeUnknown]),
        (
          [
            { Request.change(id: $0, update: Self.increment) },
            { Request.make(.indexEnsure, id: $0, Array(#"{"fields":["n"],"name":"n"}"#.utf8)) },
            { Request.make(.indexEnsure, id: $0, Array(#"{"fields":["g"],"name":"n"}"#.utf8)) },
            { Request.make(.indexDelete, id: $0, Array("n".utf8)) },
            { Request.make(.indexDelete, id: $0, Array("n".utf8)) },
          ], [nil, nil, .indexExists, nil, .indexUnknown]
        ),
        (
          [
            { Request.change(id: $0, update: Self.increment) }, { Request.drop("test", id: $0) },
            { Request.get("key1000000", id: $0) }, { Request.make(.storeClose, id: $0) },
            { Request.get("key1000000", id: $0) },
          ], [nil, nil, .storeUnknown, nil, .storeUnknown]
        ),
      ]
      for (requests, codes) in lines {
        try client.send(requests.enumerated().flatMap { $1(UInt32(20 + $0)) })
        var found: [UInt32: ErrorCode?] = [:]
        for _ in requests {
          let reply = try client.receive()
          found[reply.id] = .some(reply.isDone ? nil : reply.code)
        }
        #expect(requests.indices.map { found[UInt32(20 + $0)] } == codes)
      }
    }

    // MARK: Behind a change

    /// A change that takes so long that the next requests certainly arrive before its end.
    private func slowChange(id: UInt32) -> [UInt8] {
      Request.change(id: id, selector: hostileSelector, update: Self.increment)
    }

    @Test func `a change can be canceled, whatever waits behind it`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect()
      try client.putNumbered(10_000, size: 1_000)
      let (change, put, get) = (
        slowChange(id: 5), Request.put("a", [1], id: 6), Request.get("a", id: 7)
      )
      for pieces in [[change + put + get + Request.cancel(5)], [change, put + get, Request.cancel(5)]] {
        for piece in pieces {
          #expect(client.isSilent(for: 0.05))
          try client.send(piece)
        }
        #expect(try client.receive().isError(.cancelled, id: 5))
        #expect(try client.receive().number ?? 0 > 0)
        #expect(try client.receive().entries.map(\.value) == [[1]])
      }
      // The second cancel is for a change that has not begun when it arrives.
      try client.send(change + slowChange(id: 8) + Request.cancel(8) + put + Request.cancel(5))
      #expect(try client.receive().isError(.cancelled, id: 5))
      #expect(try client.receive().isError(.cancelled, id: 8))
      #expect(try client.receive().id == 6)
      #expect(try eventually { try client.figures(store: 1)["snapshots"] == 0 })
    }

    @Test func `reply streams go on during a change`() throws {
      let server = try TestServer { $0.findTime = .seconds(60) }
      let client = try server.connect(credit: 1)
      try client.putNumbered(2_000, size: 1_000)
      try client.send(Request.all(id: 4))
      var frames = [try client.receive()]
      try client.send(slowChange(id: 5) + Request.get("key1000000", id: 6) + Request.page(id: 7, limit: 200))
      while frames[frames.count - 1].more {
        try client.send(Request.credit(UInt32(frames[frames.count - 1].size), id: 4))
        frames.append(try client.receive())
        try #require(frames[frames.count - 1].id == 4)
      }
      #expect(frames.flatMap(\.entries).count == 2_000)
      // Credit for a stream that has not begun counts when it begins.
      try client.send(Request.credit(1 << 20, id: 7) + Request.cancel(5))
      #expect(try client.receive().isError(.cancelled, id: 5))
      #expect(try client.receive().entries.count == 1)
      #expect(try client.receiveReplyStream(7).flatMap(\.entries).count == 200)
    }

    @Test func `any amount of input may wait for a change, and no stream ends because of that`() throws {
      let server = try TestServer {
        $0.findTime = .milliseconds(500)
        $0.streamTimeout = .milliseconds(100)
      }
      let client = try server.connect(credit: 1)
      try client.putNumbered(10_000, size: 1_000)
      try client.send(Request.page(id: 4, limit: 100))
      var frames = [try client.receive()]
      let count = 40
      let puts = (0..<count).map { number in
        let size = number == count / 2 ? 1_000_000 : 10_000 * (number % 5)
        return Request.put("a", [UInt8](repeating: UInt8(number), count: size + 1), id: UInt32(100 + number))
      }
      let requests =
        slowChange(id: 5) + Request.credit(1 << 20, id: 4) + puts.flatMap(\.self) + Request.get("a", id: 6)
      try client.send(requests)
      while frames[frames.count - 1].more { frames.append(try client.receive()) }
      #expect(frames.flatMap(\.entries).count == 100)
      #expect(try client.receive().isError(.queryStopped, id: 5))
      let replies = try (0..<count).map { _ in try client.receive() }
      #expect(replies.map(\.id) == (0..<count).map { UInt32(100 + $0) } && replies.allSatisfy { $0.isDone })
      #expect(try client.receive().entries.map(\.value) == [[UInt8](repeating: 39, count: 40_001)])
    }

    @Test func `credit that waits behind much other input arrives before its stream ends`() throws {
      let server = try TestServer {
        $0.findTime = .milliseconds(500)
        $0.streamTimeout = .milliseconds(300)
      }
      let client = try server.connect(credit: 1)
      try client.putNumbered(10_000, size: 1_000)
      try client.send(Request.page(id: 4, limit: 100))
      var frames = [try client.receive()]
      let put = Request.put("a", [UInt8](repeating: 1, count: 500_000), id: 6)
      try client.send(slowChange(id: 5) + put + Request.credit(1 << 20, id: 4))
      #expect(try client.receive().isError(.queryStopped, id: 5))
      #expect(try client.receive().id == 6)
      while frames[frames.count - 1].more { frames.append(try client.receive()) }
      #expect(frames.allSatisfy { $0.isDone } && frames.flatMap(\.entries).count == 100)
    }

    @Test func `requests are executed after the client has shut down its sending side`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(70)
      let half = Request.put("b", [2], id: 9).dropLast()
      try client.send(
        Request.change(id: 5, update: Self.increment) + Request.put("a", [1], id: 6)
          + Request.change(id: 7, update: Self.increment) + Request.get("a", id: 8) + half)
      client.endSending()
      #expect(try (0..<4).map { _ in try client.receive() }.map(\.id) == [5, 6, 7, 8])
      #expect(try client.isClosed())
    }
  }
}
