import Glibc
import Platform
import Testing
import Tokens
import Wire

@testable import LarderServer

extension ServerTests {
  /// Clients that prove who they are by tokens.
  @Suite struct TokenTests {
    private let token = AccessToken()
    private let other = AccessToken()
    private let expired = AccessToken()
    private let reports = Reports()

    /// What the server reports.
    private final class Reports: Sendable {
      private let reasons = Lock<[String]>([])

      /// Why clients were refused.
      var all: [String] { reasons.withLock { $0 } }

      func add(_ event: RefusalLog.Event) {
        if case .refused(let refusal) = event, let reason = refusal.reason { reasons.withLock { $0.append(reason) } }
      }
    }

    private static let now = Int64(time(nil))

    private func record(_ name: String, _ token: AccessToken, expiry: Int64? = nil) -> TokenRecord {
      TokenRecord(name: name, digest: token.digest, created: Self.now, expiry: expiry)
    }

    private var table: TokenTable {
      TokenTable([record("web", token), record("audit", other), record("old", expired, expiry: Self.now - 1)])
    }

    private static let rules = [AccessRule(.principal("web"), .write), AccessRule(.principal("audit"), .read)]

    private func makeServer(
      speaking spoken: ListenerProtocol = .native, rules: [AccessRule] = rules
    ) throws -> TestServer {
      try TestServer(
        tcp: true, rules: rules, speaking: spoken, onRefusal: { [reports] in reports.add($0) }, tokens: table)
    }

    /// Connects, and sends a hello with a token.
    private func greet(_ server: TestServer, _ token: String, id: UInt32 = 1) throws -> (TestClient, Reply) {
      let client = try TestClient(server.address)
      var buffer = ByteBuffer()
      buffer.appendRequest(
        ClientHello(features: Features.all, credit: 1 << 20, name: "test", token: token), id: id)
      return (client, try client.call(buffer.toArray()))
    }

    @Test func `a token gives its owner the rights of the principal`() throws {
      let server = try makeServer()
      let (writer, hello) = try greet(server, token.text)
      #expect(hello.isDone)
      #expect(unsafe ServerHello(body: hello.body.span.bytes)?.features == Features.all)
      #expect(try writer.call(Request.open("test", id: 2)).isDone)
      #expect(try writer.call(Request.put("key", [1], id: 3)).isDone)
      let (reader, _) = try greet(server, other.text)
      #expect(try reader.call(Request.open("test", id: 2)).isDone)
      #expect(try reader.call(Request.get("key", id: 3)).entries.first?.value == [1])
      let refusal = try reader.call(Request.put("key", [2], id: 4))
      #expect(refusal.isError(.notPermitted, id: 4))
      #expect(refusal.message == "principal audit may not write to store test")
      // Without a token, no rule matches.
      let (_, anonymous) = try greet(server, "")
      #expect(anonymous.isError(.notPermitted, id: 1))
    }

    @Test func `a principal has a limited number of connections, wherever they come from`() throws {
      let server = try TestServer(
        tcp: true, rules: Self.rules, alsoNative: true, limits: { $0.clientConnections = 2 },
        tokens: TokenTable([record("web", token), record("audit", other)]))
      func connect(_ listener: Int, _ token: AccessToken) throws -> (TestClient, Reply) {
        let client = try TestClient(server.server.addresses[listener])
        var buffer = ByteBuffer()
        buffer.appendRequest(ClientHello(features: Features.all, credit: 1, name: "test", token: token.text), id: 1)
        return (client, try client.call(buffer.toArray()))
      }
      var first: TestClient? = try connect(0, token).0
      let (second, hello) = try connect(1, token)
      #expect(hello.isDone && first != nil)
      let (refused, reply) = try connect(1, token)
      #expect(reply.isError(.tooManyConnections, id: 1) && reply.message.hasPrefix("the principal has the maximum"))
      #expect(try refused.isClosed())
      // It takes no room of others, and has room again when a connection ends.
      #expect(try connect(0, other).1.isDone && second.pings())
      first = nil
      #expect(try eventually { try connect(0, token).1.isDone })
    }

    @Test func `every token that is not accepted gets the same reply, and the log says why`() throws {
      let server = try makeServer()
      for (number, text) in [AccessToken().text, expired.text, "ldr_", "x", String(token.text.dropLast()) + "!"]
        .enumerated()
      {
        let (client, reply) = try greet(server, text)
        #expect(reply.isError(.notPermitted, id: 1))
        #expect(reply.message == "the token is not accepted" || number > 0 && reply.message.hasPrefix("too many wrong"))
        #expect(try client.isClosed())
      }
      #expect(
        eventually {
          reports.all == [
            "there is no such token", "the token of old has expired", "the token is malformed",
            "the token is malformed",
            "the token is malformed",
          ]
        })
    }

