import LarderServer
import Platform
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Updates that a job makes without the store's lock, in rounds.
  struct ApplyRoundTests {
    private static func document(_ n: Int, size: Int = 0) -> [UInt8] { ApplyTests.document(n, size: size) }

    @Test func `updates that are much work are made without the store's lock`() throws {
      let server = try TestServer()
      let client = try server.connect()
      #expect(try client.call(Request.put("a", Self.document(1), id: 3)).isDone)
      let increment = #"{"$inc":{"n":1}}"#
      func many(_ count: Int, _ body: (Int) -> String) -> String { (0..<count).map(body).joined(separator: ",") }
      let fields = "{\(many(60) { "\"f\($0)\":\($0)" })}"
      let cases: [(String, [TestOperation], isBrief: Bool)] = [
        ("a few updates", [.update("a", increment), .update("a", increment)], true),
        ("a put and updates", [.put("b", Self.document(1)), .update("b", increment)], true),
        ("many fields", [.update("a", "{\"$inc\":{\(many(1_000) { "\"f\($0)\":1" })}}")], false),
        ("fields in many new documents", (0..<64).map { .update("new\($0)", fields, creates: true) }, false),
        (
          "updates of a put",
          [.put("c", Self.document(1, size: 3_000))]
            + Array(repeating: .update("c", increment), count: 20), false
        ),
        (
          "a document that grows",
          (0..<60).map { .update("grown", "{\"member number \($0)\":\"\($0)\"}", creates: true) }, false
        ),
      ]
      for (name, operations, isBrief) in cases {
        // Only an apply that is not brief can be canceled by what arrives with it.
        let reply = try client.call(Request.apply(operations, id: 5) + Request.cancel(5))
        #expect(isBrief ? reply.isDone : reply.isError(.cancelled, id: 5), "\(name): \(reply)")
        if !isBrief { #expect(try client.call(Request.apply(operations, id: 6)).isDone, "\(name)") }
      }
    }

    @Test func `an apply recomputes only the entries that another client has written`() throws {
      let server = try TestServer(workers: 2) { $0.findTime = .seconds(60) }
      let (client, writer) = (try server.connect(), try server.connect())
      let count = 5_000
      let puts = (0..<count).map { TestOperation.put("key\($0)", Self.document(0)) }
      #expect(try client.call(Request.apply(puts, id: 3)).number == 1)
      let updates = (0..<count).map { TestOperation.update("key\($0)", #"{"$inc":{"n":1}}"#) }
      try client.send(Request.apply(updates, id: 4))
      // More often than all updates can be made 16 times.
      var writeCount = 0
      while client.isSilent(for: 0.05) {
        writeCount += 1
        #expect(try writer.call(Request.put("key\(writeCount % 2)", Self.document(writeCount), id: 5)).isDone)
        try #require(writeCount < 1_000)
      }
      let reply = try client.receive()
      #expect(reply.isDone, "\(reply)")
      #expect(try client.find(#"{"n":1}"#, countOnly: true).result.found >= count - 2)
    }

    @Test func `an apply succeeds although others write its entries all the time`() throws {
      let server = try TestServer(workers: 2) { $0.findTime = .seconds(60) }
      let (client, writer) = (try server.connect(), try server.connect())
      #expect(try client.call(Request.put("a", Self.document(0), id: 3)).isDone)
      try client.send(Request.apply(Array(repeating: .update("a", #"{"$inc":{"n":1}}"#), count: 5_000), id: 4))
      var writeCount = 0
      while client.isSilent(for: 0.001) {
        writeCount += 1
        #expect(try writer.call(Request.put("a", Self.document(0), id: 5)).isDone)
        try #require(writeCount < 10_000)
      }
      #expect(try client.receive().isDone)
    }
  }
}
