import Platform
import TestSupport
import Testing
import Tokens
import Wire

@testable import LarderServer

extension ServerTests {
  /// Clients that have yet to prove who they are.
  @Suite struct StrangerTests {
    private let token = AccessToken()

    private func makeServer(_ spoken: ListenerProtocol) throws -> TestServer {
      let record = TokenRecord(name: "web", digest: token.digest, created: 0, expiry: nil)
      return try TestServer(
        tcp: true, rules: [AccessRule(.principal("web"), .write)], speaking: spoken, tokens: TokenTable([record]))
    }

    @Test(arguments: [4_097, 40_000, 16 << 20])
    func `before AUTH, a request has at most 4 KiB`(size: Int) throws {
      let server = try makeServer(.resp)
      let client = try TestClient(server.address)
      try client.send(Array("*2\r\n$4\r\nAUTH\r\n$\(size)\r\n".utf8))
      guard case .error(let text) = try client.reply() else {
        Issue.record("no error")
        return
      }
      #expect(text.hasPrefix("ERR Protocol error: ") && text.hasSuffix("at most 4096 bytes before AUTH"))
      #expect(try client.isClosed())
    }

    @Test func `before AUTH, a line has at most 4 KiB`() throws {
      let server = try makeServer(.resp)
      let client = try TestClient(server.address)
      try client.send([UInt8](repeating: 0x61, count: 4_096))
      #expect(try client.reply() == .error("ERR Protocol error: too big inline request"))
      #expect(try client.isClosed())
    }

    @Test func `after AUTH, requests may be large at once`() throws {
      let server = try makeServer(.resp)
      let client = try TestClient(server.address)
      let value = [UInt8](repeating: 0x76, count: 1 << 20)
      try client.send(
        TestClient.encoded(["AUTH", token.text]) + TestClient.encoded([Array("SET".utf8), [0x61], value])
          + TestClient.encoded(["STRLEN", "a"]))
      #expect(try client.replies(3) == [.ok, .ok, .integer(1 << 20)])
    }

    @Test func `without rules, a client need not prove anything`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "a", String(repeating: "v", count: 1 << 20)) == .ok)
    }

    @Test func `the token of an HTTP request is checked before its body arrives`() throws {
      let server = try makeServer(.http)
      func send(_ client: TestClient, _ token: AccessToken?, _ size: Int) throws {
        var fields = ["Content-Length": "\(size)"]
        fields["Authorization"] = token.map { "Bearer \($0.text)" }
        fields["Host"] = String("\(server.address)".dropFirst("tcp:".count))
        try client.send(TestClient.encodedRequest("PUT", "/v1/stores/test/entries/a", fields))
      }
      for refused in [nil, AccessToken()] {
        let client = try TestClient(server.address)
        try send(client, refused, 16_000_000)
        #expect(try client.answer().status == 401)
        client.endSending()
        #expect(try client.isClosed())
      }
      let client = try TestClient(server.address)
      let value = [UInt8](repeating: 1, count: 1 << 20)
      try send(client, token, value.count)
      #expect(client.isSilent(for: 0.05))
      try client.send(value)
      #expect(try client.answer().status == 204)
    }

    @Test func `the body of an HTTP request that needs no right has at most 4 KiB without one`() throws {
      let server = try makeServer(.http)
      for (size, isRefused) in [(4_096, false), (4_097, true), (16_000_000, true)] {
        let client = try TestClient(server.address)
        let fields = [
          "Host": String("\(server.address)".dropFirst("tcp:".count)), "Content-Type": "application/json",
          "Content-Length": "\(size)",
        ]
        try client.send(TestClient.encodedRequest("POST", "/v1/session", fields))
        if isRefused { #expect(try client.answer().status == 413) } else { #expect(client.isSilent(for: 0.05)) }
      }
    }

    @Test func `incomplete requests of strangers don't take the memory of others`() throws {
      let server = try TestServer(
        tcp: true, rules: [AccessRule(.principal("web"), .write)], speaking: .resp,
        limits: { ($0.maxFrameBytes, $0.maxTotalInputBytes) = (1 << 18, 1 << 20) },
        tokens: TokenTable([TokenRecord(name: "web", digest: token.digest, created: 0, expiry: nil)]))
      let strangers = try (0..<300).map { _ in try TestClient(server.address) }
      for stranger in strangers { try stranger.send(Array("*2\r\n$4\r\nAUTH\r\n$4000\r\naaa".utf8)) }
      for stranger in strangers { try? stranger.send([UInt8](repeating: 0x61, count: 3_000)) }
      let client = try TestClient(server.address)
      #expect(try client.call("AUTH", token.text) == .ok)
      let value = String(repeating: "v", count: 200_000)
      for _ in 0..<20 { #expect(try client.call("SET", "a", value) == .ok) }
    }
  }
}
