import TestSupport
import Testing

@testable import LarderServer

extension ServerTests {
  /// How connections end, and requests that must not be taken for others.
  struct HTTPConnectionTests {
    private static let store = "/v1/stores/test"

    /// One of each way in which a response is made.
    @Test(arguments: ["memory", "log"]) func `a connection that asks for it ends after any response`(engine: String)
      throws
    {
      let server = try TestServer(
        stores: engine == "memory" ? ["test"] : [], logs: engine == "log" ? ["test"] : [], speaking: .http)
      let value = [UInt8](repeating: 7, count: 100_000)
      let setUp = try TestClient(server.address)
      #expect(try setUp.request("PUT", Self.store + "/entries/large", [:], value).status == 204)
      #expect(try setUp.request("PUT", Self.store + "/entries/a", [:], Array("{}".utf8)).status == 204)
      let json = ["Content-Type": "application/json"]
      let puts = (0..<3_000).map { #"{"put":"k\#($0)","value":1}"# }.joined(separator: ",")
      let exchanges: [(String, String, [String: String], String?, Int)] = [
        ("GET", "/v1/stores", [:], nil, 200), ("GET", "/healthz", [:], nil, 200), ("GET", "/metrics", [:], nil, 200),
        ("GET", "/nothing", [:], nil, 404), ("PATCH", Self.store, [:], nil, 405),
        ("GET", "/v1/stores/none", [:], nil, 404),
        ("GET", Self.store + "/entries/a", [:], nil, 200), ("HEAD", Self.store + "/entries/large", [:], nil, 200),
        ("GET", Self.store + "/entries/large", [:], nil, 200), ("GET", Self.store + "/entries/none", [:], nil, 404),
        ("GET", Self.store + "/entries/large", ["Range": "bytes=5-"], nil, 206),
        ("GET", Self.store + "/entries/large", ["Range": "bytes=x"], nil, 416),
        ("GET", Self.store + "/entries/a", ["If-None-Match": "*"], nil, 304),
        ("GET", Self.store + "/entries/a", ["If-Match": "x"], nil, 400),
        ("PUT", Self.store + "/entries/a", ["If-None-Match": "*"], "x", 412),
        ("PUT", Self.store + "/entries/b", [:], "x", 204), ("DELETE", Self.store + "/entries/b", [:], nil, 204),
        ("DELETE", Self.store + "/entries/b?c", [:], nil, 400), ("GET", Self.store + "/entries/%zz", [:], nil, 400),
        ("GET", Self.store + "/count", [:], nil, 200), ("GET", Self.store + "/tree", [:], nil, 200),
        ("GET", Self.store + "/tree?limit=0", [:], nil, 400), ("GET", Self.store + "/entries", [:], nil, 200),
        ("POST", Self.store + "/apply", json, #"{"operations":[\#(puts)]}"#, 200),
        ("POST", Self.store + "/apply", json, #"{"operations":[{"put":"c","value":1}]}"#, 200),
        ("POST", Self.store + "/apply", json, "{", 400),
        ("POST", Self.store + "/apply", json, #"{"operations":[{"update":"a","set":{"$set":{"n":1}}}]}"#, 200),
        ("POST", Self.store + "/find", json, #"{"selector":{"n":1}}"#, 200),
        ("POST", Self.store + "/find", json, #"{"selector":{"$no":1}}"#, 400),
        ("POST", Self.store + "/aggregate", json, "{}", 200),
        ("POST", Self.store + "/update", json, #"{"selector":{"n":1},"update":{"$set":{"n":2}}}"#, 200),
        ("POST", Self.store + "/indexes", json, #"{"fields":["n"],"name":"i"}"#, 201),
        ("DELETE", Self.store + "/indexes/i", [:], nil, 204),
        ("PUT", "/v1/stores/x", json, #"{"engine":"memory"}"#, 201),
        ("DELETE", "/v1/stores/x", [:], nil, 204),
      ]
      for (method, path, fields, body, status) in exchanges {
        for text in ["close", "TE, close", "Close , x"] {
          let client = try TestClient(server.address)
          // The next request isn't executed.
          let all = fields.merging(["Connection": text]) { first, _ in first }
          try client.send(
            TestClient.encodedRequest(method, path, all, body.map { Array($0.utf8) })
              + TestClient.encodedRequest("PUT", Self.store + "/entries/never", [:], [1]))
          let answer = try client.answer(hasBody: method != "HEAD")
          let isRepeated = text != "close" && [201, 204].contains(status)
          #expect(answer.status == status || isRepeated, "\(method) \(path): \(answer.status) \(answer.text)")
          #expect(try client.isClosed(), "\(method) \(path)")
        }
      }
      #expect(try setUp.request("GET", Self.store + "/entries/never").status == 404)
      // A response without an end goes on, and ends with the server.
      let watcher = try TestClient(server.address)
      try watcher.send(TestClient.encodedRequest("GET", Self.store + "/changes", ["Connection": "close"]))
      #expect(try watcher.head() == "HTTP/1.1 200 OK")
      #expect(try watcher.chunk().contains("incarnation"))
      #expect(try setUp.request("PUT", Self.store + "/entries/a", [:], [1]).status == 204)
      #expect(try watcher.chunk().contains("\"put\""))
    }

    @Test func `a host in the target counts instead of the field`() throws {
      let server = try TestServer(tcp: true, speaking: .http)
      guard case .tcp(_, let port) = server.address else { throw Unexpected() }
      let client = try TestClient(server.address)
      let (good, bad) = ("localhost:\(port)", "evil.test")
      #expect(try client.request("PUT", "http://\(good)\(Self.store)/entries/k", ["Host": bad], [1]).status == 204)
      #expect(
        try client.request("GET", "HTTP://\(good)\(Self.store)/count?prefix=k", ["Host": bad]).text == #"{"count":1}"#)
      #expect(try client.request("GET", "http://\(bad)\(Self.store)/entries/k", ["Host": good]).status == 421)
      for target in ["http://\(good)", "http://\(good)?x=1", "https://\(good)/"] {
        #expect([400, 404].contains(try client.request("GET", target, ["Host": good]).status), "\(target)")
      }
    }

    @Test func `an empty line before a request is ignored`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      let put = TestClient.encodedRequest("PUT", Self.store + "/entries/k", [:], Array("a value".utf8))
      let get = TestClient.encodedRequest("GET", Self.store + "/entries/k")
      try client.send([13, 10] + put + [13, 10] + get + [13, 10])
      #expect(try client.answer().status == 204 && client.answer().text == "a value")
      #expect(try client.request("GET", Self.store + "/count").status == 200)
    }

    @Test func `parameters that a resource doesn't have are refused`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      #expect(try client.request("PUT", Self.store + "/entries/page", [:], [1]).status == 204)
      let resources = [
        ("GET", "/v1/stores"), ("GET", "/v1/stats"), ("GET", "/v1/slow-log"), ("GET", "/v1/connections"),
        ("GET", "/v1/cluster"), ("GET", "/v1/whoami"), ("DELETE", "/v1/session"), ("GET", "/healthz"),
        ("GET", "/readyz"), ("GET", "/metrics"), ("GET", Self.store), ("DELETE", Self.store), ("PUT", Self.store),
        ("GET", Self.store + "/entries"), ("GET", Self.store + "/entries/page"), ("HEAD", Self.store + "/entries/page"),
        ("PUT", Self.store + "/entries/page"), ("DELETE", Self.store + "/entries/page"),
        ("POST", Self.store + "/apply"),
        ("POST", Self.store + "/delete"), ("GET", Self.store + "/count"), ("GET", Self.store + "/tree"),
        ("GET", Self.store + "/changes"), ("POST", Self.store + "/find"), ("POST", Self.store + "/explain"),
        ("POST", Self.store + "/aggregate"), ("POST", Self.store + "/update"), ("GET", Self.store + "/indexes"),
        ("POST", Self.store + "/indexes"), ("DELETE", Self.store + "/indexes"), ("DELETE", Self.store + "/indexes/i"),
      ]
      for (method, path) in resources {
        let body: [UInt8]? = method == "POST" || method == "PUT" ? Array("{}".utf8) : nil
        let answer = try client.request(
          method, path + "?id=7", body == nil ? [:] : ["Content-Type": "application/json"], body)
        #expect(answer.status == 400, "\(method) \(path): \(answer.status)")
      }
      #expect(try client.request("DELETE", Self.store + "/entries/page?").status == 400)
      #expect(try client.request("GET", Self.store + "/entries/page").body == [1])
    }

    @Test func `what would be ignored is refused`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      let path = Self.store + "/entries/k"
      #expect(try client.request("PUT", path, [:], [1, 2, 3]).status == 204)
      let date = "Sun, 06 Nov 1994 08:49:37 GMT"
      for (fields, status) in [
        (["Content-Range": "bytes 1-2/3"], 400), (["Range": "bytes=1-"], 400), (["If-Unmodified-Since": date], 400),
        (["Content-Encoding": "gzip"], 415),
      ] {
        #expect(try client.request("PUT", path, fields, [9]).status == status, "\(fields)")
        #expect(try client.request("DELETE", path, fields).status == status, "\(fields)")
      }
      for fields in [["If-Match": "\"1\""], ["If-None-Match": "*"], ["If-Unmodified-Since": date]] {
        #expect(try client.request("DELETE", Self.store, fields).status == 400, "\(fields)")
        #expect(try client.request("POST", Self.store + "/delete", fields, Array("{}".utf8)).status == 400, "\(fields)")
      }
      #expect(
        try client.request("PUT", path, ["Content-Encoding": "gzip"], [9]).fields["accept-encoding"] == "identity")
      #expect(try client.request("GET", path, ["If-Modified-Since": date]).body == [1, 2, 3])
    }

    private struct Unexpected: Error {}
  }
}
