import Foundation
import LarderServer
import Platform
import TestSupport
import Testing
import Wire

extension ServerTests {
  struct WatchTests {
    /// Starts a watch, and returns the revision of its first frame.
    private func begin(
      _ client: TestClient, id: UInt32 = 50, from: UInt64 = 0, prefix: String = "", keysOnly: Bool = false
    ) throws -> UInt64 {
      let first = try client.call(Request.watch(id: id, from: from, prefix: prefix, keysOnly: keysOnly))
      #expect(first.isDone && first.more && first.id == id && first.body.count == 8, "\(first)")
      return first.through
    }

    @Test func `a watch reports every kind of change, and only changes`() throws {
      let server = try TestServer()
      let (writer, watcher) = (try server.connect(), try server.connect())
      #expect(try begin(watcher) == 0)
      var expected: [TestChange] = []
      func expectChanges(_ changes: TestChange...) throws {
        expected += changes
        var seen: [TestChange] = []
        while seen.count < changes.count { seen += try watcher.receive().changes }
        #expect(seen == changes)
      }
      #expect(try writer.call(Request.put("a", [1], id: 3)).number == 1)
      try expectChanges(TestChange(key: "a", value: [1], revision: 1))
      #expect(try writer.call(Request.put("a", [1], id: 3)).number == 2)
      try expectChanges(TestChange(key: "a", value: [1], revision: 2))
      #expect(try writer.call(Request.put("a", [2], id: 3, ifAbsent: true)).code == .conditionFailed)
      #expect(try writer.call(Request.delete("none", id: 3)).number == 0)
      let list = ListValue.encode([[1], []])
      var body = ByteBuffer()
      unsafe body.appendWrite(kind: .list, key: Array("l".utf8).span.bytes, value: list.span.bytes)
      #expect(try writer.call(Request.make(.put, id: 3, body.toArray())).number == 3)
      try expectChanges(TestChange(kind: .list, key: "l", value: list, revision: 3))
      #expect(try writer.call(Request.putMany([("b", [1]), ("a", [3]), ("b", [])], id: 3)).number == 4)
      try expectChanges(
        TestChange(key: "b", value: [1], revision: 4), TestChange(key: "a", value: [3], revision: 4),
        TestChange(key: "b", revision: 4))
      #expect(try writer.call(Request.delete("a", id: 3)).number == 1)
      try expectChanges(TestChange(kind: .deleted, key: "a", revision: 5))
      #expect(try writer.call(Request.keys(.deleteMany, ["b", "x", "l"], id: 3)).number == 2)
      try expectChanges(
        TestChange(kind: .deleted, key: "b", revision: 6), TestChange(kind: .deleted, key: "l", revision: 6))
      #expect(try writer.call(Request.make(.deleteAll, id: 3)).number == 0)
      #expect(try writer.call(Request.put("z", [], id: 3)).number == 7)
      #expect(try writer.call(Request.make(.deleteAll, id: 3)).number == 1)
      try expectChanges(TestChange(key: "z", revision: 7), TestChange(kind: .allDeleted, revision: 8))
      #expect(watcher.isSilent(for: 0.05))
      // A later watch gets the same changes.
      #expect(try begin(writer, from: 1) == 0)
      #expect(try writer.receive().changes == expected)
    }

    @Test func `the expiry of an entry is not a change`() throws {
      let server = try TestServer()
      let (writer, watcher) = (try server.connect(), try server.connect())
      #expect(try begin(watcher) == 0)
      #expect(try writer.call(Request.put("a", [1], id: 3, expiry: 1_000)).number == 1)
      #expect(try writer.call(Request.put("b", [1], id: 3, expiry: 1)).number == 2)
      var changes: [TestChange] = []
      while changes.count < 2 { changes += try watcher.receive().changes }
      #expect(changes.map(\.revision) == [1, 2])
      #expect((900...1_000).contains(changes[0].expiry) && changes[1].expiry == 1)
      #expect(eventually { (try? writer.call(Request.get("b", id: 3)).code) == .notFound })
      #expect(watcher.isSilent(for: 0.05))
      #expect(try begin(writer, from: 2) == 1)
      // The entry has expired, but a record always states at least one millisecond.
      #expect(try writer.receive().changes.map(\.expiry) == [1])
    }

