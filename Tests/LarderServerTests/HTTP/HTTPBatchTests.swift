import Documents
import Storage
import TestSupport
import Testing
import Tokens

@testable import LarderServer

extension ServerTests {
  /// Requests over HTTP with many operations, and what reads many keys.
  struct HTTPBatchTests {
    private static let store = "/v1/stores/test"

    @Test func `operations are applied as one commit, or none is`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      let first = try client.request(
        "POST", Self.store + "/apply",
        json: """
          {"operations":[{"put":"a","value":{"n": 1.50}},{"put":"b/é","value":"text\\n"},
          {"put":"c","valueBase64":"/w==","expiresInMilliseconds":60000,"ifAbsent":true}]}
          """)
      #expect(first.status == 200 && first.text == #"{"revision":"1"}"#)
      #expect(try client.request("GET", Self.store + "/entries/a").text == #"{"n": 1.50}"#)
      #expect(try client.request("GET", Self.store + "/entries/b/%C3%A9").text == "text\n")
      let expiring = try client.request("GET", Self.store + "/entries/c")
      #expect(expiring.body == [0xFF] && expiring.fields["larder-expires-in"] != nil)
      let second = try client.request(
        "POST", Self.store + "/apply",
        json: #"{"operations":[{"check":"c","ifRevision":"1"},{"update":"a","set":{"$inc":{"n":2}}},{"delete":"b/é"}]}"#
      )
      #expect(second.text == #"{"revision":"2"}"#)
      #expect(try client.request("GET", Self.store + "/entries/a").text.contains("3.5"))
      let refused = try client.request(
        "POST", Self.store + "/apply", json: #"{"operations":[{"delete":"a"},{"check":"c","ifRevision":"9"}]}"#)
      #expect(refused.status == 412 && refused.code == "conditionFailed")
      #expect(try client.request("GET", Self.store + "/count").text == #"{"count":2}"#)
    }

    @Test(arguments: [
      "{}", #"{"operations":{}}"#, #"{"operations":[5]}"#, #"{"operations":[{"put":"a"}]}"#,
      #"{"operations":[{"value":1}]}"#,
      #"{"operations":[{"put":"a","delete":"b","value":1}]}"#, #"{"operations":[{"put":5,"value":1}]}"#,
      #"{"operations":[{"put":"a","valueBase64":"/w"}]}"#,
      #"{"operations":[{"put":"a","valueBase64":"/w==","value":1}]}"#,
      #"{"operations":[{"put":"a","value":1,"expiresInMilliseconds":0}]}"#,
      #"{"operations":[{"delete":"a","value":1}]}"#,
      #"{"operations":[{"delete":"a","ifRevision":5}]}"#, #"{"operations":[{"update":"a"}]}"#,
      #"{"operations":[{"check":"a"}]}"#,
      #"{"operations":[{"put":"a","value":1,"valeu":2}]}"#, #"{"operations":[{"put":"","value":1}]}"#,
      #"{"operations":[}"#,
    ]) func `malformed operations are refused`(body: String) throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      let answer = try client.request("POST", Self.store + "/apply", json: body)
      #expect(answer.status == 400, "\(answer.text)")
      #expect(try client.request("GET", Self.store + "/count").text == #"{"count":0}"#)
    }

    @Test func `keys are deleted, and said how many there were`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      for key in ["a", "b", "c"] {
        #expect(try client.request("PUT", Self.store + "/entries/\(key)", [:], [1]).status == 204)
      }
      let deleted = try client.request("POST", Self.store + "/delete", json: #"{"keys":["a","x","c"]}"#)
      #expect(deleted.text == #"{"deleted":2}"#)
      #expect(try client.request("POST", Self.store + "/delete", json: #"{"keys":[]}"#).text == #"{"deleted":0}"#)
      for body in [#"{"keys":"a"}"#, #"{"keys":[1]}"#, #"{"keys":[""]}"#, "{}"] {
        #expect(try client.request("POST", Self.store + "/delete", json: body).status == 400, "\(body)")
      }
      #expect(try client.request("GET", Self.store + "/count").text == #"{"count":1}"#)
    }

