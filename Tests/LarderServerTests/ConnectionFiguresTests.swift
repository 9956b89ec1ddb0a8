import Foundation
import Platform
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  struct ConnectionFiguresTests {
    private func connections(_ client: TestClient, most: UInt32 = 256) throws -> [BusyConnection] {
      let reply = try client.call(Request.make(.connections, store: 0, id: 9, Request.bytes(most)))
      return try #require(unsafe BusyConnection.decode(reply.body.span.bytes))
    }

    @Test func `a connection is told of with its process, and what it has asked for and got`() throws {
      let server = try TestServer()
      let (busy, quiet) = (try server.connect(), try server.connect())
      for number in 0..<100 { #expect(try busy.call(Request.put("k\(number)", [1], id: 3)).isDone) }
      let found = try connections(quiet)
      #expect(found.count == 2 && found[0].number != found[1].number)
      let figures = try #require(found.first { $0.requests >= 100 })
      // The hello, and the opening of the store.
      #expect(figures.requests == 102)
      #expect(figures.receivedBytes > 2_000 && figures.sentBytes > 1_000 && figures.waitingBytes == 0)
      #expect(figures.openMilliseconds < 60_000)
      #expect(figures.process == UInt32(getpid()) && figures.user == getuid() && figures.address == "")
      #expect(figures.command == commandName(ofProcess: getpid()) && figures.command != "")
    }

    @Test func `the busiest come first, and no more than were asked for`() throws {
      let registry = ConnectionRegistry()
      let begun = monotonicMilliseconds()
      let all = (0..<300).map { _ in registry.add(.address("a:1"), now: begun) }
      for (index, figures) in all.enumerated() { figures.requests.increment(by: 10_000 + index) }
      registry.updateRates(now: begun + 1_000)
      // Only one has asked for anything lately.
      all[7].requests.increment(by: 500)
      registry.updateRates(now: begun + 2_000)
      let order = registry.busiest(3)
      #expect(order.map(\.number) == [8, 300, 299])
      #expect(order.map { $0.rate.load(ordering: .relaxed) } == [500, 0, 0])
      #expect(registry.busiest(0).isEmpty && registry.busiest(1_000).count == 300)
      for figures in all.prefix(200) { registry.remove(figures) }
      #expect(registry.busiest(1_000).map(\.number) == (201...300).reversed())
    }

    @Test func `what is not read is told as waiting`() throws {
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

    @Test func `a client's name that grows when it is made UTF-8 is cut off`() throws {
      let figures = ConnectionFigures(number: 1, .unknown, opened: 0)
      figures.setClientName(String(decoding: [UInt8](repeating: 0xFF, count: 255), as: UTF8.self))
      #expect(figures.name.utf8.count == 255)
      figures.setClientName(String(repeating: "é", count: 127) + "x")
      #expect(figures.name.utf8.count == 255)
      var commands: [Int32: String] = [:]
      var output = ByteBuffer()
      output.append(BusyConnection(figures, now: 0, &commands))
      #expect(unsafe BusyConnection.decode(output.toArray().span.bytes)?.first?.client == figures.name)
    }
  }
}