    @Test func `a watch of a prefix reports its keys and the deletion of all entries`() throws {
      let server = try TestServer { $0.maxChangeFeedBytes = 40_000 }
      let (writer, watcher) = (try server.connect(), try server.connect())
      #expect(try begin(watcher, prefix: "a:", keysOnly: true) == 0)
      for key in ["a", "a:1", "b:1", "a:2"] { #expect(try writer.call(Request.put(key, [1], id: 3)).isDone) }
      #expect(try writer.call(Request.make(.deleteAll, id: 3)).isDone)
      var seen: [TestChange] = []
      while seen.count < 3 { seen += try watcher.receive().changes }
      #expect(
        seen == [
          TestChange(key: "a:1", revision: 2), TestChange(key: "a:2", revision: 4),
          TestChange(kind: .allDeleted, revision: 5),
        ])
      // From time to time, the watch reports its progress, so that the client could continue from there.
      let value = [UInt8](repeating: 1, count: 1_000)
      for _ in 0..<100 { #expect(try writer.call(Request.put("b", value, id: 3)).isDone) }
      var last: UInt64 = 5
      while last < 90 {
        let frame = try watcher.receive()
        #expect(frame.changes == [] && frame.through > last, "\(frame) \(frame.changes)")
        last = frame.through
      }
    }

    @Test func `a watch of a prefix that begins with older changes says when it has caught up`() throws {
      let server = try TestServer()
      let (writer, watcher) = (try server.connect(), try server.connect())
      #expect(try begin(watcher, id: 49) == 0)
      for key in ["a:1", "b:1", "a:2", "b:2"] { #expect(try writer.call(Request.put(key, [1], id: 3)).isDone) }
      #expect(try begin(writer, from: 1, prefix: "a:", keysOnly: true) == 0)
      let frame = try writer.receive()
      #expect(frame.changes.map(\.key) == ["a:1", "a:2"] && frame.through == 4)
      #expect(try begin(writer, id: 51, from: 4, prefix: "a:") == 3)
      let progress = try writer.receive()
      #expect(progress.id == 51 && progress.changes == [] && progress.through == 4)
      #expect(try begin(writer, id: 52, from: 5, prefix: "a:") == 4)
      #expect(writer.isSilent(for: 0.05))
    }

    @Test func `a commit in several frames is complete with the last one`() throws {
      let server = try TestServer()
      let (writer, watcher) = (try server.connect(), try server.connect(credit: 1))
      #expect(try begin(watcher) == 0)
      let value = [UInt8](repeating: 7, count: 1_000)
      let keys = (0..<300).map { "k\($0)" }
      #expect(try writer.call(Request.put("first", [1], id: 3)).isDone)
      #expect(try writer.call(Request.putMany(keys.map { ($0, value) }, id: 3)).number == 2)
      #expect(watcher.isSilent(for: 0.05))
      var (seen, frames): ([TestChange], [Reply]) = ([], [])
      while seen.count < 301 {
        try watcher.send(Request.credit(1 << 16, id: 50))
        frames.append(try watcher.receive())
        seen += frames[frames.count - 1].changes
      }
      #expect(seen.map(\.key) == ["first"] + keys)
      #expect(frames.map(\.through) == Array(repeating: 1, count: frames.count - 1) + [2])
      #expect(frames.count > 4 && frames.allSatisfy { $0.body.count <= 65_536 })
    }

    @Test(arguments: [1, 3]) func `with several writers, no change is omitted, duplicated or out of order`(
      _ workers: Int
    ) throws {
      let server = try TestServer(workers: workers)
      let watchers = try (0..<3).map { try server.connect(credit: $0 == 0 ? 1 : 1 << 20) }
      for watcher in watchers { #expect(try begin(watcher) == 0) }
      var random = SystemRandomNumberGenerator()
      let seeds = (0..<4).map { _ in random.next() as UInt64 }
      print("seeds \(seeds)")
      let writers = seeds.map { seed in
        BackgroundThread {
          let client = try server.connect()
          var random = SeededGenerator(seed: seed)
          for number in 0..<1_500 as Range<UInt32> {
            let keys = (0..<3).map { _ in "k\(UInt8.random(in: 0..<40, using: &random))" }
            let value = [UInt8](repeating: UInt8(number & 255), count: Int.random(in: 0..<200, using: &random))
            let request =
              switch Int.random(in: 0..<100, using: &random) {
              case 0: Request.make(.deleteAll, id: 5)
              case 1..<20: Request.delete(keys[0], id: 5)
              case 20..<30: Request.keys(.deleteMany, keys, id: 5)
              case 30..<50: Request.putMany(keys.map { ($0, value) }, id: 5)
              default: Request.put(keys[0], value, id: 5)
              }
            _ = try client.call(request)
          }
        }
      }
      for writer in writers { try writer.wait() }
      let reader = try server.connect()
      let revision = try #require(try reader.figures(store: 1)["revision"])
      let entries = try reader.call(Request.all(id: 9)).entries
      for watcher in watchers {
        let model = try WatchModel(watcher, id: 50, through: revision)
        #expect(model.values == Dictionary(uniqueKeysWithValues: entries.map { ($0.text, $0.value) }))
        #expect(model.revisions == Dictionary(uniqueKeysWithValues: entries.map { ($0.text, $0.revision) }))
      }
    }

    @Test func `a watch that is too slow reports up to which revision it lost changes`() throws {
      let server = try TestServer { $0.maxChangeFeedBytes = 100_000 }
      let (writer, slow) = (try server.connect(), try server.connect(credit: 1))
      #expect(try begin(slow) == 0)
      let value = [UInt8](repeating: 1, count: 10_000)
      for number in 0..<100 as Range<UInt32> {
        #expect(try writer.call(Request.put("k\(number)", value, id: 3)).isDone)
      }
      try slow.send(Request.credit(1 << 20, id: 50))
      let last = try slow.receive()
      #expect(last.through == 0 && last.more)
      #expect(last.changes.count == 1 && last.changes[0].kind == .lost)
      #expect(try slow.receive().isError(.changesLost, id: 50))
      #expect(try slow.pings())
      // The client can continue from the next revision.
      let lost = last.changes[0].revision
      #expect((70..<95).contains(lost))
      #expect(try begin(slow, from: lost + 1) == lost)
      try slow.send(Request.credit(1 << 20, id: 50))
      #expect(try slow.receive().changes.first?.revision == lost + 1)
    }

    @Test func `a commit larger than the retained changes reaches a watch that keeps up`() throws {
      let server = try TestServer { $0.maxChangeFeedBytes = 1 }
      let (writer, watcher) = (try server.connect(), try server.connect())
      #expect(try begin(watcher) == 0)
      let value = [UInt8](repeating: 1, count: 50_000)
      #expect(try writer.call(Request.putMany((0..<20).map { ("k\($0)", value) }, id: 3)).number == 1)
      var seen = 0
      while seen < 20 {
        let frame = try watcher.receive()
        seen += frame.changes.count
        try watcher.send(Request.credit(UInt32(frame.size), id: 50))
      }
      #expect(seen == 20)
    }

    @Test func `a watch from a revision that wasn't kept or doesn't exist reports lost changes`() throws {
      let server = try TestServer()
      let client = try server.connect()
      for _ in 0..<5 { #expect(try client.call(Request.put("a", [1], id: 3)).isDone) }
      for (from, lost) in [(1, 5), (5, 5), (7, 5), (.max, 5)] as [(UInt64, UInt64)] {
        let frame = try client.call(Request.watch(id: 8, from: from))
        #expect(frame.changes == [TestChange(kind: .lost, revision: lost)], "from \(from)")
        #expect(frame.more && frame.through == min(from - 1, UInt64(Int64.max)))
        #expect(try client.receive().isError(.changesLost, id: 8))
      }
      #expect(try begin(client, from: 6) == 5)
      // Changes after the start of the first watch are kept.
      #expect(try client.call(Request.put("a", [1], id: 3)).changes.map(\.revision) != [5])
    }

    @Test func `the error of lost changes says why they are lost`() throws {
      let server = try TestServer()
      let client = try server.connect()
      for _ in 0..<5 { #expect(try client.call(Request.put("a", [1], id: 3)).isDone) }
      for (from, incarnation, message) in [
        (5, nil, "changes up to revision 5 are no longer kept; read the store and watch it from 6"),
        (
          7, nil,
          "the watch is from revision 7, but the store has only reached revision 5; read the store and watch it from 6"
        ),
        (
          6, 1,
          "this is not the store that was watched before: it has been created again, or may have lost its last changes; "
            + "read the store and watch it from 6"
        ),
      ] as [(UInt64, UInt64?, String)] {
        #expect(try client.call(Request.watch(id: 8, from: from, incarnation: incarnation)).changes.last?.kind == .lost)
        #expect(try client.receive().message == message)
      }
    }

    @Test func `a watch follows only the requested incarnation of a store`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("a", [1], id: 3)).isDone)
      let incarnation = try #require(try client.figures(store: 1)["incarnation"])
      #expect((1..<1 << 63).contains(incarnation))
      let record = TestChange(kind: .incarnation, revision: incarnation)
      for (id, from, asked) in [(50, 0, 0), (51, 2, 0), (52, 2, incarnation), (53, 0, incarnation)]
        as [(UInt32, UInt64, UInt64)]
      {
        let first = try client.call(Request.watch(id: id, from: from, incarnation: asked, prefix: "a"))
        #expect(first.more && first.through == 1 && first.changes == [record], "\(id)")
      }
      #expect(try client.call(Request.put("a", [2], id: 3)).isDone)
      for _ in 50...53 { #expect(try client.receive().changes == [TestChange(key: "a", value: [2], revision: 2)]) }
      for from in [0, 1, 2, 3, 7] as [UInt64] {
        let first = try client.call(Request.watch(id: 60, from: from, incarnation: incarnation ^ 1))
        #expect(first.more && first.through == (from == 0 ? 2 : from - 1))
        #expect(first.changes == [record, TestChange(kind: .lost, revision: 2)], "from \(from)")
        #expect(try client.receive().isError(.changesLost, id: 60))
      }
    }

    @Test func `a client that reconnects soon misses nothing`() throws {
      let server = try TestServer()
      let writer = try server.connect()
      do {
        let watcher = try server.connect()
        #expect(try begin(watcher) == 0)
      }
      #expect(try eventually { try writer.figures(store: 1)["watches"] == 0 })
      #expect(try writer.call(Request.put("a", [1], id: 3)).isDone)
      let watcher = try server.connect()
      #expect(try begin(watcher, from: 1) == 0)
      #expect(try watcher.receive().changes == [TestChange(key: "a", value: [1], revision: 1)])
    }

    @Test func `many watches on many connections all get their changes`() throws {
      let server = try TestServer(workers: 2)
      let writer = try server.connect()
      let watchers = try (0..<40).map { _ in try server.connect() }
      for watcher in watchers {
        for id in 100..<125 as Range<UInt32> { #expect(try begin(watcher, id: id, prefix: "k\(id % 5)") == 0) }
      }
      #expect(try writer.figures(store: 1)["watches"] == 1_000)
      for number in 0..<5 { #expect(try writer.call(Request.put("k\(number)", [1], id: 3)).isDone) }
      for watcher in watchers {
        var seen: [UInt32: [String]] = [:]
        for _ in 0..<25 {
          let frame = try watcher.receive()
          seen[frame.id, default: []] += frame.changes.map(\.key)
        }
        #expect(seen == Dictionary(uniqueKeysWithValues: (100..<125).map { ($0, ["k\($0 % 5)"]) }))
      }
    }

    @Test func `a watch ends with a cancel, with its store, and with the server`() throws {
      let server = try TestServer(stores: ["test", "other"]) { $0.shutdownTimeout = .seconds(120) }
      let (client, other) = (try server.connect(), try server.connect(store: "other"))
      #expect(try begin(client) == 0)
      #expect(try begin(other) == 0)
      let again = try client.call(Request.watch(id: 51))
      #expect(again.isDone)
      #expect(try client.call(Request.cancel(51)).isError(.cancelled, id: 51))
      try client.send(Request.drop("test", id: 4))
      // The end of the watch and the reply to the drop come in any order.
      let ends = [try client.receive(), try client.receive()]
      #expect(ends.contains { $0.isDone && $0.id == 4 })
      #expect(ends.contains { $0.isError(.storeUnknown, id: 50) })
      #expect(try client.pings())
      #expect(try other.call(Request.put("last", [1], id: 3)).isDone)
      let duration = try #require(server.stop())
      #expect(duration < 60)
      #expect(try other.receive().changes.map(\.key) == ["last"])
      #expect(try other.receive().isNotice(.shuttingDown))
    }

    @Test func `a watch without credit ends with its store`() throws {
      let server = try TestServer()
      let (watcher, writer) = (try server.connect(credit: 1), try server.connect())
      #expect(try begin(watcher) == 0)
      #expect(try writer.call(Request.put("a", [1], id: 3)).isDone)
      #expect(try writer.call(Request.drop("test", id: 4)).isDone)
      #expect(try watcher.receive().isError(.storeUnknown, id: 50))
      #expect(try watcher.pings())
    }

    @Test func `a watch goes on after the client's last request, as far as its credit`() throws {
      let server = try TestServer()
      let (watcher, writer) = (try server.connect(credit: 60), try server.connect())
      try watcher.send(Request.watch(id: 50) + Request.watch(id: 51, prefix: "b"))
      watcher.endSending()
      for _ in 0..<2 { #expect(try watcher.receive().through == 0) }
      for key in ["a", "b"] {
        #expect(try writer.call(Request.put(key, [UInt8](repeating: 1, count: 100), id: 3)).isDone)
        #expect(try watcher.receive().changes.map(\.key) == [key])
        #expect(try watcher.receive().isError(.answerExpired, id: key == "a" ? 50 : 51))
      }
      #expect(try watcher.isClosed())
      #expect(try eventually { try writer.figures(store: 1)["watches"] == 0 })
    }

    @Test func `a stopping server sends every change to its watches first`() throws {
      let server = try TestServer(workers: 2)
      let (watcher, writer) = (try server.connect(), try server.connect())
      #expect(try begin(watcher) == 0)
      let count: UInt32 = 3_000
      try writer.send((1...count).flatMap { Request.put("k\($0)", [1], id: $0) })
      let thread = Thread { _ = server.stop() }
      thread.start()
      for id in 1...count { #expect(try writer.receive().id == id) }
      var seen: [UInt64] = []
      while let frame = try? watcher.receive(), frame.id == 50 { seen += frame.changes.map(\.revision) }
      #expect(seen == Array(1...UInt64(count)))
    }

    @Test func `a watch counts as a request in flight, and its id is in use`() throws {
      let server = try TestServer { $0.maxRequestsInFlight = 2 }
      let client = try server.connect()
      #expect(try begin(client, id: 50) == 0)
      #expect(try begin(client, id: 51) == 0)
      #expect(try client.call(Request.watch(id: 52)).isError(.tooManyRequests, id: 52))
      #expect(try client.call(Request.watch(id: 50)).isNotice(.malformed))
    }

    @Test func `neither a watch without credit nor an idle watch times out`() throws {
      let server = try TestServer {
        $0.streamTimeout = .milliseconds(100)
        $0.idleTimeout = .milliseconds(100)
      }
      let (writer, watcher) = (try server.connect(), try server.connect(credit: 1))
      #expect(try begin(watcher) == 0)
      #expect(try begin(writer, id: 77) == 0)
      #expect(try writer.call(Request.put("a", [1], id: 3)).isDone)
      #expect(watcher.isSilent(for: 0.4))
      try watcher.send(Request.credit(1_000, id: 50))
      #expect(try watcher.receive().changes.map(\.key) == ["a"])
    }
  }
}

/// A model of a store, built from a watch that started when the store was empty.
private struct WatchModel {
  private(set) var values: [String: [UInt8]] = [:]
  private(set) var revisions: [String: UInt64] = [:]

  /// Reads a watch up to a revision, and checks that every revision arrives once and in order.
  init(_ client: TestClient, id: UInt32, through end: UInt64) throws {
    var (last, through): (UInt64, UInt64) = (0, 0)
    try client.send(Request.credit(1 << 16, id: id))
    var unpaid = 0
    while through < end {
      let frame = try client.receive()
      unpaid += frame.size
      if unpaid >= 1 << 15 {
        try client.send(Request.credit(UInt32(unpaid), id: id))
        unpaid = 0
      }
      #expect(frame.id == id && frame.isDone, "\(frame)")
      for change in frame.changes {
        #expect(change.revision == last || change.revision == last + 1)
        #expect(change.revision > through)
        last = change.revision
        switch change.kind {
        case .single, .list: (values[change.key], revisions[change.key]) = (change.value, change.revision)
        case .deleted:
          #expect(values.removeValue(forKey: change.key) != nil)
          revisions[change.key] = nil
        case .allDeleted: (values, revisions) = ([:], [:])
        case .lost, .incarnation: Issue.record("\(change)")
        }
      }
      #expect(frame.through == last || frame.through == last - 1)
      through = frame.through
    }
    #expect(last == end)
  }
}