    /// So many operations are left to a job, during which the connection pauses.
    @Test(arguments: [false, true]) func `many operations are applied by a job`(withUpdates: Bool) throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      var operations = (0..<5_000).map { #"{"put":"k\#($0)","value":{"n":\#($0)}}"# }
      if withUpdates { operations.append(#"{"update":"k7","set":{"$set":{"x":true}}}"#) }
      let body = "{\"operations\":[\(operations.joined(separator: ","))]}"
      #expect(try client.request("POST", Self.store + "/apply", json: body).text == #"{"revision":"1"}"#)
      let document = withUpdates ? #"{"n":7,"x":true}"# : #"{"n":7}"#
      #expect(try client.request("GET", Self.store + "/entries/k7").text == document)
      let keys = (0..<5_000).map { "\"k\($0)\"" }.joined(separator: ",")
      #expect(
        try client.request("POST", Self.store + "/delete", json: "{\"keys\":[\(keys)]}").text == #"{"deleted":5000}"#)
    }

    @Test func `a key can be in the query`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      #expect(try client.request("PUT", Self.store + "/entry?key=..", [:], [1]).status == 204)
      #expect(try client.request("GET", Self.store + "/entry?key=%2E%2E").body == [1])
      #expect(try client.request("DELETE", Self.store + "/entry?key=..").status == 204)
      #expect(try client.request("GET", Self.store + "/entry").status == 400)
      #expect(try client.request("GET", Self.store + "/entry?kee=a").status == 400)
    }

    @Test func `the tree of keys has bounds`() throws {
      let server = try TestServer(speaking: .http)
      let client = try TestClient(server.address)
      for key in ["a/1", "a/2", "b", "z/1", "z/2"] {
        #expect(try client.request("PUT", "\(Self.store)/entries/\(key)", [:], [1]).status == 204)
      }
      let end = #"{"elements":[],"isComplete":true}"#
      // The last element of the part before is anywhere.
      #expect(try client.request("GET", Self.store + "/tree?prefix=a/&after=z/x/").text == end)
      #expect(try client.request("GET", Self.store + "/tree?prefix=a/&after=zzz").text == end)
      let all = try client.request("GET", Self.store + "/tree?prefix=z/&after=a/x/").text
      #expect(
        all
          == #"{"elements":[{"key":"z/1","revision":"4","size":1},{"key":"z/2","revision":"5","size":1}],"isComplete":true}"#
      )
      let long = String(repeating: "x", count: 5_000)
      for query in ["prefix=\(long)", "after=\(long)", "limit=0", "limit=251", "prefix=a&prefix=b"] {
        #expect(try client.request("GET", "\(Self.store)/tree?\(query)").status == 400)
      }
      #expect(try client.request("GET", Self.store + "/tree?delimiter=").text.contains(#""key":"a/1""#))
    }

    @Test func `rights to a prefix are those of each operation`() throws {
      let token = AccessToken()
      let record = TokenRecord(name: "tenant", digest: token.digest, created: 0, expiry: nil)
      let server = try TestServer(
        rules: [AccessRule(.principal("tenant"), .write, store: try StoreName("test"), keyPrefix: "a/")],
        speaking: .http,
        tokens: TokenTable([record]))
      let client = try TestClient(server.address)
      func status(_ method: String, _ path: String, _ json: String? = nil) throws -> Int {
        var fields = ["Authorization": "Bearer \(token.text)"]
        if json != nil { fields["Content-Type"] = "application/json" }
        return try client.request(method, Self.store + path, fields, json.map { Array($0.utf8) }).status
      }
      #expect(try status("POST", "/apply", #"{"operations":[{"put":"a/1","value":"x"}]}"#) == 200)
      #expect(
        try status("POST", "/apply", #"{"operations":[{"put":"a/1","value":"x"},{"put":"b","value":"x"}]}"#) == 403)
      #expect(try status("POST", "/apply", #"{"operations":[{"check":"b","ifAbsent":true}]}"#) == 403)
      #expect(try status("POST", "/apply", #"{"operations":[{"check":"a/2","ifAbsent":true}]}"#) == 200)
      #expect(try status("POST", "/delete", #"{"keys":["a/1","b"]}"#) == 403)
      #expect(try status("POST", "/delete", #"{"keys":["a/1"]}"#) == 200)
      #expect(try status("GET", "/tree?prefix=a/&delimiter=/&limit=5") == 200)
      for query in ["", "?prefix=b", "?delimiter=/", "?prefix=b&delimiter=/", "?prefix=&delimiter=:&limit=1&after=a/"] {
        #expect(try status("GET", "/tree" + query) == 403, "\(query)")
      }
      #expect(try status("GET", "/entry?key=b") == 403)
      #expect(try status("GET", "/entry?key=a/1") == 404)
    }
  }
}
