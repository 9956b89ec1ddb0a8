import Foundation
import Platform
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// What the metrics listener says over its socket. That the text is what Prometheus reads is checked in contrib/python.
  struct MetricsTests {
    private func withMetrics(_ body: (TestServer, Address) throws -> Void) throws {
      let path = NSTemporaryDirectory() + "larder-metrics-\(UInt32.random(in: 0 ... .max))"
      let server = try TestServer(metrics: .unix(path: path))
      try body(server, .unix(path: path))
      #expect(server.stop() != nil)
      #expect(!FileManager.default.fileExists(atPath: path))
    }

    private func get(_ address: Address, _ path: String) throws -> String {
      let client = try HTTPClient(address)
      client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
      return try #require(client.readToEnd())
    }

    /// The value of a sample.
    private func value(_ sample: String, in text: String) -> Double? {
      text.split(separator: "\n").first { $0.hasPrefix(sample + " ") }.flatMap {
        Double($0.dropFirst(sample.count + 1))
      }
    }

    @Test func `requests are counted by operation and outcome, and timed`() throws {
      try withMetrics { server, address in
        let client = try server.connect()
        for number in 0..<10 { _ = try client.call(Request.put("k\(number)", [1], id: 3)) }
        for key in ["k1", "k2", "none"] { _ = try client.call(Request.get(key, id: 3)) }
        _ = try client.call(Request.make(.put, id: 3, []))
        _ = try client.call([9, 0, 0, 0, 200, 0, 0, 0, 1, 0, 0, 0, 0])
        // A wake-up is counted once it is over, which is after its answers were sent.
        while try client.figures()["requests_total", default: 0] < 17 {}
        let text = try get(address, "/metrics")
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(value(#"larder_requests_total{operation="put",outcome="done"}"#, in: text) == 10)
        #expect(value(#"larder_requests_total{operation="put",outcome="rejected"}"#, in: text) == 1)
        #expect(value(#"larder_requests_total{operation="get",outcome="done"}"#, in: text) == 2)
        #expect(value(#"larder_requests_total{operation="get",outcome="rejected"}"#, in: text) == 1)
        #expect(value(#"larder_requests_total{operation="other",outcome="rejected"}"#, in: text) == 1)
        #expect(value(#"larder_request_duration_seconds_count{operation="put"}"#, in: text) == 11)
        #expect(value(#"larder_request_duration_seconds_bucket{operation="put",le="+Inf"}"#, in: text) == 11)
        #expect(value(#"larder_request_duration_seconds_count{operation="get"}"#, in: text) == 3)
        #expect((value(#"larder_request_duration_seconds_sum{operation="get"}"#, in: text) ?? 0) > 0)
        #expect(!text.contains(#"larder_request_duration_seconds_count{operation="delete-all"}"#))
        #expect(value("larder_connections", in: text) == 1)
        #expect(value(#"larder_store_entries{store="test",engine="memory"}"#, in: text) == 10)
        #expect((value("larder_received_bytes_total", in: text) ?? 0) > 300)
        #expect((value("larder_sent_bytes_total", in: text) ?? 0) > 200)
        #expect((value("process_resident_memory_bytes", in: text) ?? 0) > 1_000_000)
      }
    }

    @Test func `health and readiness are told, and nothing else is`() throws {
      try withMetrics { _, address in
        #expect(try get(address, "/healthz").hasSuffix("\r\n\r\nok\n"))
        #expect(try get(address, "/readyz").hasSuffix("\r\n\r\nok\n"))
        #expect(try get(address, "/").hasPrefix("HTTP/1.1 404 "))
        let client = try HTTPClient(address)
        client.send("DELETE /metrics HTTP/1.1\r\n\r\n")
        let answer = try #require(client.readToEnd())
        #expect(answer.hasPrefix("HTTP/1.1 405 ") && answer.contains("\r\nAllow: GET\r\n"))
      }
    }

    @Test func `slow clients neither hold others up nor stay`() throws {
      try withMetrics { _, address in
        // Those behind as many as are served at once take the places of the oldest.
        let slow = try (0..<MetricsListener.maxConnections - 1).map { _ in try HTTPClient(address) }
        for client in slow { client.send("GET /metr") }
        #expect(try get(address, "/healthz").hasSuffix("ok\n"))
        let more = try (0..<5).map { _ in try HTTPClient(address) }
        for client in more { client.send("GET /healthz HTTP/1.1\r\n\r\n") }
        for client in more { #expect(client.readToEnd()?.hasSuffix("ok\n") == true) }
        for client in slow { #expect(client.readToEnd() == "") }
      }
    }
  }
}

/// A connection that sends text and reads what comes.
private final class HTTPClient {
  private let socket: Descriptor

  init(_ address: Address) throws {
    switch try Socket.connect(to: address) {
    case .connected(let socket): self.socket = socket
    case .pending(let socket): self.socket = socket
    }
  }

  func send(_ text: String) {
    let bytes = Array(text.utf8)
    _ = unsafe bytes.withUnsafeBytes { unsafe socket.send($0) }
  }

  /// What comes until the end; nil when that doesn't come within 10 seconds.
  func readToEnd() -> String? {
    var bytes: [UInt8] = []
    var room = [UInt8](repeating: 0, count: 1 << 16)
    while socket.waitUntilReadable(microseconds: 10_000_000) {
      let transfer = unsafe room.withUnsafeMutableBytes { unsafe socket.receive(into: $0) }
      switch transfer {
      case .moved(0), .failed: return String(decoding: bytes, as: UTF8.self)
      case .moved(let count): bytes += room[..<count]
      case .wouldBlock: continue
      }
    }
    return nil
  }
}
