import Glibc
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Values that are received where the store keeps them, and sent from there.
  @Suite struct LargeValueTests {
    /// Sizes around every threshold: of large values, of a read batch, of a slice, and larger ones.
    private static let sizes = [32_767, 32_768, 65_475, 65_536, 65_600, 262_100, 262_144, 524_288, 1 << 20, 5_000_000]

    private static func value(_ size: Int, _ seed: Int = 0) -> [UInt8] {
      (0..<size).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 8) ^ seed) }
    }

    @Test(arguments: [false, true])
    func `a value is the same however its frame arrives`(tcp: Bool) throws {
      var random = SeededGenerator.announced()
      let server = try TestServer(tcp: tcp)
      let client = try server.connect()
      for (number, size) in (Self.sizes + Self.sizes.shuffled(using: &random)).enumerated() {
        let value = Self.value(size, number)
        let request = Request.put("key", value, id: 3)
        var position = 0
        while position < request.count {
          // Beginnings of every length: of the frame's header, of the record's, of the key and of the value.
          let piece =
            position < 40 ? Int.random(in: 1...20, using: &random) : Int.random(in: 1...700_000, using: &random)
          let end = min(request.count, position + piece)
          try client.send(Array(request[position..<end]))
          position = end
          if Bool.random(using: &random) { usleep(300) }
        }
        #expect(try client.receive().isDone)
        #expect(try client.call(Request.get("key", id: 4)).entries.map(\.value) == [value])
      }
      let figures = try client.figures()
      #expect(figures["input_bytes"] == 0 && figures["output_bytes"] == 0)
    }

    @Test(arguments: [false, true])
    func `large and small requests of one connection are executed in order`(tcp: Bool) throws {
      var random = SeededGenerator.announced()
      let server = try TestServer(tcp: tcp)
      let client = try server.connect()
      for _ in 0..<10 {
        var (requests, model, expected): ([UInt8], [String: [UInt8]], [[UInt8]?]) = ([], [:], [])
        requests += Request.make(.deleteAll, id: 1)
        expected.append(nil)
        for number in 0..<40 {
          let key = "key\(Int.random(in: 0..<4, using: &random))"
          if Bool.random(using: &random) {
            let size = [0, 100, 40_000, 65_536, 65_536, 65_536, 300_000].randomElement(using: &random)!
            model[key] = Self.value(size, number)
            requests += Request.put(key, model[key]!, id: UInt32(2 + number))
            expected.append(nil)
          } else {
            requests += Request.get(key, id: UInt32(2 + number))
            expected.append(model[key] ?? [])
          }
        }
        var (sentCount, replies): (Int, [Reply]) = (0, [])
        while sentCount < requests.count {
          // The server stops reading while too many replies wait.
          let count = client.sendWithoutBlocking(Array(requests[sentCount...].prefix(1 << 20)))
          sentCount += count
          if count == 0, let reply = try? client.receive(within: 0.01) { replies.append(reply) }
        }
        while replies.count < expected.count { replies.append(try client.receive()) }
        for (number, value) in expected.enumerated() {
          let reply = replies[number]
          #expect(reply.id == UInt32(1 + number))
          if let value { #expect(reply.entries.first?.value ?? [] == value) }
        }
      }
    }

    @Test func `a value that is replaced or deleted while it is sent arrives whole`() throws {
      let server = try TestServer()
      let writer = try server.connect()
      let readers = try (0..<2).map { _ in try server.connect() }
      let value = Self.value(8_000_000)
      for removal in 0..<3 {
        #expect(try writer.call(Request.put("key", value, id: 3)).isDone)
        for reader in readers { try reader.send(Request.get("key", id: 4)) }
        #expect(try eventually { try writer.figures()["output_bytes"]! > 10_000_000 })
        // The replies take no memory as long as the store has the value.
        #expect(try writer.figures()["memory_buffers_bytes"]! < 1_000_000)
        let request =
          [Request.put("key", [1], id: 6), Request.delete("key", id: 6), Request.make(.deleteAll, id: 6)][removal]
        #expect(try writer.call(request).isDone)
        #expect(try writer.figures(store: 1)["memory_bytes"]! < 1_000_000)
        #expect(try eventually { try (8_000_000..<9_000_000).contains(writer.figures()["memory_buffers_bytes"]!) })
        for reader in readers { #expect(try reader.receive().entries.map(\.value) == [value]) }
        #expect(try eventually { try writer.figures()["memory_buffers_bytes"]! < 1_000_000 })
      }
    }

    @Test func `a connection that is closed while it sends or receives a large value leaves nothing`() throws {
      let server = try TestServer()
      let witness = try server.connect()
      let value = Self.value(5_000_000)
      #expect(try witness.call(Request.put("key", value, id: 3)).isDone)
      for byteCount in [1, 12, 40, 70_000, 3_000_000] {
        do {
          let sender = try server.connect()
          try sender.send(Array(Request.put("key", Self.value(4_000_000, 1), id: 3).prefix(byteCount)))
          let reader = try server.connect()
          try reader.send(Request.get("key", id: 4))
          #expect(try eventually { try witness.figures()["output_bytes"]! > 1_000_000 })
        }
        #expect(try eventually { try witness.figures()["connections"] == 1 })
        let figures = try witness.figures()
        #expect(figures["input_bytes"] == 0 && figures["output_bytes"] == 0)
        #expect(figures["memory_buffers_bytes"] == 0)
      }
      #expect(try witness.call(Request.get("key", id: 5)).entries.map(\.value) == [value])
    }

    @Test func `a client that has sent a large value and ends its side gets the reply`() throws {
      let server = try TestServer()
      let value = Self.value(3_000_000)
      let client = try server.connect()
      try client.send(Request.put("key", value, id: 3) + Request.get("key", id: 4))
      client.endSending()
      #expect(try client.receive().isDone)
      #expect(try client.receive().entries.map(\.value) == [value])
      #expect(try client.isClosed())
      // A value that isn't complete is not stored.
      let other = try server.connect()
      try other.send(Array(Request.put("other", value, id: 3).dropLast()))
      other.endSending()
      #expect(try other.isClosed())
      #expect(try server.connect().call(Request.get("other", id: 3)).isError(.notFound, id: 3))
    }

    @Test func `a large request is refused like any other, and the next one is executed`() throws {
      let server = try TestServer { $0.maxFrameBytes = 1 << 20 }
      let client = try server.connect()
      let value = Self.value(500_000)
      for _ in 0..<3 {
        #expect(try client.call(Request.put("key", value, id: 3)).isDone)
        let refused = try client.call(Request.put("key", Self.value(500_000, 1), id: 4, ifAbsent: true))
        #expect(refused.isError(.conditionFailed, id: 4))
        let record = Request.write("key", value)
        #expect(try client.call(Request.make(.put, id: 5, record + [1])).isError(.malformed, id: 5))
        #expect(try client.call(Request.make(.put, id: 5, Array(record.dropLast()))).isError(.malformed, id: 5))
        #expect(try client.call(Request.make(.put, store: 9, id: 6, record)).outcome != .done)
        #expect(try client.call(Request.put("", value, id: 7)).isError(.keyInvalid, id: 7))
        let tooLarge = Self.value((1 << 20) - 4_000)
        #expect(try client.call(Request.put("key", tooLarge, id: 8)).isError(.valueTooLarge, id: 8))
        #expect(try client.call(Request.get("key", id: 9)).entries.map(\.value) == [value])
      }
      try client.send(Array(Request.put("key", Self.value(2_000_000), id: 10).prefix(100_000)))
      #expect(try client.receive().isNotice(.frameLength))
    }

    @Test func `large values of a memory store wait behind replies that wait for the disk`() throws {
      let server = try TestServer(logs: ["log"])
      let client = try server.connect()
      #expect(try client.call(Request.open("log", id: 2)).isDone)
      let values = [Self.value(100_000), Self.value(200_000, 1)]
      for (number, value) in values.enumerated() {
        #expect(try client.call(Request.put("key\(number)", value, id: 3)).isDone)
      }
      for _ in 0..<20 {
        try client.send(
          Request.get("key0", id: 10) + Request.put("key", [1], id: 11, store: 2) + Request.get("key1", id: 12)
            + Request.get("key0", id: 13) + Request.put("large", values[0], id: 14, store: 2)
            + Request.make(.get, store: 2, id: 15, Array("large".utf8)))
        let replies = try (0..<6).map { _ in try client.receive() }
        #expect(replies.map(\.id) == [10, 11, 12, 13, 14, 15])
        #expect(replies[0].entries.map(\.value) == [values[0]] && replies[2].entries.map(\.value) == [values[1]])
        #expect(replies[3].entries.map(\.value) == [values[0]] && replies[5].entries.map(\.value) == [values[0]])
      }
    }

    @Test func `a large value evicts small ones in slices, and is then stored`() throws {
      let server = try TestServer(stores: [])
      let client = try TestClient(server.address)
      try client.handshake()
      #expect(try client.call(Request.create("test", engine: "memory?limit=32MiB", id: 2)).isDone)
      #expect(try client.call(Request.open("test", id: 2)).isDone)
      let other = try server.connect()
      for start in stride(from: 0, to: 250_000, by: 5_000) {
        let entries = (start..<start + 5_000).map { (key: "key\($0)", value: Self.value(100)) }
        #expect(try client.call(Request.putMany(entries, id: 3)).isDone)
      }
      let value = Self.value(12_000_000)
      try client.send(Request.put("large", value, id: 4) + Request.get("large", id: 5))
      // Others keep writing meanwhile.
      for number in 0..<2_000 {
        #expect(try other.call(Request.put("other\(number)", Self.value(100), id: 3)).isDone)
      }
      #expect(try client.receive().isDone)
      #expect(try client.receive().entries.map(\.value) == [value])
      let figures = try client.figures(store: 1)
      #expect(figures["evicted_total", default: 0] > 50_000 && figures["limited_bytes", default: .max] <= 32 << 20)
    }

    @Test func `requests of every kind may follow the reply with a large value in one batch`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let value = Self.value(40_000)
      #expect(try client.call(Request.put("large", value, id: 3)).isDone)
      let others: [Wire.Operation] = [.stats, .ping, .storeList, .count, .all, .get]
      for operation in others {
        let store: UInt16 = operation == .ping || operation == .storeList ? 0 : 1
        let request =
          operation == .all
          ? Request.all(id: 5) : Request.make(operation, store: store, id: 5, operation == .get ? [97] : [])
        try client.send(Request.get("large", id: 4) + request + Request.get("large", id: 6))
        #expect(try client.receive().entries.map(\.value) == [value])
        #expect(try client.receive().id == 5)
        #expect(try client.receive().entries.map(\.value) == [value])
      }
    }
  }
}
