import Documents
import Glibc
import Storage
import TestSupport
import Testing
import Tokens
import Wire

@testable import LarderServer

extension ServerTests {
  /// The API over HTTP.
  struct HTTPTests {
    private static let store = "/v1/stores/test"

    // MARK: Entries

    @Test func `entries are put, read, replaced under conditions, and deleted`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      let path = Self.store + "/entries/a%C3%A9%01b/c"
      let value: [UInt8] = [0, 1, 13, 10, 255]
      #expect(try client.request("GET", path).status == 404)
      let put = try client.request("PUT", path, ["If-None-Match": "*"], value)
      #expect(put.status == 204 && put.fields["etag"] == "\"1\"")
      #expect(try client.request("PUT", path, ["If-None-Match": "*"], [1]).code == "conditionFailed")
      let got = try client.request("GET", path)
      #expect(got.status == 200 && got.body == value && got.fields["etag"] == "\"1\"")
      #expect(got.fields["content-disposition"] == "attachment" && got.fields["x-content-type-options"] == "nosniff")
      #expect(try client.request("GET", path, ["If-None-Match": "\"1\""]).status == 304)
      #expect(try client.request("GET", path, ["If-None-Match": "\"2\""]).body == value)
      let head = try client.request("HEAD", path)
      #expect(head.status == 200 && head.fields["content-length"] == "5")
      #expect(try client.request("PUT", path, ["If-Match": "\"7\""], [1]).status == 412)
      #expect(try client.request("PUT", path, ["If-Match": "\"1\"", "Larder-Expires-In": "60000"], [2]).status == 204)
      let expiring = try client.request("GET", path)
      #expect(expiring.body == [2] && (Int(expiring.fields["larder-expires-in"] ?? "") ?? 0) > 50_000)
      #expect(try client.request("DELETE", path, ["If-Match": "\"1\""]).status == 412)
      #expect(try client.request("DELETE", path, ["If-Match": "\"2\""]).status == 204)
      #expect(try client.request("DELETE", path).status == 404)
    }

