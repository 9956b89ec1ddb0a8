import Glibc
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// Clients that send everything before they read anything, and what they are sent without having asked.
  @Suite struct RESPPipelineTests {
    @Test(arguments: [64 << 10, 1 << 20])
    func `a client may send all of its requests before it reads a reply`(maxOutputBytes: Int) throws {
      let server = try TestServer(speaking: .resp) { $0.maxOutputBytes = maxOutputBytes }
      let client = try TestClient(server.address)
      let value = String(repeating: "v", count: 500)
      #expect(try client.call("SET", "key", value) == .ok)
      let count = 30_000
      let requests = (0..<count).map { $0.isMultiple(of: 7) ? ["INCR", "n"] : ["GET", "key"] }
      try client.send(requests.flatMap(TestClient.encoded))
      let large = Array("$500\r\n\(value)\r\n".utf8)
      for number in 0..<count {
        let isNumber = number.isMultiple(of: 7)
        let expected = isNumber ? Array(":\(number / 7 + 1)\r\n".utf8) : large
        guard try client.receive(byteCount: expected.count) == expected else {
          Issue.record("reply \(number)")
          return
        }
      }
    }

    @Test func `a transaction of many commands is sent before its replies are read`() throws {
      let server = try TestServer(speaking: .resp)
      let client = try TestClient(server.address)
      let count = 30_000
      let requests = [["MULTI"]] + (0..<count).map { ["INCRBY", "n", "\($0)"] } + [["EXEC"]]
      for request in requests { try client.send(request) }
      #expect(try client.reply() == .ok)
      for _ in 0..<count { #expect(try client.receive(byteCount: 9) == Array("+QUEUED\r\n".utf8)) }
      #expect(try client.receive(byteCount: 8) == Array("*\(count)\r\n".utf8))
      var sum = 0
      for number in 0..<count {
        sum += number
        let expected = Array(":\(sum)\r\n".utf8)
        guard try client.receive(byteCount: expected.count) == expected else {
          Issue.record("reply \(number)")
          return
        }
      }
    }

    @Test func `no more replies are kept than the limit`() throws {
      let server = try TestServer(speaking: .resp, alsoNative: true)
      let witness = try TestClient(server.server.addresses[1])
      try witness.handshake()
      let client = try TestClient(server.address)
      #expect(try client.call("SET", "key", String(repeating: "v", count: 20_000)) == .ok)
      let requests = Array(repeating: TestClient.encoded(["GET", "key"]), count: 50_000).flatMap { $0 }
      var (sent, idleRounds) = (0, 0)
      while sent < requests.count, idleRounds < 1_000 {
        let count = client.sendWithoutBlocking(Array(requests[sent..<min(sent + 100_000, requests.count)]))
        sent += count
        idleRounds = count == 0 ? idleRounds + 1 : 0
        #expect(try witness.figures()["output_bytes"]! <= 36 << 20)
      }
      #expect(sent < requests.count)
      #expect(try client.reply().text.count == 20_000)
    }

    // MARK: The end

    @Test func `a client that waits for nothing is told nothing when the server stops`() throws {
      let server = try TestServer(speaking: .resp)
      let (idle, subscribed, queuing) = (
        try TestClient(server.address), try TestClient(server.address), try TestClient(server.address)
      )
      #expect(try idle.call("PING") == .simple("PONG"))
      _ = try subscribed.call("SUBSCRIBE", "a")
      #expect(try queuing.call("MULTI") == .ok)
      #expect(server.stop() != nil)
      for client in [idle, subscribed, queuing] { #expect(try client.isClosed()) }
    }

    @Test func `a client that waits for nothing is told nothing when it has been idle for too long`() throws {
      let server = try TestServer(speaking: .resp) {
        $0.idleTimeout = .milliseconds(50)
        // It is looked at for the first time then.
        $0.helloTimeout = .milliseconds(100)
      }
      let client = try TestClient(server.address)
      #expect(try client.call("PING") == .simple("PONG"))
      #expect(try client.isClosed())
    }

    @Test func `a client with a request that has not arrived learns why the connection ends`() throws {
      let server = try TestServer(speaking: .resp) { $0.frameTimeout = .milliseconds(50) }
      let client = try TestClient(server.address)
      try client.send(Array("*2\r\n$3\r\nGET\r\n".utf8))
      guard case .error(let text) = try client.reply() else {
        Issue.record("no error")
        return
      }
      #expect(text.contains("stalled"))
      #expect(try client.isClosed())
    }

    @Test(arguments: ["SET", "PUBLISH", "none"])
    func `a client that sends all of a value that is too large can read the error`(_ command: String) throws {
      let server = try TestServer(speaking: .resp) { $0.maxFrameBytes = 1 << 17 }
      let client = try TestClient(server.address)
      try client.send(TestClient.encoded([Array(command.utf8), [0x61], [UInt8](repeating: 0x62, count: 12 << 20)]))
      guard case .error(let text) = try client.reply() else {
        Issue.record("no error")
        return
      }
      #expect(text.hasPrefix("ERR Protocol error: invalid bulk length; a request has at most 131072 bytes"))
      client.endSending()
      #expect(try client.isClosed())
    }
  }
}
