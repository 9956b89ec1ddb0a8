import Documents
import Testing

@Suite struct DocumentIndexTests {
  // MARK: JSON

  @Test(arguments: [
    #"{"name":"byAge","fields":["name",{"age":"desc"}],"where":{"pet":{"$gt":"cat"}}}"#,
    #"{"name":"x","fields":["_id"]}"#,
    #"{"name":"é 1","fields":[{"a\\.b.c":"desc"},"\\$z"]}"#,
  ])
  func `a definition is read from its JSON and written again`(_ text: String) throws {
    let index = try DocumentIndex(parsing: text)
    #expect(index.description == text)
    #expect(try DocumentIndex(json: index.json) == index)
  }

  @Test func `name and selector of an index are optional, and {} is like no selector`() throws {
    let index = try DocumentIndex(parsing: #"{"fields": [{"age": "ASC"}], "where": {}}"#)
    #expect(try index == DocumentIndex(["age"], name: "age"))
    #expect(index.selector == nil)
    #expect(try DocumentIndex(["age"], where: .all) == index)
  }

  @Test func `an index written as a literal has paths and descending fields`() throws {
    let index = try DocumentIndex(["name", .descending("age")], where: .field("age", .exists()))
    #expect(
      try index == DocumentIndex(parsing: #"{"fields":["name",{"age":"desc"}],"where":{"age":{"$exists":true}}}"#))
  }

  @Test func `definitions differ in name, fields, directions and selectors`() throws {
    let indexes = [
      try DocumentIndex(["a", "b"], name: "x"), try DocumentIndex(["a", "b"], name: "y"),
      try DocumentIndex(["b", "a"], name: "x"), try DocumentIndex(["a", .descending("b")], name: "x"),
      try DocumentIndex(["a", "b"], where: .field("c", .equal(1)), name: "x"),
      try DocumentIndex(["a"], name: "\u{E9}"), try DocumentIndex(["a"], name: "e\u{301}"),
    ]
    #expect(Set(indexes).count == indexes.count)
  }

  // MARK: Names

  @Test func `the default name says what the index is, and does not change`() throws {
    let names = [
      #"{"fields":["a"]}"#: "a",
      #"{"fields":["a",{"b.c":"desc"}]}"#: "a,-b.c",
      #"{"fields":["-a","b,c","d?"]}"#: #"\-a,b\,c,d\?"#,
      #"{"fields":["a"],"where":{"b":1}}"#: "a?10febfa8",
      #"{"fields":["a"],"where":{"b":2}}"#: "a?10e3b433",
      #"{"fields":["a\u0007"]}"#: "a#bddf1136",
    ]
    for (text, name) in names { #expect(try DocumentIndex(parsing: text).name == name, "\(text)") }
  }

  @Test func `a default name that would be too long is cut, and differs from others`() throws {
    let paths = (0..<2).map { last in (0..<32).map { $0 < 31 ? "ééé\($0)" : "\(last)" } }
    let names = try paths.map { try DocumentIndex($0).name }
    #expect(names[0] != names[1])
    for name in names {
      #expect((120...128).contains(name.utf8.count))
      #expect(name.hasPrefix("ééé0,ééé1"))
    }
  }

  // MARK: Errors

  private struct Mistake: CustomTestStringConvertible, Sendable {
    let json: String
    let code: DocumentIndexError.Code
    let description: String

    init(_ json: String, _ code: DocumentIndexError.Code, _ description: String) {
      self.json = json
      self.code = code
      self.description = description
    }

    var testDescription: String { String(json.prefix(60)) }
  }

  private static let mistakes: [Mistake] = [
    Mistake(
      "[", .badDefinition, "the definition of an index is JSON: expected a value at line 1, column 2 (byte 1) (at $)"),
    Mistake("[]", .badDefinition, "the definition of an index is a JSON object (at $)"),
    Mistake(
      #"{"fields":["a"],"unique":true}"#, .badDefinition,
      "the definition of an index has the members name, fields and where (at $.unique)"),
    Mistake("{}", .noFields, "an index has at least one field (at $.fields)"),
    Mistake(#"{"fields":[]}"#, .noFields, "an index has at least one field (at $.fields)"),
    Mistake(
      #"{"fields":"a"}"#, .badField,
      #"the fields of an index are an array, such as ["name", {"age": "desc"}] (at $.fields)"#),
    Mistake(
      #"{"fields":["a",1]}"#, .badField,
      #"a field of an index is a path or an object such as {"age": "desc"} (at $.fields[1])"#),
    Mistake(
      #"{"fields":[{"a":"asc","b":"asc"}]}"#, .badField,
      #"a field of an index is a path or an object such as {"age": "desc"} (at $.fields[0])"#),
    Mistake(
      #"{"fields":[{"a":"up"}]}"#, .badField, #"the direction of a field is "asc" or "desc" (at $.fields[0].a)"#),
    Mistake(
      #"{"fields":["a..b"]}"#, .badField, #""a..b" is not a field's path: a name is empty (at $.fields[0])"#),
    Mistake(
      #"{"fields":["a",{"a":"desc"}]}"#, .badField, #""a" is a field of the index already (at $.fields[1])"#),
    Mistake(
      #"{"fields":["\#(String(repeating: "a", count: 4_097))"]}"#, .badField,
      "a field's path has up to 128 names and 4096 bytes (at $.fields[0])"),
    Mistake(
      #"{"fields":[\#((0..<33).map { "\"\($0)\"" }.joined(separator: ","))]}"#, .tooManyFields,
      "an index has up to 32 fields (at $.fields)"),
    Mistake(#"{"fields":["a"],"name":1}"#, .badName, "the name of an index is a string (at $.name)"),
    Mistake(
      #"{"fields":["a"],"name":""}"#, .badName,
      "the name of an index has 1 to 128 bytes and no control characters (at $.name)"),
    Mistake(
      #"{"fields":["a"],"name":"\#(String(repeating: "é", count: 65))"}"#, .badName,
      "the name of an index has 1 to 128 bytes and no control characters (at $.name)"),
    Mistake(
      #"{"fields":["a"],"name":"a\u0000"}"#, .badName,
      "the name of an index has 1 to 128 bytes and no control characters (at $.name)"),
    Mistake(
      #"{"fields":["a"],"where":{"b":{"$gth":1}}}"#, .badSelector,
      "there is no operator $gth; did you mean $gt? (at $.where.b.$gth)"),
    Mistake(
      #"{"fields":["a"],"where":{"$or":[{"b":1},{"$not":{"$text":"x"}}]}}"#, .badSelector,
      "the selector of an index can't have $text (at $.where)"),
  ]

  @Test(arguments: mistakes)
  private func `a malformed definition is an error that names the place`(_ mistake: Mistake) {
    let error = #expect(throws: DocumentIndexError.self) { try DocumentIndex(parsing: mistake.json) }
    #expect(error?.code == mistake.code)
    #expect(error?.description == mistake.description)
  }

  @Test func `a selector that was built in Swift is checked`() {
    let deep = (0..<40).reduce(Selector.field("a", .equal(1))) { inner, _ in .field("a", .elemMatch(inner)) }
    let error = #expect(throws: DocumentIndexError.self) { try DocumentIndex(["a"], where: deep) }
    #expect(error?.code == .badSelector)
    #expect(error?.path.hasPrefix("$.where.a.$elemMatch") == true)
  }

  @Test func `the error codes of indexes are stable`() {
    #expect(
      DocumentIndexError.Code.allCases.map(\.rawValue) == [
        "badDefinition", "noFields", "tooManyFields", "badField", "badName", "badSelector", "otherDefinition",
      ])
  }
}
