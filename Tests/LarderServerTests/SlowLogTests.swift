import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  struct SlowLogTests {
    private func entries(_ client: TestClient) throws -> [SlowWakeUp] {
      let reply = try client.call(Request.make(.slowLog, store: 0, id: 9))
      return try #require(unsafe SlowWakeUp.decode(reply.body.span.bytes))
    }

    @Test func `what took long is remembered with its operation, size and store, the latest first`() throws {
      // Everything takes longer than nothing.
      let server = try TestServer { $0.slow = .zero }
      let client = try server.connect()
      let secret = [UInt8](repeating: 83, count: 1_000)
      #expect(try client.call(Request.putMany([("secret", secret), ("b", [2])], id: 3)).isDone)
      #expect(try client.call(Request.make(.deleteAll, id: 3)).isDone)
      let found = try entries(client)
      #expect(found[0].operations == 1 << UInt32(Operation.deleteAll.rawValue))
      #expect(found[1].operations == 1 << UInt32(Operation.putMany.rawValue))
      #expect(found[0].store == "test" && found[0].requests == 1 && found[0].receivedBytes == 12)
      #expect(found[1].receivedBytes > 1_000 && found[1].nanoseconds > 0 && found[1].millisecondsAgo < 5_000)
      for number in 0..<300 as Range<UInt32> {
        #expect(try client.call(Request.get("k\(number)", id: 3)).code == .notFound)
      }
      let full = try entries(client)
      #expect(full.count == SlowLog.capacity)
      #expect(full.map(\.millisecondsAgo) == full.map(\.millisecondsAgo).sorted())
      #expect(full.allSatisfy { $0.operations == 1 << UInt32(Operation.get.rawValue) })
    }

    @Test func `what is quick is not in it`() throws {
      let server = try TestServer { $0.slow = .seconds(60) }
      let client = try server.connect()
      #expect(try client.call(Request.put("a", [1], id: 3)).isDone)
      #expect(try entries(client).isEmpty)
    }

    @Test func `the log goes round`() {
      var log = SlowLog()
      for number in 1...300 as ClosedRange<UInt64> {
        log.append(.init(ended: number, nanoseconds: 1, requests: 1, receivedBytes: 0, operations: 0, store: ""))
        let expected = Array((1...number).reversed().prefix(SlowLog.capacity))
        #expect(log.newestFirst.map(\.ended) == expected)
      }
    }
  }
}
