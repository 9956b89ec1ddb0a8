import Storage
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Values that arrive in parts: `Protocol/wire.md` §6.13.
  @Suite struct UploadTests {
    private func begin(_ client: TestClient) throws -> UInt64 {
      try #require(client.call(Request.make(.uploadBegin, id: 5)).number)
    }

    private func part(_ upload: UInt64, _ offset: Int, _ bytes: [UInt8], id: UInt32 = 6) -> [UInt8] {
      var body = ByteBuffer()
      unsafe body.appendUploadPart(upload, offset: UInt64(offset), bytes: bytes.span.bytes)
      return Request.make(.uploadPart, store: 0, id: id, body.toArray())
    }

    private func put(
      _ upload: UInt64, _ size: Int, _ key: String = "key", kind: ValueKind = .single, store: UInt16 = 1,
      expiry: UInt64 = 0, ifAbsent: Bool = false, ifRevision: UInt64? = nil
    ) -> [UInt8] {
      var body = ByteBuffer()
      unsafe body.appendUploadPut(
        upload, size: UInt64(size), kind: kind, expiry: expiry, ifAbsent: ifAbsent, ifRevision: ifRevision,
        key: Array(key.utf8).span.bytes)
      return Request.make(.uploadPut, store: store, id: 7, body.toArray())
    }

    private func discard(_ upload: UInt64) -> [UInt8] {
      Request.make(.uploadDiscard, store: 0, id: 8, Request.bytes(upload))
    }

    @Test func `an uploaded value appears when it is complete, and not before`() throws {
      let server = try TestServer()
      let (client, other) = (try server.connect(), try server.connect())
      let value = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 7 ^ $0 >> 9) }
      let upload = try begin(client)
      for offset in stride(from: 0, to: value.count, by: 700_000) {
        let bytes = Array(value[offset...].prefix(700_000))
        #expect(try client.call(part(upload, offset, bytes)).isDone)
        #expect(try other.call(Request.get("key", id: 3)).isError(.notFound, id: 3))
        #expect(try client.call(Request.put("other", [1], id: 3)).isDone)
      }
      #expect(try client.call(put(upload, value.count)).number == 6)
      #expect(try other.call(Request.get("key", id: 3)).entries.first?.value == value)
      #expect(try client.call(put(upload, value.count)).isError(.uploadUnknown, id: 7))
      #expect(try client.call(part(upload, value.count, [1])).isError(.uploadUnknown, id: 6))
    }

    @Test func `parts that arrive together, of several uploads, are kept apart`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let (a, b) = (try begin(client), try begin(client))
      let requests = (0..<50).flatMap { part(a, $0, [1]) + part(b, $0 * 2, [2, 3]) }
      try client.send(requests + put(a, 50, "a") + put(b, 100, "b"))
      for _ in 0..<100 { #expect(try client.receive().isDone) }
      #expect(try client.receive().number == 1)
      #expect(try client.receive().number == 2)
      #expect(try client.call(Request.get("a", id: 3)).entries[0].value == [UInt8](repeating: 1, count: 50))
      #expect(try client.call(Request.get("b", id: 3)).entries[0].value == (0..<50).flatMap { _ in [2, 3] as [UInt8] })
    }

    @Test func `a part that is lost or sent twice, and a value that is short, are refused`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let upload = try begin(client)
      #expect(try client.call(part(upload, 0, [1, 2])).isDone)
      for offset in [0, 1, 3, Int.max] {
        let reply = try client.call(part(upload, offset, [3]))
        #expect(reply.isError(.illegalArgument, id: 6) && reply.message.hasSuffix("the upload has 2 bytes"))
      }
      for size in [0, 1, 3] { #expect(try client.call(put(upload, size)).isError(.illegalArgument, id: 7)) }
      // The upload goes on.
      #expect(try client.call(part(upload, 2, [3])).isDone)
      #expect(try client.call(put(upload, 3, "")).isError(.keyInvalid, id: 7))
      #expect(try client.call(put(upload, 3, kind: .list)).isError(.dataSerialization, id: 7))
      #expect(try client.call(put(upload, 3, ifAbsent: true, ifRevision: 1)).isError(.illegalArgument, id: 7))
      #expect(try client.call(put(upload, 3, expiry: 1 << 60)).isError(.illegalArgument, id: 7))
      #expect(try client.call(put(upload, 3, ifRevision: 1)).isError(.conditionFailed, id: 7))
      #expect(try client.figures(store: 1)["revision"] == 0)
      #expect(try client.call(put(upload, 3, expiry: 60_000, ifAbsent: true)).number == 1)
      let entry = try client.call(Request.get("key", id: 3)).entries[0]
      #expect(entry.value == [1, 2, 3] && entry.expiry > 0 && entry.expiry <= 60_000)
    }

    @Test func `a list is uploaded in its wire format`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let elements = (0..<100).map { [UInt8](repeating: UInt8($0), count: 1_000) }
      let upload = try begin(client)
      let value = ListValue.encode(elements)
      #expect(try client.call(part(upload, 0, value)).isDone)
      #expect(try client.call(put(upload, value.count, kind: .list)).isDone)
      let reply = try client.call(Request.get("key", id: 3))
      #expect(unsafe EntryRecord(reply.body.span.bytes, at: 0)?.kind == .list && reply.entries[0].value == value)
    }

    @Test func `a value that is too large is refused at the part that makes it so`() throws {
      let server = try TestServer(limits: { $0.maxFrameBytes = 1 << 17 })
      let client = try server.connect()
      let maxSize = 1 << 17 - 8_192
      let upload = try begin(client)
      #expect(try client.call(part(upload, 0, [UInt8](repeating: 1, count: maxSize))).isDone)
      #expect(try client.call(part(upload, maxSize, [1])).isError(.valueTooLarge, id: 6))
      #expect(try client.call(part(upload, maxSize, [])).isDone)
      #expect(try client.call(put(upload, maxSize)).number == 1)
    }

    @Test func `uploads end with their connection, and are unknown on others`() throws {
      let server = try TestServer()
      let other = try server.connect()
      do {
        let client = try server.connect()
        let upload = try begin(client)
        #expect(try client.call(part(upload, 0, [UInt8](repeating: 1, count: 5 << 20))).isDone)
        #expect(try client.figures()["input_bytes"]! >= 5 << 20)
        #expect(try other.call(part(upload, 5 << 20, [1])).isError(.uploadUnknown, id: 6))
        #expect(try other.call(put(upload, 5 << 20)).isError(.uploadUnknown, id: 7))
        #expect(try other.call(discard(upload)).isError(.uploadUnknown, id: 8))
        #expect(try client.call(part(upload, 5 << 20, [1])).isDone)
      }
      #expect(try eventually { try other.figures()["input_bytes"]! < 1 << 20 })
    }

    @Test func `an upload ends when it is discarded or idle for too long`() throws {
      let server = try TestServer(limits: { $0.frameTime = .milliseconds(200) })
      let client = try server.connect()
      let discarded = try begin(client)
      #expect(try client.call(part(discarded, 0, [1])).isDone)
      #expect(try client.call(discard(discarded)).isDone)
      #expect(try client.call(discard(discarded)).isError(.uploadUnknown, id: 8))
      let idle = try begin(client)
      #expect(try client.call(part(idle, 0, [UInt8](repeating: 1, count: 1 << 20))).isDone)
      // Nothing is sent on this connection meanwhile.
      let other = try server.connect()
      #expect(try eventually { try other.figures()["input_bytes"]! < 1 << 19 })
      let reply = try client.call(part(idle, 1 << 20, [1]))
      #expect(
        reply.isError(.uploadUnknown, id: 6) && reply.message.contains("without a part for 0.2 seconds"), "\(reply)")
      #expect(try client.pings())
    }

    @Test func `the number of uploads and their memory are limited`() throws {
      let server = try TestServer(limits: {
        $0.maxFrameBytes = 1 << 20
        $0.maxTotalInputBytes = 4 << 20
      })
      let client = try server.connect()
      let uploads = try (0..<64).map { _ in try begin(client) }
      #expect(Set(uploads).count == 64)
      #expect(try client.call(Request.make(.uploadBegin, id: 5)).isError(.tooManyRequests, id: 5))
      let bytes = [UInt8](repeating: 1, count: 1_000_000)
      var refusals = 0
      for upload in uploads.prefix(10) {
        let reply = try client.call(part(upload, 0, bytes))
        if !reply.isDone {
          #expect(reply.isError(.tooManyRequests, id: 6))
          refusals += 1
        }
      }
      #expect(refusals >= 6 && refusals < 10)
      #expect(try client.call(put(uploads[0], bytes.count)).number == 1)
      #expect(try client.call(part(uploads[9], 0, bytes)).isDone)
      #expect(try client.call(Request.make(.uploadBegin, id: 5)).isDone)
    }

    @Test func `a client that may only read can't upload`() throws {
      let server = try TestServer(
        stores: ["test", "other"], tcp: true,
        rules: [
          AccessRule(.tcp, .read), AccessRule(.tcp, .write, store: try StoreName("other")),
        ])
      let client = try server.connect()
      #expect(try client.call(Request.open("other", id: 3)).isDone)
      #expect(try client.call(Request.make(.uploadBegin, store: 1, id: 5)).isError(.notPermitted, id: 5))
      let upload = try #require(client.call(Request.make(.uploadBegin, store: 2, id: 5)).number)
      #expect(try client.call(part(upload, 0, [1])).isDone)
      #expect(try client.call(put(upload, 1, store: 1)).isError(.notPermitted, id: 7))
      #expect(try client.call(put(upload, 1, store: 2)).number == 1)
    }
  }
}
