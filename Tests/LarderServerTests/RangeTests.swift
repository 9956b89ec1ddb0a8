import Testing
import Wire

extension ServerTests {
  /// Requests for parts of values: `Protocol/wire.md` §6.12.
  @Suite struct RangeTests {
    private func request(_ offset: UInt64, _ count: UInt32, of key: String = "key", ifRevision: UInt64? = nil)
      -> [UInt8]
    {
      var body = ByteBuffer()
      unsafe body.appendRange(offset: offset, count: count, ifRevision: ifRevision, key: Array(key.utf8).span.bytes)
      return Request.make(.getRange, id: 5, body.toArray())
    }

    @Test func `a range is cut off at the end of the value`() throws {
      let server = try TestServer()
      let client = try server.connect()
      let value = Array("0123456789".utf8)
      try #require(client.call(Request.put("key", value, id: 3, expiry: 60_000)).isDone)
      let ranges: [(UInt64, UInt32, Range<Int>)] = [
        (0, 10, 0..<10), (0, .max, 0..<10), (3, 4, 3..<7), (9, 5, 9..<10), (10, 1, 10..<10), (.max, .max, 10..<10),
        (5, 0, 5..<5),
      ]
      for (offset, count, expected) in ranges {
        let reply = try client.call(request(offset, count))
        let range = try #require(unsafe RangeReply(reply.body.span.bytes), "\(reply)")
        #expect(range.valueSize == 10 && range.record.revision == 1)
        #expect(range.record.expiry > 0 && range.record.expiry <= 60_000)
        #expect(Array(reply.body[range.record.value]) == Array(value[expected]))
      }
    }

    @Test func `a revision that the entry does not have is refused`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try #require(client.call(Request.put("key", [1, 2, 3], id: 3)).isDone)
      #expect(try client.call(request(0, 1, ifRevision: 1)).isDone)
      let refused = try client.call(request(0, 1, ifRevision: 2))
      #expect(refused.isError(.conditionFailed, id: 5) && refused.message == "the entry has revision 1, not 2")
      let absent = try client.call(request(0, 1, of: "none", ifRevision: 2))
      #expect(
        absent.isError(.conditionFailed, id: 5)
          && absent.message == "there is no entry, but revision 2 was expected")
      #expect(try client.call(request(0, 1, of: "none")).isError(.notFound, id: 5))
    }

    @Test func `a list has no ranges`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try #require(client.call(Request.apply([.putList("key", [[1], [2]])], id: 3)).isDone)
      #expect(try client.call(request(0, 1)).isError(.illegalArgument, id: 5))
    }

    @Test func `many ranges in one batch are each answered`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try #require(client.call(Request.put("key", Array(0..<200), id: 3)).isDone)
      try client.send((0..<200).flatMap { request(UInt64($0), 1) })
      for byte in UInt8(0)..<200 { #expect(try client.receive().body.last == byte) }
    }
  }
}
