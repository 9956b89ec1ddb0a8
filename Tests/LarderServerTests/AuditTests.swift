import Dispatch
import Documents
import Glibc
import Platform
import Storage
import Testing
import Tokens
import Wire

@testable import LarderServer

extension ServerTests {
  /// What the audit records.
  struct AuditTests {
    private final class Events: Sendable {
      private let all = Lock<[AuditEvent]>([])

      func add(_ events: [AuditEvent]) { all.withLock { $0 += events } }

      /// The events as JSON, once there are as many.
      func json(_ count: Int) -> [JSONValue] {
        #expect(eventually { all.withLock { $0.count } >= count })
        return all.withLock { $0 }.map(\.json)
      }
    }

    private let events = Events()

    private func server(
      _ rules: [AccessRule] = [AccessRule(.tcp, .admin)], speaking spoken: ListenerProtocol = .native,
      tokens: TokenTable = TokenTable()
    ) throws -> TestServer {
      try TestServer(
        tcp: true, rules: rules, databases: [try #require(RESPDatabase(0, try StoreName("test")))],
        speaking: spoken, tokens: tokens, audit: { [events] in events.add($0) })
    }

    @Test func `what administrators do is recorded, with who did it`() throws {
      let server = try server()
      let client = try server.connect()
      #expect(try client.call(Request.create("new", id: 3)).isDone)
      #expect(try client.call(Request.create("new", id: 4)).isError(.storeExists, id: 4))
      #expect(try client.call(Request.put("a", [1], id: 5)).isDone)
      #expect(try client.call(Request.make(.deleteAll, id: 6)).isDone)
      let index = Array(#"{"name": "i", "fields": ["a"]}"#.utf8)
      for id: UInt32 in 7...8 { #expect(try client.call(Request.make(.indexEnsure, id: id, index)).isDone) }
      #expect(try client.call(Request.make(.indexDelete, id: 9, Array("i".utf8))).isDone)
      #expect(try client.call(Request.make(.storeDrop, store: 0, id: 10, Array("new".utf8))).isDone)
      let found = events.json(7)
      #expect(
        found.map { $0["event"]?.string } == [
          "authenticated", "store-created", "store-created", "store-emptied", "index-created", "index-deleted",
          "store-dropped",
        ])
      #expect(found.map { $0["outcome"]?.string } == ["done", "done", "failed", "done", "done", "done", "done"])
      #expect(
        found[1]["store"] == "new" && found[1]["object"] == "memory" && found[2]["reason"]?.string?.isEmpty == false)
      #expect(found[3]["store"] == "test" && found[4]["object"] == "i" && found[5]["object"] == "i")
      for event in found {
        #expect(event["address"]?.string?.hasPrefix("127.0.0.1:") == true)
        #expect(event["connection"] == 1 && event["listener"] == .string("\(server.address)"))
      }
    }

    @Test func `what administrators do with RESP is recorded, also in a transaction`() throws {
      let server = try server(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("FLUSHDB") == .ok && client.call("FLUSHALL") == .ok)
      #expect(try client.call("MULTI") == .ok && client.call("FLUSHDB") == .simple("QUEUED"))
      #expect(try client.call("EXEC") == [.ok])
      #expect(try client.call("CONFIG", "SET", "notify-keyspace-events", "Ex") == .ok)
      let found = events.json(5)
      #expect(
        found.map { $0["event"]?.string }
          == ["authenticated", "store-emptied", "store-emptied", "store-emptied", "parameter-changed"])
      #expect(found[1]["store"] == "test" && found[4]["object"] == "notify-keyspace-events xE")
    }

    @Test func `tokens, failed authentications and refusals are recorded, and never a token`() throws {
      let (token, wrong) = (AccessToken(), AccessToken())
      let record = TokenRecord(name: "job", digest: token.digest, created: 0, expiry: nil)
      let rules = [AccessRule(.principal("job"), .read)]
      let server = try server(rules, tokens: TokenTable([record]))
      for text in [token.text, wrong.text] {
        let client = try TestClient(server.address)
        var hello = ByteBuffer()
        hello.appendRequest(ClientHello(features: Features.tokens, credit: 1, name: "test", token: text), id: 1)
        let isAccepted = try client.call(hello.toArray()).isDone
        #expect(isAccepted == (text == token.text))
        guard isAccepted else { continue }
        #expect(try client.call(Request.create("new", id: 3)).isError(.notPermitted, id: 3))
      }
      try server.server.change(stores: [], limits: ServerLimits(), rules: rules, tokens: TokenTable())
      let found = events.json(4)
      #expect(
        found.map { $0["event"]?.string }.prefix(4) == [
          "authenticated", "refused", "authentication-failed", "token-removed",
        ])
      #expect(found[0]["principal"] == "job" && found[0]["proof"] == "token")
      #expect(found[1]["principal"] == "job" && found[1]["reason"] == "create store new")
      #expect(found[2]["outcome"] == "failed" && found[2]["reason"] == "there is no such token")
      #expect(found[3]["object"] == "job" && found[3]["address"] == nil)
      for event in found {
        let text = String(decoding: event.encoded(), as: UTF8.self)
        #expect(!text.contains(wrong.text) && !text.contains(token.text))
      }
    }

    @Test func `what one client does often is counted, and hides nothing that others do`() {
      let written = Lock<[AuditEvent]>([])
      let trail = AuditTrail { events in written.withLock { $0 += events } }
      let events = ClientEvents(in: trail)
      func client(_ address: String) -> AuditClient {
        AuditClient(listener: Listener(address: .unix(path: "/s")), peer: .address(address))
      }
      for _ in 0..<500 {
        events.record(AuditEvent(.authenticated, client("10.0.0.1:5")), now: 1)
        events.record(AuditEvent(.storeEmptied, client("10.0.0.1:5")), now: 1)
        events.record(AuditEvent(.reloaded), now: 1)
      }
      events.record(AuditEvent(.authenticated, client("10.0.0.2:5")), now: 1)
      events.finish()
      trail.finish()
      let found = written.withLock { $0 }
      func count(_ kind: AuditEvent.Kind) -> Int { found.count { $0.kind == kind } }
      #expect(count(.reloaded) == 500 && count(.storeEmptied) == ClientEvents.maxPerClient + 1)
      #expect(count(.authenticated) == ClientEvents.maxPerClient + 2)
      let counted = found.filter { $0.count != nil }
      #expect(counted.map(\.count) == [500 - ClientEvents.maxPerClient, 500 - ClientEvents.maxPerClient])
      #expect(counted.allSatisfy { $0.object == "further ones of 10.0.0.1" && !$0.isFailure })
    }

    @Test func `events that come faster than they can be written are counted`() {
      let gate = DispatchSemaphore(value: 0)
      let written = Lock<[AuditEvent]>([])
      let trail = AuditTrail { events in
        gate.wait()
        written.withLock { $0 += events }
      }
      trail.record(AuditEvent(.reloaded))
      // The first one is being written.
      #expect(eventually { trail.figures.events == 1 })
      usleep(50_000)
      for _ in 0..<AuditTrail.maxWaiting + 100 { trail.record(AuditEvent(.reloaded)) }
      for _ in 0..<2 { gate.signal() }
      trail.finish()
      let events = written.withLock { $0 }
      #expect(events.count == 1 + AuditTrail.maxWaiting + 1)
      #expect(events.last?.kind == .eventsLost && events.last?.count == 100)
      #expect(trail.figures.events == UInt64(AuditTrail.maxWaiting + 101) && trail.figures.lost == 100)
    }
  }
}
