import Foundation
import Platform
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  struct ConnectionFiguresTests {
    private func connections(_ client: TestClient, limit: UInt32 = 256) throws -> [ConnectionStatistics] {
      let reply = try client.call(Request.make(.connections, store: 0, id: 9, Request.bytes(limit)))
      return try #require(unsafe ConnectionStatistics.decode(reply.body.span.bytes))
    }

    @Test func `a connection is listed with its process and its traffic`() throws {
      let server = try TestServer()
      let (busy, quiet) = (try server.connect(), try server.connect())
      for number in 0..<100 { #expect(try busy.call(Request.put("k\(number)", [1], id: 3)).isDone) }
      let found = try connections(quiet)
      #expect(found.count == 2 && found[0].number != found[1].number)
      let figures = try #require(found.first { $0.requests >= 100 })
      // This includes the hello and the store-open.
      #expect(figures.requests == 102)
      #expect(figures.receivedBytes > 2_000 && figures.sentBytes > 1_000 && figures.waitingBytes == 0)
      #expect(figures.openMilliseconds < 60_000)
      #expect(figures.process == UInt32(getpid()) && figures.user == getuid() && figures.address == "")
      #expect(figures.command == commandName(ofProcess: getpid()) && figures.command != "")
    }

    @Test func `the busiest connections come first, up to the limit`() throws {
      let registry = ConnectionRegistry()
      let begun = monotonicMilliseconds()
      let all = (0..<300).map { _ in registry.add(.address("a:1"), now: begun) }
      for (index, figures) in all.enumerated() { figures.requests.increment(by: 10_000 + index) }
      registry.updateRates(now: begun + 1_000)
      // Only one has made requests recently.
      all[7].requests.increment(by: 500)
      registry.updateRates(now: begun + 2_000)
      let order = registry.busiest(3)
      #expect(order.map(\.number) == [8, 300, 299])
      #expect(order.map { $0.rate.load(ordering: .relaxed) } == [500, 0, 0])
      #expect(registry.busiest(0).isEmpty && registry.busiest(1_000).count == 300)
      for figures in all.prefix(200) { registry.remove(figures) }
      #expect(registry.busiest(1_000).map(\.number) == (201...300).reversed())
    }

    @Test func `unread output is reported as waiting`() throws {
      let server = try TestServer()
      let (slow, other) = (try server.connect(), try server.connect())
      let value = [UInt8](repeating: 7, count: 1 << 20)
      #expect(try other.call(Request.put("large", value, id: 3)).isDone)
      for number in 0..<8 as Range<UInt32> { try slow.send(Request.get("large", id: 10 + number)) }
      var waiting: UInt64 = 0
      for _ in 0..<1_000 where waiting == 0 {
        waiting = try connections(other).map(\.waitingBytes).max() ?? 0
        usleep(5_000)
      }
      #expect(waiting > 0)
      for _ in 0..<8 { #expect(try slow.receive().isDone) }
      #expect(try connections(other).allSatisfy { $0.waitingBytes == 0 })
    }

    @Test func `a client's name that grows when converted to UTF-8 is truncated`() throws {
      let figures = ConnectionFigures(number: 1, .unknown, opened: 0)
      figures.setClientName(String(decoding: [UInt8](repeating: 0xFF, count: 255), as: UTF8.self))
      #expect(figures.name.utf8.count == 255)
      figures.setClientName(String(repeating: "é", count: 127) + "x")
      #expect(figures.name.utf8.count == 255)
      var commands: [Int32: String] = [:]
      var output = ByteBuffer()
      output.append(ConnectionStatistics(figures, now: 0, &commands))
      #expect(unsafe ConnectionStatistics.decode(output.toArray().span.bytes)?.first?.client == figures.name)
    }
  }
}

extension ServerTests {
  struct SlowLogTests {
    private func entries(_ client: TestClient) throws -> [SlowLogRecord] {
      let reply = try client.call(Request.make(.slowLog, store: 0, id: 9))
      return try #require(unsafe SlowLogRecord.decode(reply.body.span.bytes))
    }

    @Test func `slow wakeups are logged with operation, size and store, newest first`() throws {
      // Every wakeup takes longer than zero.
      let server = try TestServer { $0.slowThreshold = .zero }
      let client = try server.connect()
      let secret = [UInt8](repeating: 83, count: 1_000)
      #expect(try client.call(Request.putMany([("secret", secret), ("b", [2])], id: 3)).isDone)
      #expect(try client.call(Request.make(.deleteAll, id: 3)).isDone)
      let found = try entries(client)
      #expect(found[0].operations == 1 << UInt32(Operation.deleteAll.rawValue))
      #expect(found[1].operations == 1 << UInt32(Operation.putMany.rawValue))
      #expect(found[0].store == "test" && found[0].requests == 1 && found[0].receivedBytes == 12)
      #expect(found[1].receivedBytes > 1_000 && found[1].nanoseconds > 0 && found[1].ageMilliseconds < 5_000)
      for number in 0..<300 as Range<UInt32> {
        #expect(try client.call(Request.get("k\(number)", id: 3)).code == .notFound)
      }
      let full = try entries(client)
      #expect(full.count == SlowLog.capacity)
      #expect(full.map(\.ageMilliseconds) == full.map(\.ageMilliseconds).sorted())
      #expect(full.allSatisfy { $0.operations == 1 << UInt32(Operation.get.rawValue) })
    }

    @Test func `fast wakeups are not logged`() throws {
      let server = try TestServer { $0.slowThreshold = .seconds(60) }
      let client = try server.connect()
      #expect(try client.call(Request.put("a", [1], id: 3)).isDone)
      #expect(try entries(client).isEmpty)
    }

    @Test func `reading the slow log isn't in it`() {
      var log = SlowLog()
      for operations in [[.slowLog], [.slowLog, .stats], [.stats]] as [[Wire.Operation]] {
        let bits = operations.reduce(0 as UInt64) { $0 | 1 << UInt64($1.rawValue) }
        log.append(
          .init(
            ended: 1, nanoseconds: 1, requests: 1, receivedBytes: 0, operations: SlowLog.Entry.bits(bits), store: ""))
      }
      #expect(log.newestFirst.count == 2)
    }

    @Test func `a full log overwrites its oldest entries`() {
      var log = SlowLog()
      for number in 1...300 as ClosedRange<UInt64> {
        log.append(.init(ended: number, nanoseconds: 1, requests: 1, receivedBytes: 0, operations: 0, store: ""))
        let expected = Array((1...number).reversed().prefix(SlowLog.capacity))
        #expect(log.newestFirst.map(\.ended) == expected)
      }
    }
  }
}
