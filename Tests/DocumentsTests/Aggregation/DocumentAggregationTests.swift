import TestSupport
import Testing

@testable import Documents

@Suite struct DocumentAggregationTests {
  @Test(arguments: [
    #"{"by":["pet.species"],"compute":["count",{"sum":"age"},{"avg":"age"},{"min":"age"},{"max":"a\\.b"}]}"#,
    #"{"by":[],"compute":[]}"#,
    #"{"by":["a","a"],"compute":["count","count"]}"#,
  ])
  func `an aggregation is read from its JSON and written again`(_ text: String) throws {
    #expect(try DocumentAggregation(parsing: text).description == text)
  }

  @Test func `by default, all documents are counted`() throws {
    #expect(try DocumentAggregation(parsing: "{}") == DocumentAggregation(by: [], computing: [.count]))
  }

  private static let mistakes: [(json: String, code: SelectorError.Code, path: String)] = [
    ("{", .notJSON, "$"), ("[]", .badAggregation, "$"), (#"{"group": []}"#, .badAggregation, "$.group"),
    (#"{"by": "a"}"#, .badAggregation, "$.by"), (#"{"by": ["a", 1]}"#, .badAggregation, "$.by[1]"),
    (#"{"by": ["a..b"]}"#, .badAggregation, "$.by[0]"), (#"{"compute": {}}"#, .badAggregation, "$.compute"),
    (#"{"compute": ["sum"]}"#, .badAggregation, "$.compute[0]"),
    (#"{"compute": [{"median": "a"}]}"#, .badAggregation, "$.compute[0]"),
    (#"{"compute": [{"sum": "a", "min": "a"}]}"#, .badAggregation, "$.compute[0]"),
    (#"{"compute": ["count", {"sum": ""}]}"#, .badAggregation, "$.compute[1].sum"),
    (#"{"by": [\#((0..<33).map { "\"\($0)\"" }.joined(separator: ","))]}"#, .tooLarge, "$.by"),
    (#"{"compute": [{"sum": "\#(String(repeating: "a", count: 4_097))"}]}"#, .tooLarge, "$.compute[0].sum"),
  ]

  @Test func `a malformed aggregation is an error that names the place`() {
    for (json, code, path) in Self.mistakes {
      let error = #expect(throws: SelectorError.self, "\(json.prefix(40))") { try DocumentAggregation(parsing: json) }
      #expect(error?.code == code, "\(json.prefix(40))")
      #expect(error?.path == path, "\(json.prefix(40))")
    }
  }

  @Test func `a group is read from its JSON and written again`() throws {
    let group = DocumentGroup(key: ["cat", nil, .null], values: [3, nil])
    #expect(group.json.description == #"{"by":[["cat"],[],[null]],"values":[[3],[]]}"#)
    #expect(DocumentGroup(json: group.json) == group)
    for text in ["[]", "{}", #"{"by":[]}"#, #"{"by":[1],"values":[]}"#, #"{"by":[[1,2]],"values":[]}"#] {
      #expect(try DocumentGroup(json: JSONValue(parsing: text)) == nil, "\(text)")
    }
  }

  @Test func `entries are aggregated like documents`() throws {
    let documents = [#"{"a":1,"b":2}"#, #"{"a":1,"b":5}"#, #"{"a":2,"b":1}"#, "[]"]
    let aggregation = DocumentAggregation(by: ["a"], computing: [.sum("b"), .max("_id"), .min("_rev")])
    let selector = Selector.field("_id", .greater("0"))
    var (expected, entries) = (
      try DocumentAggregator(selector, aggregation), try DocumentAggregator(selector, aggregation)
    )
    var budget = WorkBudget()
    for (number, text) in documents.enumerated() {
      try expected.add(Document(text, id: "\(number)", revision: UInt64(number)))
      let count = try StoredEntry.withTrust(key: "\(number)", Array(text.utf8), revision: UInt64(number)) { entry in
        try entries.add([entry].span, &budget)
      }
      #expect(count == 1)
    }
    #expect(entries.keptByteCount > 0)
    let groups = entries.result()
    #expect(groups == expected.result())
    #expect(groups.map(\.values) == [[5, "1", 1], [1, "2", 2]])
  }

  // MARK: Sort and limit

  @Test func `groups are in the order of the aggregation and then of their values, up to the limit`() throws {
    var random = SeededGenerator.announced()
    let documents = (0..<400).map { number in
      let city = ["\"Oslo\"", "\"Rome\"", "7", "null", "[\"Oslo\",\"Bern\"]", "[]"].randomElement(using: &random)!
      let age = ["1", "2.5", "\"x\"", "null", "[3,1]"].randomElement(using: &random)!
      return Document(#"{"city":\#(city),"kind":\#(number % 3),"age":\#(age)}"#, id: "\(number)")
    }
    let aggregates: [Aggregate] = [.count, .sum("age"), .min("age"), .max("age")]
    let plain = try documents.groups(by: ["city", "kind"], computing: aggregates)
    #expect(plain.count > 10)
    for sort in [
      [GroupOrder.descending(.count)], [.ascending(.sum("age")), .descending(.max("age"))],
      [GroupOrder(.field("kind"), .descending), .ascending(.min("age"))], [],
    ] {
      // The sort of the standard library is stable, so the least important order comes first.
      var expected = plain
      for order in sort.reversed() {
        expected = try Self.sorted(expected, by: order, fields: ["city", "kind"], aggregates)
      }
      for limit in [nil, 0, 1, 5, 1_000] {
        let aggregation = DocumentAggregation(by: ["city", "kind"], computing: aggregates, sort: sort, limit: limit)
        var aggregator = try DocumentAggregator(.all, DocumentAggregation(parsing: aggregation.description))
        for document in documents { try aggregator.add(document) }
        #expect(aggregator.result() == Array(expected.prefix(limit ?? .max)), "\(aggregation)")
      }
    }
  }

  /// Sorts by one order, with the sort of documents.
  private static func sorted(
    _ groups: [DocumentGroup], by order: GroupOrder, fields: [FieldPath], _ aggregates: [Aggregate]
  ) throws -> [DocumentGroup] {
    func value(_ group: DocumentGroup) throws -> JSONValue? {
      switch order.value {
      case .field(let path): group.key[try #require(fields.firstIndex(of: path))]
      case .aggregate(let aggregate): group.values[try #require(aggregates.firstIndex(of: aggregate))]
      }
    }
    let documents = try groups.enumerated().map { number, group in
      var members = JSONObject()
      members["v"] = try value(group)
      members["n"] = .integer(Int64(number))
      return Document(JSONValue.object(members).description, id: "\(number)")
    }
    let found = try documents.find(
      DocumentQuery(sort: [SortField("v", order.direction), .ascending("n")])
    ).documents
    return try found.map { groups[try #require($0.id.flatMap { Int($0) })] }
  }

  @Test func `sorting groups by a field they don't have is an error`() {
    for text in [
      #"{"sort":[{"sum:a":"desc"}]}"#, #"{"by":["a"],"sort":[{"by:b":"asc"}]}"#, #"{"sort":[{"count":"up"}]}"#,
      #"{"sort":["count"]}"#, #"{"limit":-1}"#, #"{"limit":1.5}"#,
    ] {
      let error = #expect(throws: SelectorError.self, "\(text)") {
        try DocumentAggregator(.all, DocumentAggregation(parsing: text))
      }
      #expect(error?.code == .badAggregation, "\(text)")
    }
  }
}
