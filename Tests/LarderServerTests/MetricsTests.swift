import Foundation
import Platform
import TestSupport
import Testing
import Wire

@testable import LarderServer

extension ServerTests {
  /// The metrics listener, over its socket. The system tests check the text with the parser of Prometheus.
  struct MetricsTests {
    private func withMetrics(_ body: (TestServer, Address) throws -> Void) throws {
      let folder = try TemporaryFolder()
      let path = folder.file("metrics")
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

    /// Returns the value of a sample.
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
        // A wakeup is counted once it ends, which is after its replies are sent.
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

    @Test func `only metrics, health and readiness are served`() throws {
      try withMetrics { _, address in
        #expect(try get(address, "/healthz").hasSuffix("\r\n\r\nok\n"))
        #expect(try get(address, "/readyz").hasSuffix("\r\n\r\nok\n"))
        #expect(try get(address, "/").hasPrefix("HTTP/1.1 404 "))
        let client = try HTTPClient(address)
        client.send("DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n")
        let reply = try #require(client.readToEnd())
        #expect(reply.hasPrefix("HTTP/1.1 405 ") && reply.contains("\r\nAllow: GET, HEAD\r\n"))
      }
    }

    @Test func `HEAD is answered like GET, without the page`() throws {
      try withMetrics { _, address in
        for path in ["/metrics", "/healthz", "/"] {
          let page = try get(address, path)
          let client = try HTTPClient(address)
          client.send("HEAD \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
          let head = try #require(client.readToEnd())
          #expect(head.hasSuffix("\r\n\r\n") && head.contains("\r\nContent-Length: "))
          #expect(head.contains("\r\nConnection: close\r\n"))
          #expect(head.prefix { $0 != "\r\n" } == page.prefix { $0 != "\r\n" })
        }
      }
    }

    @Test func `slow clients neither delay others nor stay connected`() throws {
      try withMetrics { _, address in
        // Connections beyond the limit replace the oldest.
        let slow = try (0..<MetricsListener.maxConnections - 1).map { _ in try HTTPClient(address) }
        for client in slow { client.send("GET /metr") }
        #expect(try get(address, "/healthz").hasSuffix("ok\n"))
        let more = try (0..<5).map { _ in try HTTPClient(address) }
        for client in more { client.send("GET /healthz HTTP/1.0\r\n\r\n") }
        for client in more { #expect(client.readToEnd()?.hasSuffix("ok\n") == true) }
        for client in slow { #expect(client.readToEnd() == "") }
      }
    }
  }
}

/// A blocking connection that sends and receives text.
final class HTTPClient {
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

  /// Returns everything that the server sends, or `nil` if the stream stalls for 10 seconds.
  func readToEnd() -> String? {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while socket.waitUntilReadable(microseconds: 10_000_000) {
      let transfer = unsafe buffer.withUnsafeMutableBytes { unsafe socket.receive(into: $0) }
      switch transfer {
      case .moved(0), .failed: return String(decoding: bytes, as: UTF8.self)
      case .moved(let count): bytes += buffer[..<count]
      case .wouldBlock: continue
      }
    }
    return nil
  }
}
