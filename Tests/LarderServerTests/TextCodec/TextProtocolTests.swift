import Platform
import Storage
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// A second protocol: everything beyond its codec works through it as it does through Larder's own.
  @Suite struct TextProtocolTests {
    private func makeServer(
      serving opened: [Store] = [], logs: [String] = [], rules: [AccessRule] = [],
      limits: (inout ServerLimits) -> Void = { _ in }
    ) throws -> TestServer {
      try TestServer(
        serving: opened, logs: logs, rules: rules, speaking: ListenerProtocol(TextSession()), limits: limits)
    }

    private func connect(_ server: TestServer, store: String = "test") throws -> TestClient {
      let client = try TestClient(server.address)
      #expect(try client.ask("use \(store)") == "+")
      return client
    }

    @Test func `requests are executed, and errors have a text`() throws {
      let server = try makeServer()
      let client = try connect(server)
      #expect(try client.ask("get a") == "-notFound ")
      #expect(try client.ask("put a 1") == "+1")
      #expect(try client.ask("get a") == "=1")
      #expect(try client.ask("count a") == "+1")
      #expect(try client.ask("delete a") == "+1")
      #expect(try client.ask("put a") == "-malformed put takes a key and a value")
      #expect(try client.ask("fly") == "-unknownOperation use a store, then get, put, delete, count, list")
      #expect(try client.ask("use other") == "-storeUnknown there is no store \"other\"")
    }

    @Test func `lines that arrive byte by byte are executed, and their replies are the same`() throws {
      let server = try makeServer()
      let client = try connect(server)
      for byte in Array("put key value\nget key\ncount\n".utf8) { try client.send([byte]) }
      #expect(try client.lines(3) == ["+1", "=value", "+1"])
    }

    @Test func `replies come in the order of requests, streams among them`() throws {
      let server = try makeServer()
      let client = try connect(server)
      let value = String(repeating: "v", count: 1_000)
      for index in 0..<300 { #expect(try client.ask("put key\(1_000 + index) \(value)") == "+\(index + 1)") }
      try client.send(Array("count\nlist key\ncount key1\nlist key129\nget key1000\n".utf8))
      #expect(try client.lines(1) == ["+300"])
      let listed = try client.lines(301)
      #expect(listed.first == "key1000=\(value)" && listed[299] == "key1299=\(value)" && listed.last == ".")
      #expect(try client.lines(1) == ["+300"])
      #expect(try client.lines(11).last == ".")
      #expect(try client.lines(1) == ["=\(value)"])
    }

    @Test func `a large value is stored and returned by a text protocol`() throws {
      let server = try makeServer(logs: ["durable"])
      let value = String(repeating: "large ", count: 200_000)
      for store in ["test", "durable"] {
        let client = try connect(server, store: store)
        #expect(try client.ask("put big \(value)") == "+1")
        #expect(try client.ask("get big") == "=\(value)")
        try client.send(Array("list b\ncount\n".utf8))
        #expect(try client.lines(3) == ["big=\(value)", ".", "+1"])
      }
    }

    @Test func `a text protocol replies once a write is on the disk, or reports its failure`() throws {
      let engine = TestEngine()
      let store = Store(
        name: try StoreName("durable"), engine: .memory, map: EntryMap(), writingTo: engine, durability: .always)
      let server = try makeServer(serving: [store])
      let client = try connect(server, store: "durable")
      #expect(try client.ask("put old 0") == "+1")
      engine.pause()
      try client.send(Array("get old\nput a 1\nget a\nget old\n".utf8))
      #expect(client.isSilent(for: 0.05))
      engine.resume()
      #expect(try client.lines(4) == ["=0", "+2", "=1", "=0"])
      engine.pause()
      try client.send(Array("put a 2\nget a\nget old\n".utf8))
      engine.fail(.failed("the disk is gone"))
      engine.resume()
      let lines = try client.lines(3)
      #expect(lines[0].hasPrefix("-failed ") && lines[1].hasPrefix("-failed ") && lines[2] == "=0")
    }

    @Test func `a client that doesn't read stops being read, and others are served`() throws {
      let server = try makeServer { $0.maxOutputBytes = 64 << 10 }
      let (lazy, busy) = (try connect(server), try connect(server))
      let value = String(repeating: "v", count: 20_000)
      #expect(try busy.ask("put key \(value)") == "+1")
      let requests = Array(String(repeating: "get key\n", count: 200_000).utf8)
      var sent = 0
      for _ in 0..<200 where sent < requests.count {
        sent += lazy.sendWithoutBlocking(Array(requests[sent...]))
        #expect(try busy.ask("count") == "+1")
      }
      #expect(sent < requests.count)
      #expect(try lazy.lines(2) == ["=\(value)", "=\(value)"])
    }

    @Test func `limits end a connection with a line that says which`() throws {
      let server = try makeServer { $0.maxFrameBytes = 128 << 10 }
      let client = try connect(server)
      try client.send(Array(repeating: UInt8(ascii: "x"), count: 256 << 10))
      #expect(try client.lines(1)[0].hasPrefix("-frameLength a line has "))
      #expect(try client.isClosed())
    }

    @Test func `a client without the right to write is refused with the name of what it may not do`() throws {
      let server = try TestServer(
        tcp: true, rules: [AccessRule(.tcp, .read)], speaking: ListenerProtocol(TextSession()))
      let client = try connect(server)
      #expect(try client.ask("get a") == "-notFound ")
      let refusal = try client.ask("put a 1")
      #expect(refusal.hasPrefix("-notPermitted ") && refusal.hasSuffix(" may not write to store test"))
    }

    @Test func `requests are counted by operation and outcome`() throws {
      let folder = try TemporaryFolder()
      let metrics = Address.unix(path: folder.file("metrics"))
      let server = try TestServer(metrics: metrics, speaking: ListenerProtocol(TextSession()))
      let client = try connect(server)
      for _ in 0..<5 { _ = try client.ask("get a") }
      _ = try client.ask("put a 1")
      _ = try client.ask("get a")
      let samples = [
        #"larder_requests_total{operation="get",outcome="rejected"} 5"#,
        #"larder_requests_total{operation="get",outcome="done"} 1"#,
        #"larder_requests_total{operation="put",outcome="done"} 1"#,
      ]
      // A wakeup is counted once it ends, which is after its replies are sent.
      var text = ""
      while !text.contains(samples[1]) {
        let reader = try HTTPClient(metrics)
        reader.send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        text = try #require(reader.readToEnd())
      }
      for sample in samples { #expect(text.contains(sample)) }
    }
  }
}

extension TestClient {
  /// Sends a line, and returns the line that comes back.
  fileprivate func ask(_ line: String) throws -> String {
    try send(Array("\(line)\n".utf8))
    return try lines(1)[0]
  }

  /// Returns the next lines, without their ends.
  fileprivate func lines(_ count: Int) throws -> [String] {
    try (0..<count).map { _ in
      var line: [UInt8] = []
      while true {
        let byte = try receive(byteCount: 1)[0]
        if byte == UInt8(ascii: "\n") { return String(decoding: line, as: UTF8.self) }
        line.append(byte)
      }
    }
  }
}
