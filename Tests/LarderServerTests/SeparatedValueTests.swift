import Foundation
import Platform
import Storage
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Replies from a log store whose large values are in its files.
  @Suite struct SeparatedValueTests {
    private static let sizes = ["a": 32_768, "b": 100_000, "c": 70_000, "d": 1 << 20, "e": 10, "f": 40_000]

    private static func value(_ key: String) -> [UInt8] {
      Array(repeating: key.utf8.first!, count: sizes[key]!)
    }

    /// A server with a log store that has these values, with the large ones not in memory.
    private final class LargeValues {
      private let temporary: TemporaryFolder
      let server: TestServer
      let client: TestClient

      /// The log's folder.
      var folder: String { temporary.path }

      init() throws {
        temporary = try TemporaryFolder()
        var map = EntryMap()
        let (engine, _) = try LogEngine.open(
          temporary.path, files: LocalFileSystem(), now: 0, unixNow: 0, into: &map)
        let store = Store(name: try StoreName("log"), engine: .log, map: map, writingTo: engine, durability: .always)
        server = try TestServer(serving: [store])
        client = try server.connect(credit: 16 << 20, store: "log")
        for key in sizes.keys.sorted() {
          try #require(client.call(Request.put(key, value(key), id: 3)).isDone)
        }
        let count = UInt64(sizes.values.count { $0 >= 32_768 })
        try #require(try eventually { try client.figures(store: 1)["values_on_disk"] == count })
        #expect(try client.figures(store: 1)["values_on_disk_bytes"]! == 32_768 + 100_000 + 70_000 + 1 << 20 + 40_000)
        #expect(try client.figures(store: 1)["memory_bytes"]! < 200_000)
      }

      deinit { server.stop() }

      /// Flips a bit of the last copy of a value on the disk.
      func damage(_ key: String) throws {
        for name in try FileManager.default.contentsOfDirectory(atPath: folder).sorted().reversed()
        where name.hasSuffix(".log") {
          let path = "\(folder)/\(name)"
          let contents = try Data(contentsOf: URL(fileURLWithPath: path))
          guard let range = contents.range(of: Data(value(key)), options: .backwards) else { continue }
          let file = try #require(FileHandle(forUpdatingAtPath: path))
          try file.seek(toOffset: UInt64(range.lowerBound + 20_000))
          try file.write(contentsOf: [key.utf8.first! ^ 1])
          return
        }
        Issue.record("no file contains the value of \(key)")
      }
    }

    private func entries(_ request: [UInt8], id: UInt32, _ client: TestClient) throws -> [TestEntry] {
      try client.send(request)
      let frames = try client.receiveReplyStream(id)
      #expect(frames.allSatisfy { $0.isDone }, "\(frames)")
      return frames.flatMap(\.entries)
    }

    @Test func `values in files are returned like those in memory`() throws {
      let log = try LargeValues()
      let (client, keys) = (log.client, Self.sizes.keys.sorted())
      for (number, key) in keys.enumerated() {
        let reply = try client.call(Request.get(key, id: 10 + UInt32(number)))
        #expect(reply.entries.map(\.value) == [Self.value(key)])
      }
      // Several requests at once, so that one waits for the store while another reads.
      try client.send(keys.flatMap { Request.get($0, id: UInt32($0.utf8.first!)) } + Request.put("g", [1], id: 9))
      for key in keys {
        let reply = try client.receive()
        #expect(reply.id == UInt32(key.utf8.first!) && reply.entries.map(\.value) == [Self.value(key)])
      }
      #expect(try client.receive().number == 7)
      let many = try entries(Request.keys(.getMany, ["d", "none", "e", "a", "d"], id: 20), id: 20, client)
      #expect(many.map { $0.isPresent ? $0.value : nil } == ["d", nil, "e", "a", "d"].map { $0.map(Self.value) })
      let page = try entries(Request.page(id: 21, limit: 3, after: "a"), id: 21, client)
      #expect(page.map(\.text) == ["b", "c", "d"] && page.map(\.value) == ["b", "c", "d"].map(Self.value))
      let all = try entries(Request.all(id: 22, reverse: true), id: 22, client)
      #expect(all.map(\.text) == ["g", "f", "e", "d", "c", "b", "a"])
      #expect(all.dropFirst().map(\.value) == ["f", "e", "d", "c", "b", "a"].map(Self.value))
      let keysOnly = try entries(Request.all(id: 23, keysOnly: true), id: 23, client)
      #expect(keysOnly.map(\.text) == keys + ["g"] && keysOnly.allSatisfy { $0.value.isEmpty })
    }

    @Test func `a damaged value is an error for the requests that would show it, and only for those`() throws {
      let log = try LargeValues()
      let client = log.client
      try log.damage("c")
      let reply = try client.call(Request.get("c", id: 5))
      #expect(reply.isError(.valueDamaged, id: 5) && reply.message.contains("\"c\""))
      #expect(reply.message.contains(log.folder))
      // In the first frame of a reply stream, and in a later one.
      for request in [Request.keys(.getMany, ["c", "a", "b", "d"], id: 6), Request.page(id: 6, limit: 5, prefix: "c")] {
        let first = try client.call(request)
        #expect(first.isError(.valueDamaged, id: 6) && first.message.contains("\"c\""))
        #expect(try client.figures(store: 1)["snapshots"] == 0)
      }
      for request in [Request.keys(.getMany, ["a", "b", "d", "c", "e"], id: 6), Request.all(id: 6)] {
        try client.send(request)
        let frames = try client.receiveReplyStream(6)
        #expect(frames.last!.isError(.valueDamaged, id: 6))
        #expect(frames.dropLast().allSatisfy { $0.isDone } && frames.count > 1)
        #expect(try client.figures(store: 1)["snapshots"] == 0)
      }
      // Requests that do not need the value succeed, even on this connection.
      try client.send(Request.get("c", id: 7) + Request.get("b", id: 8) + Request.all(id: 9, keysOnly: true))
      #expect(try client.receive().isError(.valueDamaged, id: 7))
      #expect(try client.receive().entries.map(\.value) == [Self.value("b")])
      #expect(try client.receive().entries.count == Self.sizes.count)
      // The entry can be overwritten, even with a condition on its revision.
      let revision = try client.call(Request.page(id: 10, limit: 1, prefix: "c", keysOnly: true)).entries[0].revision
      #expect(try client.call(Request.put("c", Self.value("c"), id: 11, ifRevision: revision)).isDone)
      #expect(try client.call(Request.get("c", id: 12)).entries.map(\.value) == [Self.value("c")])
    }

    /// Returns the reply to a request for a range of a value.
    private func range(
      of key: String, _ offset: UInt64, _ count: UInt32, ifRevision revision: UInt64? = nil, _ client: TestClient
    ) throws -> Reply {
      var body = ByteBuffer()
      unsafe body.appendRange(offset: offset, count: count, ifRevision: revision, key: Array(key.utf8).span.bytes)
      return try client.call(Request.make(.getRange, id: 5, body.toArray()))
    }

    @Test func `only ranges of undamaged values are returned`() throws {
      let log = try LargeValues()
      let client = log.client
      try log.damage("c")
      // The damage is at byte 20,000.
      for offset: UInt64 in [0, 20_000, 69_999] {
        let reply = try range(of: "c", offset, 1, client)
        #expect(reply.isError(.valueDamaged, id: 5) && reply.message.contains("\"c\""), "\(reply)")
      }
      let size = try range(of: "c", 70_000, 1, client)
      #expect(unsafe RangeReply(size.body.span.bytes)?.valueSize == 70_000)
      for key in ["a", "b", "d"] {
        let value = Self.value(key)
        for _ in 0..<2 {
          for offset in [0, 1, 32_767, value.count - 1, value.count] {
            let reply = try range(of: key, UInt64(offset), 50_000, client)
            let decoded = try #require(unsafe RangeReply(reply.body.span.bytes), "\(reply)")
            #expect(decoded.valueSize == value.count)
            #expect(Array(reply.body[decoded.record.value]) == Array(value[offset...].prefix(50_000)))
          }
        }
      }
      // Damage that comes after a value has been verified.
      try log.damage("d")
      #expect(try range(of: "d", 20_000, 1, client).isError(.valueDamaged, id: 5))
      #expect(try range(of: "d", 0, 20_000, client).isError(.valueDamaged, id: 5))
      #expect(try range(of: "d", 65_536, 20_000, client).isDone)
    }

    @Test func `an apply does not read a damaged value that it replaces`() throws {
      let log = try LargeValues()
      let client = log.client
      try log.damage("c")
      let increment = TestOperation.update("c", #"{"$inc":{"n":1}}"#, creates: true)
      let failed = try client.call(Request.apply([increment, .put("c", [])], id: 5))
      #expect(failed.isError(.valueDamaged, id: 5) && failed.message.contains("\"c\""), "\(failed)")
      let revision = try #require(client.figures(store: 1)["revision"])
      for (number, first) in [TestOperation.put("c", Array(#"{"n":7}"#.utf8)), .delete("c")].enumerated() {
        let log = try LargeValues()
        try log.damage("c")
        let operations = [.check("c", revision: 3), first, increment]
        #expect(try log.client.call(Request.apply(operations, id: 6)).number == revision + 1)
        let value = try log.client.call(Request.get("c", id: 7)).entries.map(\.value)
        #expect(value == [Array(#"{"n":\#(number == 0 ? 8 : 1)}"#.utf8)])
      }
    }

    @Test func `a find that reads a damaged value fails, and others do not`() throws {
      let log = try LargeValues()
      let client = log.client
      #expect(try client.call(Request.put("_", Array("{}".utf8), id: 4)).isDone)
      #expect(try client.find().keys == ["_"])
      try log.damage("c")
      let reply = try client.call(Request.find(id: 5))
      #expect(reply.isError(.valueDamaged, id: 5) && reply.message.contains("\"c\""), "\(reply)")
      #expect(try client.call(Request.put("A", Array("{}".utf8), id: 6)).isDone)
      let found = try client.find(limit: 1)
      #expect(found.keys == ["A"] && !found.result.text.isEmpty)
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `a watch reports values in files as they were written, however slow it is, even if damaged since`()
      throws
    {
      let log = try LargeValues()
      let (writer, watcher) = (log.client, try log.server.connect(credit: 1, store: "log"))
      let begun = try watcher.call(Request.watch(id: 50))
      #expect(begun.isDone && begun.through == UInt64(Self.sizes.count))
      let keys = ["d", "b", "c", "a", "d", "f", "b"]
      for key in keys { try #require(writer.call(Request.put(key, Self.value(key), id: 3)).isDone) }
      // All values, including overwritten ones, are in files by now, and one of them is damaged.
      #expect(try eventually { try writer.figures(store: 1)["values_on_disk"] == 5 })
      try log.damage("c")
      #expect(try writer.call(Request.get("c", id: 5)).isError(.valueDamaged, id: 5))
      var seen: [TestChange] = []
      #expect(watcher.isSilent(for: 0.05))
      var frame = begun
      while seen.count < keys.count {
        // Credit for one frame at a time.
        try watcher.send(Request.credit(UInt32(Frame.headerSize + frame.body.count), id: 50))
        frame = try watcher.receive()
        seen += frame.changes
      }
      let revisions = UInt64(Self.sizes.count + 1)...
      #expect(seen == zip(keys, revisions).map { TestChange(key: $0, value: Self.value($0), revision: $1) })
      // A later watch that requests the earlier changes.
      let later = try log.server.connect(credit: 16 << 20, store: "log")
      #expect(try later.call(Request.watch(id: 51, from: begun.through + 1)).through == begun.through)
      var again: [TestChange] = []
      while again.count < keys.count { again += try later.receive().changes }
      #expect(again == seen)
    }
  }
}
