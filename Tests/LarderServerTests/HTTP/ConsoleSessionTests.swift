import Documents
import Platform
import Storage
import TestSupport
import Testing
import Tokens
import Wire

@testable import LarderServer

extension ServerTests {
  /// The links to the console and the sessions that they begin.
  struct ConsoleSessionTests {
    private func owner(_ listener: Int = 0) -> ConsoleSession.Owner {
      ConsoleSession.Owner(identity: ClientIdentity(), listener: listener, peer: .process(id: 1, user: 2))
    }

    @Test func `a link begins one session, which ends when it is told to`() throws {
      let sessions = ConsoleSessions()
      let link = sessions.makeLink(for: owner(3))
      let token = try #require(sessions.open(link) { _ in true })
      #expect([link, token].allSatisfy { sessions.open($0) { _ in true } == nil })
      #expect(sessions.session(of: link) == nil)
      let session = try #require(sessions.session(of: token))
      #expect(session.owner.listener == 3 && !session.isOver(now: session.end - 1) && session.isOver(now: session.end))
      sessions.end(token)
      #expect(sessions.session(of: token) == nil && session.isOver(now: 0))
    }

    @Test func `links and sessions have limits`() throws {
      let sessions = ConsoleSessions()
      let links = (0..<2_000).map { _ in sessions.makeLink(for: owner()) }
      let tokens = links.compactMap { sessions.open($0) { _ in true } }
      #expect(tokens.count == 1_024)
      let more = sessions.makeLink(for: owner())
      #expect(sessions.open(more) { _ in true } != nil)
      #expect(tokens.count { sessions.session(of: $0) != nil } == 1_023)
    }

    @Test func `a link of a client that may not have a session any more doesn't work, even later`() {
      let sessions = ConsoleSessions()
      let link = sessions.makeLink(for: owner(3))
      #expect(sessions.open(link) { $0.listener != 3 } == nil)
      #expect(sessions.open(link) { _ in true } == nil)
    }

    @Test(arguments: [true, false])
    func `a console ends with the rights of its owner, and doesn't come back with them`(revokesToken: Bool) throws {
      let token = AccessToken()
      let tokens = TokenTable([TokenRecord(name: "web", digest: token.digest, created: 0, expiry: nil)])
      let rules = [AccessRule(.principal("web"), .write)]
      let server = try TestServer(tcp: true, rules: rules, speaking: .http, alsoNative: true, tokens: tokens)
      let host = String("\(server.address)".dropFirst("tcp:".count))
      func link() throws -> String {
        let client = try TestClient(server.server.addresses[1])
        var hello = ByteBuffer()
        hello.appendRequest(
          ClientHello(features: Features.all, credit: 1 << 20, name: "test", token: token.text), id: 1)
        try #require(try client.call(hello.toArray()).isDone)
        let reply = try client.call(Request.make(.consoleLink, store: 0, id: 2, []))
        return try text("link", of: JSONValue(parsing: String(decoding: reply.body, as: UTF8.self)))
      }
      func text(_ name: String, of json: JSONValue) throws -> String {
        guard case .string(let text)? = json[name] else { throw Missing() }
        return text
      }
      func open(_ link: String) throws -> HTTPAnswer {
        let fields = ["Host": host, "Content-Type": "application/json"]
        let body = Array(#"{"link":"\#(link)"}"#.utf8)
        return try TestClient(server.address).request("POST", "/v1/session", fields, body)
      }
      func status(_ session: String) throws -> Int {
        let fields = ["Host": host, "Authorization": "Bearer \(session)"]
        return try TestClient(server.address).request("GET", "/v1/stores", fields).status
      }
      func change(_ rules: [AccessRule], _ tokens: TokenTable) throws {
        try server.server.change(stores: [], limits: ServerLimits(), rules: rules, tokens: tokens)
      }
      let (first, second) = (try link(), try link())
      let session = try text("token", of: open(first).json)
      #expect(try status(session) == 200)
      if revokesToken {
        try change(rules, TokenTable())
      } else {
        try change([AccessRule(.principal("other"), .write)], tokens)
      }
      #expect(try open(second).status == 401)
      #expect([401, 429].contains(try status(session)))
      try change(rules, tokens)
      #expect([401, 429].contains(try open(second).status))
      #expect([401, 429].contains(try status(session)))
      // The token itself has its rights again.
      #expect(try status(token.text) == 200)
    }

    private struct Missing: Error {}
  }
}