    @Test func `keys that clients or proxies would change are refused in paths`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      for key in [
        "/x", "//", "x//y", "x%2F/y", "x%2f%2fy", ".", "..", "%2E", "./x", "x/.", "x/./y", "x/..", "../x", "x/%2e%2E/y",
        "x%2F..", "%00", "x%00y",
      ] {
        for method in ["GET", "PUT", "DELETE"] {
          let answer = try client.request(method, Self.store + "/entries/" + key, [:], method == "PUT" ? [1] : nil)
          #expect(answer.status == 400 && answer.text.contains("/entry?key="), "\(method) \(key)")
        }
        #expect(try client.request("PUT", Self.store + "/entry?key=" + key, [:], [1]).status == 204, "\(key)")
        #expect(try client.request("DELETE", Self.store + "/entry?key=" + key).status == 204, "\(key)")
      }
      for key in ["x/", "...", ".x/x.", "x%2Fy", "%25%2E%25"] {
        #expect(try client.request("PUT", Self.store + "/entries/" + key, [:], [1]).status == 204, "\(key)")
      }
      for name in ["..", "a//b"] {
        let index = "{\"fields\":[\"n\"],\"name\":\"\(name)\"}"
        #expect(try client.request("POST", Self.store + "/indexes", json: index).status == 201)
        #expect(try client.request("DELETE", Self.store + "/indexes/" + name).status == 400)
        #expect(try client.request("DELETE", Self.store + "/indexes?name=" + name).status == 204)
      }
    }

    @Test func `a native client sees the same entries`() throws {
      let server = try TestServer(speaking: .http, alsoNative: true)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake()
      _ = try native.call(Request.make(.storeOpen, store: 0, id: 2, Array("test".utf8)))
      let client = try TestClient(server.address)
      #expect(try client.request("PUT", Self.store + "/entries/k", [:], Array("over HTTP".utf8)).status == 204)
      #expect(try native.call(Request.get("k", id: 3)).entries.map(\.value) == [Array("over HTTP".utf8)])
      #expect(try native.call(Request.put("k", Array("natively".utf8), id: 4)).isDone)
      #expect(try client.request("GET", Self.store + "/entries/k").text == "natively")
    }

    @Test(arguments: [0, 1, 100, 40_000, 3 << 20]) func `values of any size have ranges`(size: Int) throws {
      let server = try TestServer(stores: ["test"], speaking: .http)
      let client = try TestClient(server.address)
      let value = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
      let path = Self.store + "/entries/large"
      #expect(try client.request("PUT", path, [:], value).status == 204)
      #expect(try client.request("GET", path).body == value)
      for (first, last) in [(0, 0), (1, 10), (size / 2, size - 1), (0, size + 100)] where first < size && first <= last
      {
        let part = try client.request("GET", path, ["Range": "bytes=\(first)-\(last)"])
        let end = min(last, size - 1)
        #expect(part.status == 206 && part.body == Array(value[first...end]))
        #expect(part.fields["content-range"] == "bytes \(first)-\(end)/\(size)")
      }
      #expect(try client.request("GET", path, ["Range": "bytes=\(size)-"]).status == 416)
      let end = try client.request("GET", path, ["Range": "bytes=-5"])
      #expect(end.status == (size == 0 ? 200 : 206) && end.body == value.suffix(5))
      #expect(try client.request("GET", path, ["Range": "lines=1-2"]).status == 200)
      for range in ["bytes=5-1", "bytes=0-1,3-4", "bytes=x-", "bytes=-0"] {
        let refused = try client.request("GET", path, ["Range": range])
        #expect(refused.status == 416 && refused.fields["content-range"] == "bytes */\(size)", "\(range)")
      }
    }

    @Test func `a list has ranges like any other value`() throws {
      let server = try TestServer(speaking: .http, alsoNative: true)
      let native = try TestClient(server.server.addresses[1])
      try native.handshake()
      _ = try native.call(Request.make(.storeOpen, store: 0, id: 2, Array("test".utf8)))
      #expect(try native.call(Request.apply([.putList("list", [[65], [66, 67]])], id: 3)).isDone)
      let client = try TestClient(server.address)
      let whole = try client.request("GET", Self.store + "/entries/list")
      #expect(whole.fields["larder-kind"] == "list" && whole.fields["accept-ranges"] == "bytes")
      let part = try client.request("GET", Self.store + "/entries/list", ["Range": "bytes=3-5"])
      #expect(part.status == 206 && part.body == Array(whole.body[3...5]) && part.fields["larder-kind"] == "list")
    }

    @Test func `entries are listed in pages, as a tree, and counted`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      for number in 0..<250 {
        let key = number % 5 == 0 ? "top\(1_000 + number)" : "d\(number % 3)/\(1_000 + number)"
        #expect(try client.request("PUT", "\(Self.store)/entries/\(key)", [:], Array("v\(number)".utf8)).status == 204)
      }
      #expect(try client.request("PUT", "\(Self.store)/entries/x%F0%9F%98%80", [:], [0xFE]).status == 204)
      #expect(try client.request("PUT", "\(Self.store)/entries/%FF", [:], [1]).code == "keyInvalid")
      var keys: [String] = []
      var after = ""
      while true {
        let page = try client.request("GET", "\(Self.store)/entries?limit=60\(after)").json
        guard case .array(let entries)? = page["entries"], !entries.isEmpty else { break }
        keys += entries.map { "\($0["key"]!)" }
        after =
          "&after=\(keys.last!.dropFirst().dropLast().replacing("/", with: "%2F").replacing("😀", with: "%F0%9F%98%80"))"
      }
      #expect(keys.count == 251 && keys.last == "\"x😀\"" && keys == keys.sorted())
      let values = try client.request("GET", "\(Self.store)/entries?values=1&prefix=x").text
      #expect(values == #"{"entries":[{"key":"x😀","revision":"251","size":1,"valueBase64":"/g=="}]}"#)
      let tree = try client.request("GET", "\(Self.store)/tree?limit=2").text
      #expect(tree == #"{"elements":[{"prefix":"d0/","count":67},{"prefix":"d1/","count":67}],"isComplete":false}"#)
      let rest = try client.request("GET", "\(Self.store)/tree?limit=2&after=d1%2F").text
      #expect(rest.hasPrefix(#"{"elements":[{"prefix":"d2/","count":66},{"key":"top1000","#))
      let below = try client.request("GET", "\(Self.store)/tree?prefix=d1/&limit=1").text
      #expect(below == #"{"elements":[{"key":"d1/1001","revision":"2","size":2}],"isComplete":false}"#)
      #expect(try client.request("GET", "\(Self.store)/count?prefix=d").text == #"{"count":200}"#)
      #expect(try client.request("GET", "\(Self.store)/entries?limit=5000").code == "illegalArgument")
      #expect(try client.request("GET", "\(Self.store)/entries?lmit=5").text.contains("there are prefix, after, limit"))
    }

    // MARK: Documents

    @Test(arguments: ["memory", "log", "directory"]) func `documents are found, as JSON and as lines`(engine: String)
      throws
    {
      let server = try TestServer(
        stores: engine == "memory" ? ["test"] : [], logs: engine == "log" ? ["test"] : [],
        directories: engine == "directory" ? ["test"] : [], speaking: .http)
      let client = try TestClient(server.address)
      for number in 0..<60 {
        // Some are in files, and all have several lines.
        let filler = String(repeating: "x", count: number % 10 == 0 ? 50_000 : 5)
        let text = "{\n  \"n\": \(number),\r\n\t\"x\": \"\(filler)\"\n}"
        #expect(
          try client.request("PUT", "\(Self.store)/entries/k\(100 + number)", [:], Array(text.utf8)).status == 204)
      }
      let find = #"{"selector":{"n":{"$gte":20}},"limit":30}"#
      let found = try client.request("POST", Self.store + "/find", json: find)
      guard case .array(let documents)? = try found.json["documents"] else { throw Unexpected(found.text) }
      #expect(documents.count == 30 && documents[0]["document"]?["n"] == 20 && documents[0]["id"] == "k120")
      let result = try #require(try found.json["result"])
      #expect(result["found"] == 30 && result["revision"] == "60")
      let bookmark = try #require(result["bookmark"])
      let next = try client.request(
        "POST", Self.store + "/find", json: #"{"selector":{"n":{"$gte":20}},"limit":30,"bookmark":\#(bookmark)}"#)
      guard case .array(let others)? = try next.json["documents"] else { throw Unexpected(next.text) }
      #expect(others.count == 10 && others[0]["id"] == "k150")
      let lines = try client.request(
        "POST", Self.store + "/find", ["Content-Type": "application/json", "Accept": "application/x-ndjson"],
        Array(#"{"selector":{"n":{"$lt":40}},"limit":100}"#.utf8))
      #expect(lines.fields["content-type"] == "application/x-ndjson")
      let parsed = try lines.text.split(separator: "\n").map { try JSONValue(parsing: String($0)) }
      #expect(parsed.count == 41 && parsed[40]["result"]?["found"] == 40)
      #expect(parsed.prefix(40).map { $0["document"]?["n"] } == (0..<40).map { .integer($0) })
      let fields = try client.request(
        "POST", Self.store + "/find", json: #"{"selector":{"n":3},"fields":["n"]}"#)
      #expect(fields.text.contains(#"[{"id":"k103","revision":"4","document":{"n":3}}]"#), "\(fields.text)")
      let count = try client.request(
        "POST", Self.store + "/find", json: #"{"selector":{"n":{"$mod":[2,0]}},"count":true}"#)
      #expect(try count.json["result"]?["found"] == 30)
      let plan = try client.request("POST", Self.store + "/explain", json: find)
      #expect(try plan.json["result"]?["explanation"]?["plan"]?["kind"] == "scan")
      let rows = try client.request(
        "POST", Self.store + "/aggregate", json: #"{"selector":{"n":{"$lt":10}},"compute":["count",{"sum":"n"}]}"#)
      #expect(rows.text.hasPrefix(#"{"rows":[{"by":[],"values":[[10],[45]]}],"result":"#), "\(rows.text)")
      let changed = try client.request(
        "POST", Self.store + "/update", json: #"{"selector":{"n":{"$lt":5}},"update":{"$set":{"y":1}}}"#)
      #expect(try changed.json["changed"] == 5)
      let deleted = try client.request("POST", Self.store + "/update", json: #"{"selector":{"y":1},"delete":true}"#)
      #expect(try deleted.json["changed"] == 5)
      #expect(try client.request("GET", "\(Self.store)/count").text == #"{"count":55}"#)
    }

    @Test func `indexes are created, listed and deleted`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      #expect(try client.request("POST", Self.store + "/indexes", json: #"{"fields":["n"]}"#).status == 201)
      #expect(try client.request("POST", Self.store + "/indexes", json: #"{"fields":["n"]}"#).status == 200)
      #expect(try client.request("POST", Self.store + "/indexes", json: #"{"fields":[]}"#).status == 400)
      #expect(try client.request("GET", Self.store + "/indexes").text.contains(#""fields":["n"]"#))
      #expect(try client.request("DELETE", Self.store + "/indexes/n").status == 204)
      #expect(try client.request("DELETE", Self.store + "/indexes/n").status == 404)
    }

    @Test func `mistakes in selectors are named`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      for (body, part) in [
        (#"{"selector":{"n":{"$gtt":1}}}"#, "did you mean $gt?"), (#"{"selector":{"n":}}"#, "not a JSON object"),
        ("", "not a JSON object"), (#"{"selecto":{}}"#, "there is no member 'selecto'"),
        (#"{"selector":{},"selector":{}}"#, "must not be repeated"), (#"{"limit":-1}"#, "'limit' is a whole number"),
        (#"{"count":1}"#, "'count' is true or false"), ("[]", "not a JSON object"),
      ] {
        let answer = try client.request("POST", Self.store + "/find", json: body)
        #expect(answer.status == 400 && answer.text.contains(part), "\(body): \(answer.text)")
        #expect(answer.fields["content-type"] == "application/problem+json")
      }
    }

    // MARK: Changes

    @Test func `changes are sent as they happen, and can be resumed`() throws {
      let server = try TestServer(speaking: .http)
      let (client, watcher) = (try TestClient(server.address), try TestClient(server.address))
      let path = Self.store + "/entries/"
      #expect(try client.request("PUT", path + "a1", [:], Array("x".utf8)).status == 204)
      try watcher.send(TestClient.encodedRequest("GET", Self.store + "/changes?values=1&prefix=a"))
      #expect(try watcher.head() == "HTTP/1.1 200 OK")
      let first = try watcher.chunk().split(separator: "\n").map { try JSONValue(parsing: String($0)) }
      let incarnation = "\(try #require(first[0]["incarnation"]))".dropFirst().dropLast()
      #expect(first[1]["through"] == "1")
      #expect(try client.request("PUT", path + "b", [:], [1]).status == 204)
      #expect(try client.request("PUT", path + "a2", ["Larder-Expires-In": "60000"], [0xFF]).status == 204)
      let put = try watcher.chunk()
      #expect(put.hasPrefix(#"{"change":"put","revision":"3","key":"a2","expiresInMilliseconds":"#), "\(put)")
      #expect(put.hasSuffix("\"size\":1,\"valueBase64\":\"/w==\"}\n{\"through\":\"3\"}\n"), "\(put)")
      #expect(try client.request("DELETE", path + "a1").status == 204)
      #expect(try watcher.chunk() == "{\"change\":\"delete\",\"revision\":\"4\",\"key\":\"a1\"}\n{\"through\":\"4\"}\n")
      let other = try TestClient(server.address)
      try other.send(TestClient.encodedRequest("GET", Self.store + "/changes?from=4&incarnation=\(incarnation)"))
      #expect(try other.head() == "HTTP/1.1 200 OK")
      var text = try other.chunk()
      while !text.contains("\"through\":\"4\"") { text += try other.chunk() }
      #expect(text.contains(#"{"change":"delete","revision":"4","key":"a1"}"#), "\(text)")
      try client.send(TestClient.encodedRequest("GET", Self.store + "/changes?from=4&incarnation=5"))
      let lost = try client.answer().text
      #expect(lost.contains("\"lost\":\"4\"") && lost.contains("changesLost"), "\(lost)")
      #expect(lost.contains("\"status\":410"), "\(lost)")
      // A client that has left is not served any longer.
      watcher.endSending()
      other.endSending()
      #expect(try eventually { try client.request("GET", Self.store).json["figures"]?["watches"] == 0 })
      #expect(try eventually { try client.request("GET", "/v1/stats").json["figures"]?["connections"] == 1 })
    }

    // MARK: The server

    @Test func `stores are made, described and dropped`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      #expect(try client.request("PUT", "/v1/stores/new", json: #"{"engine":"memory"}"#).status == 201)
      #expect(try client.request("PUT", "/v1/stores/new", json: #"{"engine":"memory"}"#).status == 409)
      #expect(try client.request("PUT", "/v1/stores/other").code == "illegalArgument")
      #expect(try client.request("PUT", "/v1/stores/new/entries/k", [:], [1]).status == 204)
      #expect(try client.request("GET", "/v1/stores").text.contains(#"{"name":"new","engine":"memory","entries":1}"#))
      #expect(try client.request("GET", "/v1/stores/new").json["figures"]?["revision"] == "1")
      #expect(try client.request("DELETE", "/v1/stores/new").status == 204)
      #expect(try client.request("GET", "/v1/stores/new/entries/k").code == "storeUnknown")
      #expect(try client.request("GET", "/healthz").text == "ok\n" && client.request("GET", "/readyz").status == 200)
      #expect(try client.request("GET", "/metrics").text.contains("larder_requests_total"))
      #expect(try client.request("GET", "/v1/stats").json["figures"]?["connections"] == 1)
      for path in ["/v1/slow-log", "/v1/connections", "/v1/whoami"] {
        #expect(try client.request("GET", path).status == 200, "\(path)")
      }
    }

    @Test func `what there is no resource or method for is refused`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      for path in [
        "/", "/v1", "/v1/", "/v2/stores", "/v1/stores/test/nothing", "/v1/stores/test/count/x", "//v1/stores",
      ] {
        #expect(try client.request("GET", path).status == 404, "\(path)")
      }
      let answer = try client.request("DELETE", Self.store + "/find")
      #expect(answer.status == 405 && answer.fields["allow"] == "POST")
      #expect(try client.request("PATCH", Self.store + "/entries/x").fields["allow"] == "GET, HEAD, PUT, DELETE")
      #expect(try client.request("POST", Self.store + "/find", [:], Array("{}".utf8)).status == 415)
      #expect(try client.request("GET", "/v1/stores/test/entries/%zz").code == "illegalArgument")
      #expect(try client.request("GET", "/v1/stores/test/entries/").code == "keyInvalid")
    }

    // MARK: Framing

    @Test func `requests that could be read in two ways end the connection`() throws {
      let server = try TestServer(speaking: .http)
      let good = "GET /v1/stores HTTP/1.1\r\nHost: localhost\r\n"
      for bad in [
        "GET /v1/stores HTTP/1.1\r\n\r\n", "GET /v1/stores HTTP/1.0\r\nHost: localhost\r\n\r\n",
        "GET /v1/stores\r\n\r\n", "GET  /v1/stores HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET http:// HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET ftp://localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET * HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET http://user@localhost/ HTTP/1.1\r\nHost: localhost\r\n\r\n", "GET http://localhost/ HTTP/1.1\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "GET /v1/stores#x HTTP/1.1\r\nHost: localhost\r\n\r\n",
        good + "Host: localhost\r\n\r\n", good + "Content-Length: 1\r\nContent-Length: 1\r\n\r\nx",
        good + "Content-Length: 01\r\n\r\nx", good + "Content-Length: +1\r\n\r\nx",
        good + "Content-Length: 1,1\r\n\r\nx",
        good + "Content-Length: -1\r\n\r\n", good + "Content-Length:\r\n\r\n",
        good + "Content-Length: 99999999999999999999\r\n\r\n", good + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        good + "Transfer-Encoding: identity\r\n\r\n", good + "X : y\r\n\r\n", good + " folded: y\r\n\r\n",
        good + "X: y\r\n folded\r\n\r\n", good + ": y\r\n\r\n", good + "X\r\n\r\n", good + "X: a\nY: b\r\n\r\n",
        good + "X: a\rY: b\r\n\r\n", good + "X: \u{0}\r\n\r\n", good + "X: \u{7F}\r\n\r\n", good + "É: y\r\n\r\n",
        good + "X: " + String(repeating: "x", count: 17_000) + "\r\n\r\n", good + "Content-Length: 4294967296\r\n\r\n",
        "G\u{0}T / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      ] {
        let client = try TestClient(server.address)
        try client.send(Array(bad.utf8))
        let answer = try client.answer()
        #expect([400, 413].contains(answer.status) && answer.fields["connection"] == "close", "\(bad): \(answer.text)")
        #expect(try client.isClosed(), "\(bad)")
      }
    }

    @Test func `requests in a pipeline that are split at any byte have the same responses`() throws {
      let server = try TestServer(speaking: .http)
      let put = TestClient.encodedRequest("PUT", Self.store + "/entries/k", [:], Array("a value".utf8))
      let find = TestClient.encodedRequest(
        "POST", Self.store + "/find", ["Content-Type": "application/json"], Array(#"{"selector":{}}"#.utf8))
      let bytes =
        put + TestClient.encodedRequest("GET", Self.store + "/entries/k") + find
        + TestClient.encodedRequest("GET", Self.store + "/entries?values=1")
        + TestClient.encodedRequest("DELETE", Self.store + "/entries/k")
      for split in stride(from: 1, to: bytes.count, by: 3) {
        let client = try TestClient(server.address)
        try client.send(Array(bytes[..<split]))
        usleep(300)
        try client.send(Array(bytes[split...]))
        #expect(try client.answer().status == 204 && client.answer().text == "a value", "split at \(split)")
        #expect(try client.answer().text.hasPrefix(#"{"documents":[]"#), "split at \(split)")
        #expect(try client.answer().text.contains(#""value":"a value""#), "split at \(split)")
        #expect(try client.answer().status == 204, "split at \(split)")
      }
    }

    @Test func `a client that waits for it is told to send its body`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      for _ in 0..<3 {
        try client.send(
          TestClient.encodedRequest(
            "PUT", Self.store + "/entries/k", ["Expect": "100-continue", "Content-Length": "70000"]))
        #expect(try client.head() == "HTTP/1.1 100 Continue")
        try client.send([UInt8](repeating: 1, count: 35_000))
        try client.send([UInt8](repeating: 1, count: 35_000))
        #expect(try client.answer().status == 204)
      }
      #expect(try client.request("GET", Self.store + "/entries/k").body.count == 70_000)
    }

    // MARK: Browsers

    @Test func `what a page of another site makes a browser send is refused`() throws {
      let server = try TestServer(tcp: true, speaking: .http)
      guard case .tcp(_, let port) = server.address else { throw Unexpected("no port") }
      let client = try TestClient(server.address)
      for host in ["127.0.0.1:\(port)", "localhost:\(port)", "LOCALHOST:\(port)", "[::1]:\(port)"] {
        #expect(try client.request("GET", "/v1/stores", ["Host": host]).status == 200, "\(host)")
      }
      for host in [
        "evil.test:\(port)", "localhost", "localhost:1", "127.0.0.1.evil.test:\(port)", "localhost:\(port).evil.test",
      ] {
        for path in ["/v1/stores", Self.store + "/entries/x", "/", "/healthz"] {
          #expect(try client.request("GET", path, ["Host": host]).status == 421, "\(host) \(path)")
        }
      }
      let host = "localhost:\(port)"
      for fields in [
        ["X-Larder": "0"], ["Sec-Fetch-Site": "cross-site"], ["Sec-Fetch-Site": "same-site"],
        ["Origin": "http://evil.test"],
        ["Origin": "null"], ["Origin": "http://localhost:1"],
      ] {
        let all = fields.merging(["Host": host]) { first, _ in first }
        #expect(try client.request("PUT", Self.store + "/entries/x", all, [1]).status == 403, "\(fields)")
        #expect(try client.request("DELETE", "/v1/stores/test", all).status == 403, "\(fields)")
      }
      #expect(
        try client.request(
          "PUT", Self.store + "/entries/x",
          ["Host": host, "Origin": "http://\(host)", "Sec-Fetch-Site": "same-origin"], [1]
        ).status == 204)
      #expect(try client.request("OPTIONS", Self.store + "/entries/x", ["Host": host]).status == 405)
    }

    // MARK: Rights

    @Test func `each request has the rights of its token`() throws {
      let (reader, writer) = (AccessToken(), AccessToken())
      let records = [("reader", reader), ("writer", writer)].map { name, token in
        TokenRecord(name: name, digest: token.digest, created: 0, expiry: nil)
      }
      let server = try TestServer(
        stores: ["test", "other"],
        rules: [
          AccessRule(.principal("reader"), .read, store: try StoreName("test")),
          AccessRule(.principal("writer"), .write, store: try StoreName("test"), keyPrefix: "a"),
        ],
        speaking: .http, tokens: TokenTable(records))
      let client = try TestClient(server.address)
      func request(_ token: AccessToken?, _ method: String, _ path: String, _ body: [UInt8]? = nil) throws -> Int {
        try client.request(method, path, token.map { ["Authorization": "Bearer \($0.text)"] } ?? [:], body).status
      }
      #expect(try request(nil, "GET", Self.store + "/entries/a") == 401)
      #expect(try client.request("GET", "/v1/stores").fields["www-authenticate"] == #"Bearer realm="larder""#)
      #expect(try request(writer, "PUT", Self.store + "/entries/ab", [1]) == 204)
      #expect(try request(writer, "PUT", Self.store + "/entries/b", [1]) == 403)
      #expect(try request(reader, "GET", Self.store + "/entries/ab") == 200)
      #expect(try request(reader, "PUT", Self.store + "/entries/ab", [1]) == 403)
      #expect(try request(reader, "DELETE", "/v1/stores/test") == 403)
      #expect(try request(reader, "GET", "/v1/stores/other/entries/a") == 403)
      #expect(try request(reader, "GET", "/v1/slow-log") == 403)
      #expect(try request(nil, "GET", Self.store + "/entries/ab") == 401)
      #expect(try request(writer, "GET", Self.store + "/entries?prefix=a") == 200)
      #expect(try request(writer, "GET", Self.store + "/entries") == 403)
      #expect(try request(writer, "GET", Self.store + "/tree") == 403)
      #expect(try request(nil, "GET", "/healthz") == 200)
      // After a wrong token, only other wrong ones have to wait.
      let wrong = ["Authorization": "Bearer \(AccessToken().text)"]
      #expect(try client.request("GET", Self.store + "/entries/ab", wrong).status == 401)
      let refused = try client.request("GET", Self.store + "/entries/ab", wrong)
      #expect(refused.status == 429 && refused.code == "notPermitted" && refused.fields["retry-after"] == "1")
      #expect(try request(reader, "GET", Self.store + "/entries/ab") == 200)
    }

    private struct Unexpected: Error {
      let text: String
      init(_ text: String) { self.text = text }
    }
  }
}
