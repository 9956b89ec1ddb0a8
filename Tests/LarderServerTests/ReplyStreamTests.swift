import Foundation
import LarderServer
import Testing
import Wire

extension ServerTests {
  /// Reply streams: `Protocol/wire.md` §5.
  struct ReplyStreamTests {
    @Test func `frames are sent while the credit is above zero, and each uses up its size`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1)
      try putEntries(client, 6)
      try client.send(Request.all(id: 5))
      let first = try client.receive()
      #expect(first.more && first.entries.map(\.text) == ["key0"])
      #expect(client.isSilent(for: 0.05))
      // The credit must be above zero again before the next frame is sent.
      try client.send(Request.credit(UInt32(first.size - 1), id: 5))
      #expect(client.isSilent(for: 0.05))
      try client.send(Request.credit(1, id: 5))
      #expect(try client.receive().entries.map(\.text) == ["key1"])
      #expect(client.isSilent(for: 0.05))
      try client.send(Request.credit(UInt32(2 * first.size), id: 5))
      #expect(try client.receive().entries.map(\.text) == ["key2"])
      #expect(try client.receive().entries.map(\.text) == ["key3"])
      #expect(client.isSilent(for: 0.05))
      try client.send(Request.credit(.max, id: 5) + Request.credit(.max, id: 5))
      #expect(try client.receive().more)
      let last = try client.receive()
      #expect(!last.more && last.entries.map(\.text) == ["key5"])
      #expect(try client.pings())
    }

    @Test func `credit sent directly after a request counts, and only for that request`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1)
      try putEntries(client, 3)
      try client.send(
        Request.credit(1 << 30, id: 5) + Request.all(id: 5) + Request.credit(1 << 30, id: 6) + Request.ping(7))
      #expect(try client.receive().more)
      #expect(try client.receive().id == 7)
      #expect(client.isSilent(for: 0.05))
      try client.send(Request.all(id: 6) + Request.credit(1 << 30, id: 6))
      #expect(try client.receiveReplyStream(6).flatMap(\.entries).count == 3)
      #expect(client.isSilent(for: 0.05))
    }

    @Test func `frames of several reply streams are interleaved`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 90_000)
      try putEntries(client, 8)
      try client.send(Request.all(id: 5) + Request.all(id: 6, reverse: true) + Request.get("key0", id: 7))
      for id: UInt32 in [5, 6] { try client.send(Request.credit(1 << 30, id: id)) }
      var texts: [UInt32: [String]] = [:]
      var unfinished: Set<UInt32> = [5, 6, 7]
      while !unfinished.isEmpty {
        let reply = try client.receive()
        texts[reply.id, default: []] += reply.entries.map(\.text)
        if !reply.more { unfinished.remove(reply.id) }
      }
      #expect(texts[5] == (0..<8).map { "key\($0)" })
      #expect(texts[6] == (0..<8).reversed().map { "key\($0)" })
      #expect(texts[7] == [""])
    }

    @Test func `a cancelled reply stream ends with that error, and a finished one does not`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1)
      try putEntries(client, 3)
      try client.send(Request.all(id: 5) + Request.cancel(5) + Request.cancel(5) + Request.credit(1 << 20, id: 5))
      #expect(try client.receive().more)
      #expect(try client.receive().isError(.cancelled, id: 5))
      #expect(try client.pings())
      #expect(try client.figures(store: 1)["snapshots"] == 0)
      // The id is free again.
      #expect(try client.call(Request.all(id: 5)).more)
    }

    @Test func `a reply stream that waits too long for credit expires, and one that continues does not`() throws {
      let server = try TestServer { $0.streamTimeout = .milliseconds(250) }
      let client = try server.connect(credit: 1)
      try putEntries(client, 9)
      try client.send(Request.all(id: 5) + Request.all(id: 6))
      #expect(try client.receive().more)
      #expect(try client.receive().more)
      var expired: Reply?
      for _ in 0..<6 {
        Thread.sleep(forTimeInterval: 0.06)
        try client.send(Request.credit(45_000, id: 6))
        let reply = try client.receive()
        if reply.id == 5 { expired = reply } else { #expect(reply.id == 6 && reply.isDone) }
      }
      #expect(expired?.isError(.answerExpired, id: 5) == true)
      try client.send(Request.credit(1 << 30, id: 6))
      while try client.receive().more {}
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `a reply stream shows one snapshot of the store, whatever is written meanwhile`() throws {
      let server = try TestServer(workers: 2)
      let client = try server.connect(credit: 1)
      let keys = (0..<300).map { String(format: "key%03d", $0) }
      // Every write gives all keys the same value, so that a mix of two snapshots is detected.
      let write = { @Sendable (number: UInt8, id: UInt32) in
        Request.putMany(keys.map { ($0, [UInt8](repeating: number, count: 1_000)) }, id: id)
      }
      #expect(try client.call(write(0, 3)).isDone)
      let isDone = Flag()
      let writer = Thread {
        guard let writer = try? server.connect() else { return }
        var number: UInt8 = 0
        while !isDone.isSet {
          number &+= 1
          _ = try? writer.call(write(number, 4))
          if number % 16 == 0 { _ = try? writer.call(Request.keys(.deleteMany, Array(keys.prefix(7)), id: 5)) }
        }
        isDone.end()
      }
      writer.start()
      for round: UInt32 in 0..<12 {
        let id = 10 + round
        try client.send(
          round % 3 == 0 ? Request.keys(.getMany, keys, id: id) : Request.all(id: id, reverse: round % 3 == 1))
        var entries: [TestEntry] = []
        var reply = try client.receive()
        entries += reply.entries
        while reply.more {
          try client.send(Request.credit(UInt32(reply.size), id: id))
          reply = try client.receive()
          entries += reply.entries
        }
        let present = entries.filter(\.isPresent)
        #expect(Set(present.map(\.value)).count == 1 && Set(present.map(\.revision)).count == 1)
        #expect([293, 300].contains(present.count))
        if round % 3 == 1 { #expect(present.map(\.text) == keys.suffix(present.count).reversed()) }
        if round % 3 == 2 { #expect(present.map(\.text) == keys.suffix(present.count)) }
      }
      isDone.set()
      #expect(isDone.waitForEnd())
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }

    @Test func `a reply stream whose store is dropped ends with storeUnknown, without credit`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1)
      let other = try server.connect()
      try putEntries(client, 3)
      try client.send(Request.all(id: 5) + Request.keys(.getMany, ["key0", "key1", "key2"], id: 6))
      #expect(try client.receive().more)
      #expect(try client.receive().more)
      #expect(try other.call(Request.drop("test", id: 7)).isDone)
      #expect(try client.receive().isError(.storeUnknown, id: 5))
      #expect(try client.receive().isError(.storeUnknown, id: 6))
      #expect(try client.pings())
      // The handle stays invalid until the name is opened again.
      #expect(try client.call(Request.create("test", id: 8)).isDone)
      for request in [
        Request.get("key0", id: 9), Request.make(.count, id: 9), Request.make(.stats, id: 9), Request.all(id: 9),
      ] {
        #expect(try client.call(request).isError(.storeUnknown, id: 9))
      }
      #expect(try client.call(Request.open("test", id: 10)).body[..<2] == [1, 0])
      #expect(try client.call(Request.make(.count, id: 11)).number == 0)
      #expect(try other.call(Request.make(.storeClose, id: 12)).isDone)
      #expect(try other.call(Request.get("key0", id: 13)).isError(.storeUnknown, id: 13))
    }

    @Test func `a client that shuts down its sending side receives what its credit allows, then an error`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 50_000)
      try putEntries(client, 5)
      try client.send(Request.all(id: 5) + Request.page(id: 6, limit: 1) + Request.put("k", [1], id: 7))
      client.endSending()
      var replies: [Reply] = []
      while let reply = try? client.receive() { replies.append(reply) }
      #expect(replies.filter { $0.id == 5 && $0.more }.count == 2)
      #expect(replies.filter { $0.id == 5 }.last?.isError(.answerExpired, id: 5) == true)
      #expect(replies.filter { $0.id > 5 }.map(\.isDone) == [true, true])
      #expect(try client.isClosed())
    }

    @Test func `closing a handle does not end a reply stream`() throws {
      let server = try TestServer()
      let client = try server.connect(credit: 1)
      try putEntries(client, 3)
      try client.send(Request.all(id: 5) + Request.make(.storeClose, id: 6) + Request.credit(1 << 20, id: 5))
      var keys: [String] = []
      for _ in 0..<4 {
        let reply = try client.receive()
        if reply.id == 5 { keys += reply.entries.map(\.text) }
      }
      #expect(keys == ["key0", "key1", "key2"])
    }

    @Test(arguments: [Request.all(id: 5), Request.page(id: 5, limit: 1), Request.keys(.getMany, ["a"], id: 5)])
    func `reusing the id of an open reply stream for another one closes the connection`(_ request: [UInt8]) throws {
      let server = try TestServer { $0.maxRequestsInFlight = 1 }
      let client = try server.connect(credit: 1)
      try putEntries(client, 3)
      #expect(try client.call(Request.all(id: 5)).more)
      try client.send(request)
      #expect(try client.receive().isNotice(.malformed))
      #expect(try client.isClosed())
    }

    /// Frames that are ready to be sent must not follow the notice.
    @Test func `a notice is the last frame, even if a reply stream could continue`() throws {
      let server = try TestServer { $0.maxOutputBytes = 100_000 }
      for bad in [Request.ping(0), [7, 0, 0, 0], Request.all(id: 5)] {
        let client = try server.connect(credit: 1)
        try putEntries(client, 40)
        try client.send(Request.all(id: 5))
        #expect(try client.receive().more)
        try client.send(Request.credit(1 << 30, id: 5) + bad)
        var reply = try client.receive()
        while reply.id == 5 { reply = try client.receive() }
        #expect(reply.id == 0, "\(reply)")
        #expect(try client.isClosed())
        let witness = try server.connect()
        #expect(try eventually { try witness.figures(store: 1)["snapshots"] == 0 })
      }
    }

    @Test func `a client that disconnects releases the snapshots of its reply streams`() throws {
      let server = try TestServer()
      let witness = try server.connect()
      try putEntries(witness, 4)
      do {
        let client = try server.connect(credit: 1)
        #expect(try client.call(Request.all(id: 5)).more)
        #expect(try client.call(Request.keys(.getMany, ["key0", "key1", "key2"], id: 6)).more)
        #expect(try witness.figures(store: 1)["snapshots"] == 1)
      }
      #expect(try eventually { try witness.figures(store: 1)["snapshots"] == 0 })
    }
  }
}
