import DocumentTestSupport
import Documents
import TestSupport
import Testing
import Wire

extension ServerTests {
  /// Finds by plans that are kept for their shapes find what they would find otherwise.
  struct KeptPlanTests {
    private static let values = [
      "1", "1.0", "2", "-0", "true", "false", "\"x\"", "\"y\"", "\"é\"", "\"\\n\"", "null", "[1]", "{\"a\":1}", "1e300",
      "9007199254740993",
    ]
    private static let indexes = [
      #"{"fields":["a"]}"#, #"{"fields":["a","b"]}"#, #"{"fields":["b"]}"#, #"{"fields":[{"a":"desc"},{"b":"desc"}]}"#,
      #"{"fields":["c.d","a"]}"#, #"{"fields":["a"],"where":{"b":{"$exists":true}},"name":"partial"}"#,
    ]
    private static let sorts = ["", #"["a"]"#, #"["b"]"#, #"["a","b"]"#, #"[{"a":"desc"},{"b":"desc"}]"#, #"["_id"]"#]

    @Test func `finds of few shapes find the same, while documents and indexes change`() throws {
      var random = SeededGenerator.announced()
      let server = try TestServer()
      let client = try server.connect(credit: 1 << 30)
      func pick(_ texts: [String]) -> String { texts.randomElement(using: &random)! }
      var documents: [String: Document] = [:]
      var indexes: [String: String] = [:]
      for _ in 0..<(SeededGenerator.isThorough ? 60_000 : 3_000) {
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<12:
          let key = "key \(Int.random(in: 0..<60, using: &random))"
          // Mostly few values, so that finds have several documents.
          var members = ["a", "b"].map { "\"\($0)\":\(Bool.random(using: &random) ? pick(Self.values) : "1")" }
          members.append(#""c":{"d":\#(pick(["1", "2"]))}"#)
          if Int.random(in: 0..<20, using: &random) == 0 { members.append("\"a\":\(pick(Self.values))") }
          let text = Int.random(in: 0..<30, using: &random) == 0 ? "[]" : "{\(members.joined(separator: ","))}"
          let revision = try #require(try client.call(Request.put(key, Array(text.utf8), id: 5)).number)
          documents[key] = Document(text, id: key, revision: revision)
        case 12..<14:
          let key = "key \(Int.random(in: 0..<60, using: &random))"
          _ = try client.call(Request.delete(key, id: 5))
          documents[key] = nil
        case 14:
          let definition = pick(Self.indexes)
          indexes[definition] = try client.ensureIndex(definition).name
          try #require(try eventually { try client.indexes().allSatisfy { $0["state"] == "ready" } })
        case 15:
          guard let index = indexes.keys.sorted().randomElement(using: &random) else { continue }
          #expect(try client.call(Request.make(.indexDelete, id: 6, Array(indexes[index]!.utf8))).isDone)
          indexes[index] = nil
        default: try compare(documents, client, &random)
        }
      }
      #expect(try client.figures(store: 1)["snapshots"] == 0)
    }

    private func compare(
      _ documents: [String: Document], _ client: TestClient, _ random: inout SeededGenerator
    ) throws {
      let names = [[], ["a"], ["a", "b"], ["b", "a"], ["c.d", "a"], ["_id"], ["_id", "a"], ["c\\.d"]]
      let members = names.randomElement(using: &random)!.map { name in
        let value =
          name == "_id"
          ? "\"key \(Int.random(in: 0..<70, using: &random))\"" : Self.values.randomElement(using: &random)!
        return "\"\(name.replacing("\\", with: "\\\\"))\":\(value)"
      }
      let selector = "{\(members.joined(separator: Bool.random(using: &random) ? "," : " , "))}"
      let sort = Self.sorts.randomElement(using: &random)!
      let fields = Int.random(in: 0..<4, using: &random) == 0 ? #"["b","c.d","_id"]"# : ""
      let limit = [nil, nil, 1, 3, 20].randomElement(using: &random)!
      let skip = [0, 0, 1, 5].randomElement(using: &random)!
      var query = try DocumentQuery(
        parsing: """
          {"selector":\(selector)\(sort.isEmpty ? "" : ",\"sort\":\(sort)")\(fields.isEmpty ? "" : ",\"fields\":\(fields)")}
          """)
      (query.limit, query.skip) = (limit.map { Int($0) }, skip)
      let sorted = documents.values.sorted { $0.id! < $1.id! }
      let expected = try sorted.find(query)
      let context = "\(selector) \(sort) \(fields) \(String(describing: limit)) \(skip)"
      let found = try client.find(
        selector, sort: sort, limit: limit.map { UInt32($0) }, skip: UInt64(skip), fields: fields)
      #expect(found.keys == expected.documents.map { $0.id! }, "\(context)")
      #expect(found.documents.map(\.value) == expected.documents.map(\.text), "\(context)")
      #expect(found.result.text == expected.bookmark ?? "", "\(context)")
      #expect(found.result.found == UInt64(expected.documents.count), "\(context)")
      let count = try client.find(selector, sort: sort, countOnly: true)
      #expect(try count.result.found == UInt64(sorted.count(query.selector)), "\(context)")
      guard !found.result.text.isEmpty else { return }
      query.bookmark = found.result.text
      let next = try client.find(
        selector, sort: sort, limit: limit.map { UInt32($0) }, fields: fields, bookmark: found.result.text)
      #expect(next.keys == (try sorted.find(query)).documents.map { $0.id! }, "\(context)")
    }

    @Test func `malformed finds are refused, whatever plans are kept`() throws {
      let server = try TestServer()
      let client = try server.connect()
      try client.putNumbered(100)
      _ = try client.ensureIndex(#"{"fields":["n"]}"#)
      try #require(try eventually { try client.indexes().allSatisfy { $0["state"] == "ready" } })
      for _ in 0..<3 { #expect(try client.find(#"{"n":5}"#, sort: #"["n"]"#).keys == ["key1000005"]) }
      for (selector, sort, fields) in [
        (#"{"n":5"#, #"["n"]"#, ""), (#"{"n":5}}"#, #"["n"]"#, ""), (#"{"n":05}"#, #"["n"]"#, ""),
        (#"{"n":5,}"#, #"["n"]"#, ""), (#"{"":5}"#, #"["n"]"#, ""), (#"{"n":5}"#, #"["n"]]"#, ""),
        (#"{"n":5}"#, #"["n"]"#, "[5]"), (#"{"n":5}"#, "[\"n\"]\u{0}", ""), (#"{"n":"\#("\u{1}")"}"#, #"["n"]"#, ""),
        (#"{"n":tru}"#, #"["n"]"#, ""), (#"{"a..b":1}"#, #"["n"]"#, ""), ("{\"n\":\"\u{D}\"}", "", ""),
      ] {
        try client.send(Request.find(id: 7, selector: selector, sort: sort, fields: fields))
        #expect(try client.receive().isError(.illegalArgument, id: 7), "\(selector) \(sort) \(fields)")
      }
      #expect(try client.find(#"{"n":5}"#, sort: #"["n"]"#).keys == ["key1000005"])
    }

    @Test func `any number of shapes is served`() throws {
      let server = try TestServer()
      let client = try server.connect()
      _ = try client.ensureIndex(#"{"fields":["n"]}"#)
      try client.putNumbered(50)
      for number in 0..<2_000 {
        let spaces = String(repeating: " ", count: number % 40)
        let found = try client.find(
          "{\"n\":\(number % 50)}", sort: #"["n"]"#, fields: "[\"n\"\(spaces),\"f\(number)\"]")
        #expect(found.documents.map(\.value) == [Array("{\"n\":\(number % 50)}".utf8)])
      }
    }
  }
}
