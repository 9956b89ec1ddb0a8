import LarderServer
import Testing
import Wire

extension ServerTests {
  /// The messages of errors: `Protocol/wire.md` §7.
  struct ErrorMessageTests {
    @Test func `a condition that does not hold is named, with the revision that is there`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("k", [1], id: 3)).number == 1)
      func message(_ request: [UInt8]) throws -> String {
        let reply = try client.call(request)
        #expect(reply.isError(.conditionFailed, id: 4), "\(reply)")
        return reply.message
      }
      #expect(try message(Request.put("k", [2], id: 4, ifAbsent: true)) == "the key has an entry")
      #expect(try message(Request.put("k", [2], id: 4, ifRevision: 7)) == "the entry has revision 1, not 7")
      #expect(
        try message(Request.put("x", [2], id: 4, ifRevision: 7)) == "there is no entry, but revision 7 was expected")
      #expect(try message(Request.delete("k", id: 4, ifRevision: .max)).hasSuffix("revision 1, not \(UInt64.max)"))
      let records = [
        Request.write("new", [1], ifAbsent: true), Request.write("k\"\n", [1], ifRevision: 2),
        Request.write("k", [1], ifAbsent: true),
      ]
      #expect(
        try message(Request.putMany(records: records, id: 4))
          == #"record 2 on "k\"\n": there is no entry, but revision 2 was expected"#)
    }

    @Test func `a value that is too large is named with its size and the limit`() throws {
      let server = try TestServer { $0.maxFrameBytes = 1 << 17 }
      let client = try server.connect()
      let (limit, value) = ((1 << 17) - 8_192, [UInt8](repeating: 1, count: 130_000))
      #expect(
        try client.call(Request.put("k", value, id: 4)).message == "the value has 130000 bytes; the limit is \(limit)")
      let many = try client.call(Request.putMany([("a", [1]), ("b", value)], id: 4))
      #expect(many.isError(.valueTooLarge, id: 4))
      #expect(many.message == #"record 2 on "b": the value has 130000 bytes; the limit is \#(limit)"#)
    }

    @Test(
      arguments: [
        (.ping, [1], "the body must be empty, but has 1 byte"),
        (.put, [1, 0, 1, 0], "the record at byte 0 of the body has 4 bytes, but needs at least 8"),
        (.put, [9, 0, 1, 0, 0, 0, 0, 0, 65], "the record at byte 0 of the body has the unknown kind 9"),
        (.put, [1, 8, 1, 0, 0, 0, 0, 0, 65], "the record at byte 0 of the body, of kind 1, has invalid flags: 8"),
        (
          .put, [1, 0, 1, 0, 5, 0, 0, 0, 65],
          "the record at byte 0 of the body takes 14 bytes, of which the key takes 1 and the value 5, but the body has "
            + "only 9 more"
        ),
        (.put, [1, 0, 1, 0, 0, 0, 0, 0, 65, 66, 67], "the body has 2 bytes after its last field"),
        (.put, [1, 0, 1, 0, 0, 0, 0, 0, 0xFF], "the key is not valid UTF-8"),
        (.put, [1, 0, 0, 0, 0, 0, 0, 0], "a key must not be empty"),
        (
          .put, [1, 6, 1, 0, 0, 0, 0, 0] + Array(repeating: 1, count: 8) + [65],
          "an operation can't have two conditions"
        ),
        (.putMany, [2, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 65], "the body ends where a record is expected"),
        (.delete, [1, 65], "a delete has invalid flags: 1"),
        (.delete, [4, 65], "the body ends before the revision"),
        (.getMany, [2, 0, 0, 0, 1, 0, 65], "the body ends inside key 2 of 2"),
        (.getMany, [1, 0, 0, 0, 0, 0], "key 1: a key must not be empty"),
        (.all, [8, 0, 0, 0, 0, 0, 0, 0], "unknown flags: 8"),
        (.all, [0, 0, 3, 0, 0, 0, 0, 0, 65], "the sizes in the body require 11 bytes, but it has 9"),
        (.all, [0, 0, 0, 0, 1, 0, 0, 0, 65], "a cursor needs bit 2 of the flags"),
        (.page, [0], "the body must have at least 20 bytes, but has 1"),
        (.watch, [1] + Array(repeating: 0, count: 15), "unknown flags: 1"),
        (.changeMatching, [0, 0, 0, 0, 0, 0, 0, 0], "the update is missing"),
      ] as [(Wire.Operation, [UInt8], String)])
    func `an invalid body is described`(_ operation: Wire.Operation, _ body: [UInt8], _ message: String) throws {
      let server = try TestServer()
      let client = try server.connect()
      let store: UInt16 = operation == .ping ? 0 : 1
      let reply = try client.call(Request.make(operation, store: store, id: 4, body))
      #expect(reply.outcome == .rejected && reply.message == message, "\(reply)")
      #expect(try client.call(Request.make(.count, id: 5)).number == 0)
    }
  }
}