    @Test func `a right token is accepted beside wrong ones from the same place`() throws {
      let server = try makeServer()
      for _ in 0..<20 {
        #expect(try greet(server, AccessToken().text).1.isError(.notPermitted, id: 1))
        #expect(try greet(server, token.text).1.isDone)
      }
    }

    @Test func `AUTH accepts a right token beside wrong ones from the same place`() throws {
      let server = try makeServer(speaking: .resp)
      for number in 0..<20 {
        let client = try TestClient(server.address)
        guard case .error(let refusal) = try client.call("AUTH", AccessToken().text) else {
          Issue.record("a wrong token was accepted")
          return
        }
        #expect(refusal.hasPrefix(number == 0 ? "WRONGPASS invalid" : "WRONGPASS "))
        #expect(try client.call("AUTH", token.text) == .ok)
      }
    }

    @Test func `a revoked token loses its rights at once`() throws {
      let server = try makeServer()
      let (client, _) = try greet(server, token.text)
      let (witness, _) = try greet(server, other.text)
      try server.server.change(
        stores: [], limits: ServerLimits(), rules: Self.rules, tokens: TokenTable([record("audit", other)]))
      #expect(try client.receive().isNotice(.notPermitted))
      #expect(try client.isClosed())
      #expect(try witness.call(Request.ping(7)).isDone)
    }

    @Test func `a token that expires ends its connection`() throws {
      let server = try makeServer()
      let short = AccessToken()
      try server.server.change(
        stores: [], limits: ServerLimits(), rules: Self.rules,
        tokens: TokenTable([record("web", short, expiry: Int64(time(nil)) + 2)]))
      let (client, hello) = try greet(server, short.text)
      #expect(hello.isDone)
      #expect(try client.receive().isNotice(.notPermitted))
      #expect(try client.isClosed())
    }

    @Test func `without rules, a wrong token is refused all the same`() throws {
      let server = try makeServer(rules: [])
      #expect(try greet(server, "").1.isDone)
      #expect(try greet(server, token.text).1.isDone)
      #expect(try greet(server, AccessToken().text).1.isError(.notPermitted, id: 1))
    }

    @Test func `AUTH and HELLO take a token as the password`() throws {
      let server = try makeServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("GET", "a") == .error("NOAUTH Authentication required."))
      guard case .error(let error) = try client.call("HELLO", "3") else {
        Issue.record("HELLO needs a token, too")
        return
      }
      #expect(error.hasPrefix("NOAUTH HELLO must be called"))
      #expect(try client.call("AUTH", token.text) == .ok)
      #expect(try client.call("SET", "a", "1") == .ok)

      let reader = try TestClient(server.address)
      guard case .map = try reader.call("HELLO", "3", "AUTH", "audit", other.text) else {
        Issue.record("the token was not accepted")
        return
      }
      #expect(try reader.call("GET", "a") == "1")
      guard case .error(let refusal) = try reader.call("SET", "a", "2") else {
        Issue.record("it may not write")
        return
      }
      #expect(refusal.hasPrefix("NOPERM"))
    }

    @Test func `AUTH refuses other passwords and users`() throws {
      let server = try makeServer(speaking: .resp)
      let wrong = RESPValue.error("WRONGPASS invalid username-password pair or user is disabled.")
      let client = try TestClient(server.address)
      #expect(try client.call("AUTH", "audit", token.text) == wrong)
      #expect(try client.call("AUTH", AccessToken().text) == wrong)
      #expect(try client.call("GET", "a") == .error("NOAUTH Authentication required."))
      #expect(try client.call("QUIT") == .ok)
    }
  }
}

@Suite struct AuthenticationThrottleTests {
  private let host = Peer.Origin.host("10.0.0.1")

  @Test func `the pause doubles with each failed attempt, up to a limit`() {
    var throttle = AuthenticationThrottle()
    var now: UInt64 = 1_000_000
    for pause in [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000, 10_000] as [UInt64] {
      #expect(throttle.didFail(host, now: now) == 0)
      #expect(throttle.didFail(host, now: now) == pause)
      // Attempts meanwhile don't lengthen it.
      #expect(throttle.didFail(host, now: now + pause - 1) == 1)
      now += pause
    }
    // It is that of one host.
    #expect(throttle.didFail(.host("10.0.0.2"), now: now) == 0)
    #expect(AuthenticationError.tooManyAttempts(milliseconds: 1).retryAfter == 1)
    #expect(AuthenticationError.tooManyAttempts(milliseconds: 1_001).retryAfter == 2)
  }

  @Test func `failed attempts are forgotten after a while`() {
    var throttle = AuthenticationThrottle()
    for now in [1_000, 2_000, 3_000, 4_000] as [UInt64] { #expect(throttle.didFail(host, now: now) == 0) }
    #expect(throttle.didFail(host, now: 100_000) == 0)
    #expect(throttle.didFail(host, now: 100_050) == 50)
  }
}
