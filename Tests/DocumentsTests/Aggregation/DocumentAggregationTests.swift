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
    var matches: [Bool] = []
    var budget = WorkBudget()
    for (number, text) in documents.enumerated() {
      try expected.add(Document(text, id: "\(number)", revision: UInt64(number)))
      matches.append(
        try entries.add(
          Array(text.utf8).span, key: Array("\(number)".utf8).span, revision: UInt64(number), &budget))
    }
    #expect(matches == [false, true, true, false])
    #expect(entries.keptByteCount > 0)
    let groups = entries.result()
    #expect(groups == expected.result())
    #expect(groups.map(\.values) == [[5, "1", 1], [1, "2", 2]])
  }
}
