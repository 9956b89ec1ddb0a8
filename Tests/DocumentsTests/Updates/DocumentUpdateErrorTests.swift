import Documents
import Testing

@Suite struct DocumentUpdateErrorTests {
  typealias Code = DocumentUpdateError.Code

  /// Updates, and the code and path of their errors.
  static let badUpdates: [(update: String, code: Code, path: String)] = [
    ("", .notJSON, "$"),
    ("{", .notJSON, "$"),
    (#"{"a":1}}"#, .notJSON, "$"),
    (#"{"a":"\ud800"}"#, .notJSON, "$"),
    ("[]", .notAnObject, "$"),
    ("1", .notAnObject, "$"),
    (#"{"$set":{"a":1},"b":2}"#, .mixedForms, "$.b"),
    (#"{"b":2,"$set":{"a":1}}"#, .mixedForms, "$.b"),
    (#"{"":2,"$foo":1}"#, .mixedForms, "$."),
    (#"{"$rename":{"a":"b"}}"#, .unknownOperator, "$.$rename"),
    (#"{"$increment":{"a":1}}"#, .unknownOperator, "$.$increment"),
    (#"{"$":1}"#, .unknownOperator, "$.$"),
    (#"{"$set":1}"#, .badOperand, "$.$set"),
    (#"{"$set":["a"]}"#, .badOperand, "$.$set"),
    (#"{"$unset":"a"}"#, .badOperand, "$.$unset"),
    (#"{"$unset":["a",1]}"#, .badOperand, "$.$unset[1]"),
    (#"{"$inc":{"a":"1"}}"#, .badOperand, "$.$inc.a"),
    (#"{"$inc":{"a":null}}"#, .badOperand, "$.$inc.a"),
    (#"{"$inc":{"a":1e999}}"#, .badOperand, "$.$inc.a"),
    (#"{"$push":{"a":{"$each":1}}}"#, .badOperand, "$.$push.a"),
    (#"{"$push":{"a":{"$each":[1],"$slice":3}}}"#, .badOperand, "$.$push.a"),
    (#"{"$push":{"a":{"$each":[1],"x":3}}}"#, .badOperand, "$.$push.a"),
    (#"{"$push":{"a":{"$x":1}}}"#, .badOperand, "$.$push.a"),
    (#"{"$set":{"":1}}"#, .badPath, "$.$set."),
    (#"{"$set":{"a..b":1}}"#, .badPath, "$.$set.a..b"),
    (#"{"$unset":["a."]}"#, .badPath, "$.$unset[0]"),
    (#"{"$set":{"$a":1}}"#, .badPath, "$.$set.$a"),
    (#"{"$set":{"a.$.b":1}}"#, .badPath, "$.$set.a.$.b"),
    (#"{"$push":{"a.$[]":1}}"#, .badPath, "$.$push.a.$[]"),
    (
      #"{"$set":{"\#(Array(repeating: "a", count: 33).joined(separator: "."))":1}}"#, .badPath,
      "$.$set.\(Array(repeating: "a", count: 33).joined(separator: "."))"
    ),
    (#"{"_id":"x"}"#, .metadata, "$._id"),
    (#"{"a":1,"_rev":null}"#, .metadata, "$._rev"),
    (#"{"$set":{"_id":"x"}}"#, .metadata, "$.$set._id"),
    (#"{"$unset":["_rev"]}"#, .metadata, "$.$unset[0]"),
    (#"{"$inc":{"_rev.n":1}}"#, .metadata, "$.$inc._rev.n"),
    (#"{"$push":{"\\_id":1}}"#, .metadata, #"$.$push.\_id"#),
    (#"{"$set":{"a":1},"$unset":["a"]}"#, .conflict, "$.$unset[0]"),
    (#"{"$set":{"a":1,"\\a":1}}"#, .conflict, #"$.$set.\a"#),
    (#"{"$set":{"a.b":1},"$inc":{"a":1}}"#, .conflict, "$.$inc.a"),
    (#"{"$set":{"a":1,"a.b.c":1}}"#, .conflict, "$.$set.a.b.c"),
    (#"{"$unset":["a.b","a.b"]}"#, .conflict, "$.$unset[1]"),
    (#"{"a":"\#(String(repeating: "x", count: 1 << 20))"}"#, .tooLarge, "$"),
    ("{" + (0...10_000).map { #""\#($0)":1"# }.joined(separator: ",") + "}", .tooLarge, "$"),
    (#"{"$unset":["# + (0...10_000).map { #""f\#($0)""# }.joined(separator: ",") + "]}", .tooLarge, "$"),
    (#"{"a":"# + String(repeating: "[", count: 512) + String(repeating: "]", count: 512) + "}", .tooDeep, "$"),
    (
      #"{"$set":{"a.b.c":"# + String(repeating: "[", count: 510) + String(repeating: "]", count: 510) + "}}", .tooDeep,
      "$.$set.a.b.c"
    ),
    (
      #"{"$push":{"a.b":"# + String(repeating: "[", count: 510) + String(repeating: "]", count: 510) + "}}", .tooDeep,
      "$.$push.a.b"
    ),
  ]

  /// Documents and updates that can't be applied to them, and the code and path of the errors.
  static let impossible: [(document: String, update: String, code: Code, path: String, reason: String)] = [
    ("", "{}", .notADocument, "$", "the document can't be read: expected a value at line 1, column 1 (byte 0)"),
    ("[]", "{}", .notADocument, "$", "the document is not a JSON object"),
    (
      "{} x", "{}", .notADocument, "$",
      "the document can't be read: expected the end of the text at line 1, column 4 (byte 3)"
    ),
    (
      #"{"a":{"b":01}}"#, #"{"a":{"b":1}}"#, .notADocument, "$",
      "the document can't be read: expected a comma or } at line 1, column 12 (byte 11)"
    ),
    (#"{"a":"x"}"#, #"{"$set":{"a.b":1}}"#, .notAContainer, "$.$set.a.b", "a.b can't be set: a is a string"),
    (#"{"a":null}"#, #"{"$inc":{"a.b.c":1}}"#, .notAContainer, "$.$inc.a.b.c", "a.b.c can't be incremented: a is null"),
    (
      #"{"a":[true]}"#, #"{"$unset":["a.0.x"],"$push":{"a.0.y":1}}"#, .notAContainer, "$.$push.a.0.y",
      "a.0.y can't be pushed to: a.0 is a Boolean value"
    ),
    (
      #"{"a.b":1}"#, #"{"$set":{"a\\.b.c":1}}"#, .notAContainer, #"$.$set.a\.b.c"#,
      #"a\.b.c can't be set: a\.b is a number"#
    ),
    (
      #"{"a":[{"b":1}]}"#, #"{"$set":{"a.b":1}}"#, .notAnIndex, "$.$set.a.b",
      "a.b can't be set: a is an array, whose elements have indexes from 0 on"
    ),
    (
      #"{"a":[{"b":1}]}"#, #"{"$unset":["a.b"]}"#, .notAnIndex, "$.$unset.a.b",
      "a.b can't be removed: a is an array, whose elements have indexes from 0 on"
    ),
    (
      #"{"a":[]}"#, #"{"$set":{"a.00":1}}"#, .notAnIndex, "$.$set.a.00",
      "a.00 can't be set: a is an array, whose elements have indexes from 0 on"
    ),
    (
      #"{"a":[]}"#, #"{"$set":{"a.99999999999999999999":1}}"#, .indexTooLarge, "$.$set.a.99999999999999999999",
      "a.99999999999999999999 can't be set: a has 0 elements, so 0 is the next index"
    ),
    (
      #"{"a":[1,2]}"#, #"{"$set":{"a.3":1}}"#, .indexTooLarge, "$.$set.a.3",
      "a.3 can't be set: a has 2 elements, so 2 is the next index"
    ),
    (
      #"{"a":[1,2]}"#, #"{"$set":{"a.2":1,"a.4.x":1}}"#, .indexTooLarge, "$.$set.a.4.x",
      "a.4.x can't be set: a has 3 elements, so 3 is the next index"
    ),
    (#"{"a":"1"}"#, #"{"$inc":{"a":1}}"#, .notANumber, "$.$inc.a", "a can't be incremented: a is a string"),
    (#"{"a":null}"#, #"{"$inc":{"a":1}}"#, .notANumber, "$.$inc.a", "a can't be incremented: a is null"),
    (#"{"a":{}}"#, #"{"$push":{"a":1}}"#, .notAnArray, "$.$push.a", "a can't be pushed to: a is an object"),
    (#"{"a":null}"#, #"{"$push":{"a":{"$each":[]}}}"#, .notAnArray, "$.$push.a", "a can't be pushed to: a is null"),
    (
      #"{"a":1.7e308}"#, #"{"$inc":{"a":1.7e308}}"#, .numberTooLarge, "$.$inc.a",
      "a can't be incremented: the sum is beyond the range of numbers"
    ),
    (
      #"{"a":-1e400}"#, #"{"$inc":{"a":1}}"#, .numberTooLarge, "$.$inc.a",
      "a can't be incremented: the sum is beyond the range of numbers"
    ),
  ]

  @Test func `bad updates are errors that say where`() {
    for (update, code, path) in Self.badUpdates {
      let error = #expect(throws: DocumentUpdateError.self, "\(update.prefix(100))") {
        try DocumentUpdate(parsing: update)
      }
      #expect(error?.code == code, "\(update.prefix(100))")
      #expect(error?.path == path, "\(update.prefix(100))")
    }
  }

  @Test func `updates that a document doesn't allow are errors that say where and why`() {
    for (document, update, code, path, reason) in Self.impossible {
      let error = #expect(throws: DocumentUpdateError.self, "\(document) \(update)") { try updated(document, update) }
      #expect(error == DocumentUpdateError(code, at: path, reason))
      #expect(error?.description == "\(reason) (at \(path))")
    }
  }

  @Test func `every kind of error has a case`() {
    var seen = Set(Self.badUpdates.map(\.code)).union(Self.impossible.map(\.code))
    // These depend on the limits; see the tests of limits.
    seen.formUnion([.resultTooDeep, .resultTooLarge])
    #expect(seen == Set(Code.allCases))
  }

  @Test func `paths of changes made in Swift are those in JSON`() {
    let cases: [(DocumentUpdate.Change, Code, String)] = [
      (.set("a..b", to: 1), .badPath, "$.$set.a..b"),
      (.unset(""), .badPath, "$.$unset."),
      (.increment("n", by: "1"), .badOperand, "$.$inc.n"),
      (.increment("n", by: .double(.infinity)), .badOperand, "$.$inc.n"),
      (.increment("n", by: .double(.nan)), .badOperand, "$.$inc.n"),
      (.set("n", to: [["x": .double(.nan)]]), .badOperand, "$.$set.n"),
      (.push(each: [1, .double(.nan)], to: "n"), .badOperand, "$.$push.n"),
      (.unset("_id"), .metadata, "$.$unset._id"),
      (.set("a", to: nested(512)), .tooDeep, "$.$set.a"),
      (.push(nested(511), to: "a"), .tooDeep, "$.$push.a"),
      (.push(each: [nested(509), 1], to: "a"), .tooDeep, "$.$push.a"),
      (.set("a", to: .string(String(repeating: "x", count: 1 << 20))), .tooLarge, "$"),
    ]
    for (change, code, path) in cases {
      let error = #expect(throws: DocumentUpdateError.self) { try DocumentUpdate(changes: [change]) }
      #expect(error?.code == code)
      #expect(error?.path == path)
    }
    let patch = #expect(throws: DocumentUpdateError.self) { try DocumentUpdate(["a": ["b": .double(.nan)]]) }
    #expect(patch?.code == .badOperand)
    #expect(patch?.path == "$.a.b")
  }
}

/// Arrays within each other.
func nested(_ depth: Int) -> JSONValue {
  var value: JSONValue = 0
  for _ in 0..<depth { value = .array([value]) }
  return value
}
