import Foundation
import Storage
import Testing
import Wire

extension ServerTests {
  /// Replies that depend on writes that are not on the disk yet, with an engine that the test controls.
  @Suite struct DurabilityTests {
    private let engine = TestEngine()

    private func makeServer(_ durability: Durability = .always, workers: Int = 1) throws -> TestServer {
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: durability)
      return try TestServer(workers: workers, serving: [store])
    }

    @Test func `the server replies to a put once it is on the disk, and not before`() throws {
      let server = try makeServer()
      let client = try server.connect(store: "durable")
      engine.pause()
      try client.send(Request.put("a", [1], id: 9))
      #expect(client.isSilent(for: 0.1))
      engine.resume()
      #expect(try client.receive().outcome == .done)
      #expect(engine.syncedWrites == engine.writes && engine.writes > 0)
    }

    @Test(arguments: [1, 2]) func `no client sees a write that is not on the disk`(workers: Int) throws {
      let server = try makeServer(workers: workers)
      let (writer, reader) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      for (index, key) in ["old", "other", "gone"].enumerated() {
        #expect(try writer.call(Request.put(key, [0], id: 10 + UInt32(index))).outcome == .done)
      }
      engine.pause()
      try writer.send(
        Request.put("new", [1], id: 20) + Request.put("old", [1], id: 21) + Request.delete("gone", id: 22))
      #expect(writer.isSilent(for: 0.05))
      // Entries that were on the disk before are visible to all …
      #expect(try reader.call(Request.get("other", id: 30)).outcome == .done)
      #expect(try reader.call(Request.keys(.getMany, ["other"], id: 30)).outcome == .done)
      // … and everything else waits: a new entry, a replaced entry, an absence, and requests that count or list them.
      let requests = [
        Request.get("new", id: 31), Request.get("old", id: 31), Request.get("gone", id: 31),
        Request.make(.count, id: 31), Request.page(id: 31, limit: 5), Request.all(id: 31),
        Request.put("new", [2], id: 31, ifAbsent: true), Request.keys(.getMany, ["other", "old"], id: 31),
        Request.keys(.getMany, ["other", "gone"], id: 31),
      ]
      let readers = try requests.map { request in
        let reader = try server.connect(store: "durable")
        try reader.send(request)
        return reader
      }
      for reader in readers { #expect(reader.isSilent(for: 0.02)) }
      engine.resume()
      for id in 20...22 as ClosedRange<UInt32> { #expect(try writer.receive().id == id) }
      for reader in readers { #expect(try reader.receive().id == 31) }
    }

    @Test func `statistics report only what is on the disk, without waiting for it`() throws {
      let server = try makeServer()
      let (writer, reader) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      #expect(try writer.call(Request.put("old", [1], id: 10)).isDone)
      let before = try visibleFigures(reader)
      engine.pause()
      try writer.send(Request.put("new", [1], id: 11, expiry: 60_000) + Request.delete("old", id: 12))
      #expect(writer.isSilent(for: 0.05))
      #expect(try visibleFigures(reader) == before)
      // Those that follow a write on its connection know of it, and wait with it.
      try writer.send(Request.make(.stats, store: 1, id: 14) + Request.make(.storeList, store: 0, id: 15))
      #expect(writer.isSilent(for: 0.05))
      engine.resume()
      for id in 11...12 as ClosedRange<UInt32> { #expect(try writer.receive().id == id) }
      let (stats, list) = try (writer.receive().body, writer.receive().body)
      let figures = try #require(unsafe Figure.decode(stats.span.bytes))
      #expect(figures.contains { $0.name == "revision" && $0.value == 3 })
      let listed = try #require(unsafe ListedStore.decode(list.span.bytes))
      #expect(listed.first?.entries == 1)
      let after = try visibleFigures(reader)
      #expect(after["revision"] == 3 && after["expiring"] == 1 && after["listed"] == 1)
      engine.fail(.failed("the test says so"))
      #expect(try writer.call(Request.put("lost", [1], id: 13)).isError(.failed, id: 13))
      #expect(try visibleFigures(reader) == after)
    }

    private func visibleFigures(_ client: TestClient) throws -> [String: UInt64] {
      let names = ["entries", "revision", "key_bytes", "value_bytes", "expiring"]
      var figures = try client.figures(store: 1).filter { names.contains($0.key) }
      #expect(figures.count == names.count)
      let list = try client.call(Request.make(.storeList, store: 0, id: 99))
      let listed = try #require(unsafe ListedStore.decode(list.body.span.bytes))
      figures["listed"] = listed.first?.entries
      return figures
    }

    @Test func `replies of a connection keep the order of its requests`() throws {
      let server = try makeServer()
      let client = try server.connect(store: "durable")
      engine.pause()
      try client.send(Request.put("a", [1], id: 5) + Request.ping(6) + Request.get("b", id: 7))
      #expect(client.isSilent(for: 0.05))
      try client.send(Request.ping(8))
      #expect(client.isSilent(for: 0.05))
      engine.resume()
      #expect(
        try [client.receive().id, client.receive().id, client.receive().id, client.receive().id] == [5, 6, 7, 8])
    }

    @Test func `all waiting clients share a write`() throws {
      let server = try makeServer()
      let clients = try (0..<20).map { _ in try server.connect(store: "durable") }
      #expect(try clients[0].call(Request.put("first", [1], id: 3)).outcome == .done)
      let before = engine.writes
      engine.pause()
      for (index, client) in clients.enumerated() { try client.send(Request.put("key \(index)", [1], id: 4)) }
      usleep(50_000)
      engine.resume()
      for client in clients { #expect(try client.receive().outcome == .done) }
      #expect(engine.writes - before <= 3)
    }

    @Test func `after a failure, nothing is acknowledged or written, and entries on the disk can be read`() throws {
      let server = try makeServer()
      let client = try server.connect(store: "durable")
      #expect(try client.call(Request.put("kept", [1], id: 3)).outcome == .done)
      #expect(try client.call(Request.put("overwritten", [1], id: 4)).outcome == .done)
      engine.pause()
      try client.send(Request.put("lost", [1], id: 5) + Request.put("overwritten", [2], id: 6))
      usleep(30_000)
      engine.fail(.failed("fdatasync: Input/output error"))
      for id in [5, 6] as [UInt32] {
        let reply = try client.receive()
        #expect(reply.id == id && reply.outcome == .unknown && reply.code == .failed)
        #expect(reply.message.contains("Input/output error"))
      }
      let refused = try client.call(Request.put("another", [1], id: 7))
      #expect(refused.code == .storeReadOnly && refused.message.contains("Input/output error"))
      #expect(try client.call(Request.delete("kept", id: 8)).code == .storeReadOnly)
      #expect(try client.call(Request.get("kept", id: 9)).outcome == .done)
      // The old value is no longer in memory, and the new one may not be on the disk.
      #expect(try client.call(Request.get("overwritten", id: 10)).code == .failed)
      #expect(try client.call(Request.get("lost", id: 11)).code == .failed)
      let writes = engine.writes
      usleep(50_000)
      #expect(engine.writes == writes)
    }

    @Test func `after a failure, requests fail only if their reply depends on what may not be on the disk`() throws {
      let server = try makeServer()
      let client = try server.connect(store: "durable")
      for (index, key) in ["a", "b", "c"].enumerated() {
        #expect(try client.call(Request.put(key, [0], id: 10 + UInt32(index))).outcome == .done)
      }
      engine.pause()
      try client.send(Request.put("c", [1], id: 20))
      usleep(30_000)
      engine.fail(.failed("pwrite: Input/output error"))
      #expect(try client.receive().code == .failed)
      // An entry was replaced, so the count is unchanged.
      #expect(try client.call(Request.make(.count, id: 21)).outcome == .done)
      #expect(try client.call(Request.page(id: 22, limit: 2)).outcome == .done)
      #expect(try client.call(Request.keys(.getMany, ["a", "b", "missing"], id: 23)).outcome == .done)
      #expect(try client.call(Request.page(id: 24, limit: 3)).code == .failed)
      #expect(try client.call(Request.keys(.getMany, ["a", "c"], id: 25)).code == .failed)
    }

    @Test func `after a failure, no reply reports an absence or a conflict that may not be on the disk`() throws {
      let server = try makeServer()
      let client = try server.connect(store: "durable")
      #expect(try client.call(Request.put("gone", [1], id: 3)).outcome == .done)
      engine.pause()
      try client.send(Request.delete("gone", id: 4) + Request.put("new", [1], id: 5))
      try client.send(Request.get("gone", id: 6) + Request.put("new", [2], id: 7, ifAbsent: true))
      usleep(30_000)
      engine.fail(.failed("fdatasync: Input/output error"))
      for _ in 4...7 { #expect(try client.receive().code == .failed) }
      #expect(try client.call(Request.get("gone", id: 8)).code == .failed)
    }

    @Test func `a failure of one store fails the replies about it, and only those`() throws {
      let other = TestEngine()
      let stores = try [(engine, "durable"), (other, "other")].map { engine, name in
        Store(name: try StoreName(name), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      }
      let server = try TestServer(serving: stores)
      let client = try server.connect(store: "durable")
      #expect(try client.call(Request.open("other", id: 3)).isDone)
      engine.pause()
      other.pause()
      try client.send(Request.put("a", [1], id: 5) + Request.put("a", [1], id: 6, store: 2))
      #expect(client.isSilent(for: 0.05))
      engine.fail(.failed("the test says so"))
      other.resume()
      #expect(try client.receive().isError(.failed, id: 5))
      #expect(try client.receive().isDone)
    }

    @Test func `a failure fails only the replies about it, also behind a large value`() throws {
      let other = TestEngine()
      let memory = try Store(name: StoreName("memory"), engine: .memory)
      let stores = try [(engine, "durable"), (other, "other")].map { engine, name in
        Store(name: try StoreName(name), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      }
      let server = try TestServer(serving: stores + [memory])
      let client = try server.connect(store: "durable")
      for (number, name) in ["other", "memory"].enumerated() {
        #expect(try client.call(Request.open(name, id: 2 + UInt32(number))).isDone)
      }
      let value = [UInt8](repeating: 7, count: 100_000)
      #expect(try client.call(Request.put("large", value, id: 4, store: 3)).isDone)
      // Otherwise, the commit threads may not have reserved space yet, and the first put would wait for that.
      for store in 1...2 as ClosedRange<UInt16> {
        #expect(try client.call(Request.put("a", [0], id: 5, store: store)).isDone)
      }
      engine.pause()
      other.pause()
      try client.send(
        Request.make(.get, store: 3, id: 5, Array("large".utf8)) + Request.put("a", [1], id: 6)
          + Request.put("a", [1], id: 7, store: 2) + Request.put("b", [1], id: 8))
      #expect(client.isSilent(for: 0.05))
      other.fail(.failed("the test says so"))
      engine.resume()
      #expect(try client.receive().entries.map(\.value) == [value])
      #expect(try client.receive().isDone)
      #expect(try client.receive().isError(.failed, id: 7))
      #expect(try client.receive().isDone)
    }

    @Test func `a store on a full disk refuses writes until there is space again`() throws {
      let server = try makeServer()
      let client = try server.connect(store: "durable")
      #expect(try client.call(Request.put("kept", [1], id: 3)).outcome == .done)
      engine.setSpace(2_000)
      var refused: Reply?
      for id in 10..<200 as Range<UInt32> {
        let reply = try client.call(Request.put("key \(id)", Array(repeating: 7, count: 50), id: id))
        guard reply.outcome != .done else { continue }
        refused = reply
        break
      }
      #expect(refused?.code == .storeFull && refused?.message.contains("disk") == true)
      #expect(try client.call(Request.get("kept", id: 201)).outcome == .done)
      engine.setSpace(1 << 20)
      #expect(
        try eventually { try client.call(Request.put("late", [1], id: 202)).outcome == .done })
    }

    @Test func `a large write waits for space, however many small writes are committed meanwhile`() throws {
      engine.setSpace(100_000)
      let server = try makeServer()
      let (client, other) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      try #require(try client.call(Request.put("first", [1], id: 3)).isDone)
      engine.holdReservations(true)
      try client.send(Request.put("large", [UInt8](repeating: 1, count: 200_000), id: 4))
      try #require(eventually { engine.isReservingSpace })
      for id in 10..<400 as Range<UInt32> { try #require(other.call(Request.put("small", [1], id: id)).isDone) }
      engine.setSpace(1 << 20)
      engine.holdReservations(false)
      #expect(try other.call(Request.put("small", [1], id: 400)).isDone)
      #expect(try client.receive().isDone)
    }

    @Test func `a commit of many keys is accepted or refused as a whole`() throws {
      let server = try makeServer()
      let client = try server.connect(store: "durable")
      #expect(try client.call(Request.put("first", [1], id: 3)).outcome == .done)
      engine.setSpace(2_000)
      #expect(
        try eventually { try client.call(Request.put("x", Array(repeating: 1, count: 900), id: 4)).outcome != .done })
      let many = (0..<50).map { (key: "many \($0)", value: [UInt8](repeating: 1, count: 100)) }
      #expect(try client.call(Request.putMany(many, id: 5)).code == .storeFull)
      #expect(try client.call(Request.get("many 0", id: 6)).code == .notFound)
    }

    @Test func `with an interval, replies do not wait, and the disk is synced in time`() throws {
      let server = try makeServer(.interval(.milliseconds(100)))
      let client = try server.connect(store: "durable")
      engine.pause()
      #expect(try client.call(Request.put("a", [1], id: 3)).outcome == .done)
      #expect(try client.call(Request.get("a", id: 4)).outcome == .done)
      engine.resume()
      #expect(eventually { engine.syncs > 0 })
      #expect(engine.syncedWrites == 0)
    }

    @Test func `a watch reports a change once it is on the disk, and not before`() throws {
      let server = try makeServer(workers: 2)
      let (writer, watcher, late) = (
        try server.connect(store: "durable"), try server.connect(store: "durable"), try server.connect(store: "durable")
      )
      #expect(try watcher.call(Request.watch(id: 50)).through == 0)
      #expect(try writer.call(Request.put("a", [1], id: 3)).outcome == .done)
      #expect(try watcher.receive().changes.map(\.key) == ["a"])
      engine.pause()
      try writer.send(Request.put("b", [1], id: 4))
      #expect(watcher.isSilent(for: 0.05))
      try writer.send(Request.delete("a", id: 5))
      // Even the revision is not revealed, because another write may get it after a crash.
      try late.send(Request.watch(id: 50))
      #expect(late.isSilent(for: 0.05) && watcher.isSilent(for: 0.01))
      engine.resume()
      var seen: [UInt64] = []
      while seen.count < 2 { seen += try watcher.receive().changes.map(\.revision) }
      #expect(seen == [2, 3])
      #expect(try late.receive().through == 3)
    }

    @Test func `a worker waits for a watch only once, however many changes there are`() throws {
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(serving: [store])
      let (writer, watcher) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      #expect(try watcher.call(Request.watch(id: 50)).through == 0)
      for number in 1...50 as ClosedRange<UInt64> {
        #expect(try writer.call(Request.put("a", [1], id: 3)).outcome == .done)
        #expect(try watcher.receive().changes.map(\.revision) == [number])
      }
      #expect(store.access { $0.feed?.waiters.count } == 1)
    }

    @Test func `a watch ends when the files fail, and never reports what may not be in them`() throws {
      let server = try makeServer()
      let (writer, watcher) = (try server.connect(store: "durable"), try server.connect(store: "durable"))
      #expect(try watcher.call(Request.watch(id: 50)).through == 0)
      engine.pause()
      try writer.send(Request.put("lost", [1], id: 5))
      usleep(30_000)
      engine.fail(.failed("fdatasync: Input/output error"))
      #expect(try writer.receive().code == .failed)
      let end = try watcher.receive()
      #expect(end.isError(.storeReadOnly, id: 50) && end.message.contains("Input/output error"))
    }

    @Test func `stopping waits for writes in progress`() throws {
      let server = try makeServer()
      let client = try server.connect(store: "durable")
      engine.pause()
      try client.send(Request.put("a", [1], id: 3))
      #expect(client.isSilent(for: 0.05))
      let engine = engine
      Thread.detachNewThread {
        usleep(100_000)
        engine.resume()
      }
      #expect(server.stop() != nil)
      #expect(try client.receive().outcome == .done)
    }

    @Test func `replies beyond the output limit of a connection wait for the disk, and all are sent`() throws {
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try TestServer(serving: [store], limits: { $0.maxOutputBytes = 2_000 })
      let client = try server.connect(store: "durable")
      engine.pause()
      let requests = (0..<1_000).flatMap { Request.put("key \($0)", [1], id: 10 + UInt32($0)) }
      try client.send(requests)
      #expect(client.isSilent(for: 0.05))
      engine.resume()
      for id in 10..<1_010 as Range<UInt32> { #expect(try client.receive().id == id) }
    }
  }
}
