import Documents
import Testing

@Suite struct MergePatchTests {
  /// The table in appendix A of RFC 7396: original, patch and result.
  static let appendix = [
    (#"{"a":"b"}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
    (#"{"a":"b"}"#, #"{"b":"c"}"#, #"{"a":"b","b":"c"}"#),
    (#"{"a":"b"}"#, #"{"a":null}"#, #"{}"#),
    (#"{"a":"b","b":"c"}"#, #"{"a":null}"#, #"{"b":"c"}"#),
    (#"{"a":["b"]}"#, #"{"a":"c"}"#, #"{"a":"c"}"#),
    (#"{"a":"c"}"#, #"{"a":["b"]}"#, #"{"a":["b"]}"#),
    (#"{"a":{"b":"c"}}"#, #"{"a":{"b":"d","c":null}}"#, #"{"a":{"b":"d"}}"#),
    (#"{"a":[{"b":"c"}]}"#, #"{"a":[1]}"#, #"{"a":[1]}"#),
    (#"["a","b"]"#, #"["c","d"]"#, #"["c","d"]"#),
    (#"{"a":"b"}"#, #"["c"]"#, #"["c"]"#),
    (#"{"a":"foo"}"#, #"null"#, #"null"#),
    (#"{"a":"foo"}"#, #""bar""#, #""bar""#),
    (#"{"e":null}"#, #"{"a":1}"#, #"{"e":null,"a":1}"#),
    (#"[1,2]"#, #"{"a":"b","c":null}"#, #"{"a":"b"}"#),
    (#"{}"#, #"{"a":{"bb":{"ccc":null}}}"#, #"{"a":{"bb":{}}}"#),
  ]

  /// Documents and patches are objects, so that the others of the table are tried as members.
  @Test(arguments: appendix) func `the cases of RFC 7396 hold in a member`(
    original: String, patch: String, result: String
  ) throws {
    let expected = result == "null" ? "{}" : #"{"m":\#(result)}"#
    #expect(try updated(#"{"m":\#(original)}"#, #"{"m":\#(patch)}"#) == expected)
  }

  @Test(arguments: appendix) func `the cases of RFC 7396 hold for whole documents`(
    original: String, patch: String, result: String
  ) throws {
    guard patch.hasPrefix("{") else {
      #expect(throws: DocumentUpdateError(.notAnObject, at: "$", "an update is a JSON object")) {
        try DocumentUpdate(parsing: patch)
      }
      return
    }
    guard original.hasPrefix("{") else {
      #expect(throws: DocumentUpdateError(.notADocument, at: "$", "the document is not a JSON object")) {
        try updated(original, patch)
      }
      return
    }
    #expect(try updated(original, patch) == result)
  }

  @Test func `the example of RFC 7396 keeps all other text`() throws {
    let document = """
      {
        "title": "Goodbye!",
        "author" : {
          "givenName" : "John",
          "familyName" : "Doe"
        },
        "tags":[ "example", "sample" ],
        "content": "This will be unchanged"
      }
      """
    let patch = """
      {
        "title": "Hello!",
        "phoneNumber": "+01-123-456-7890",
        "author": {"familyName": null},
        "tags": [ "example" ]
      }
      """
    let result = """
      {
        "title": "Hello!",
        "author" : {
          "givenName" : "John"
        },
        "tags":["example"],
        "content": "This will be unchanged","phoneNumber":"+01-123-456-7890"
      }
      """
    #expect(try updated(document, patch) == result)
  }

  @Test(arguments: [
    // Removal takes one comma and the white space that belongs to the member.
    (#"{ "a": 1, "b": 2, "c": 3 }"#, #"{"a":null}"#, #"{ "b": 2, "c": 3 }"#),
    (#"{ "a": 1, "b": 2, "c": 3 }"#, #"{"b":null}"#, #"{ "a": 1, "c": 3 }"#),
    (#"{ "a": 1, "b": 2, "c": 3 }"#, #"{"c":null}"#, #"{ "a": 1, "b": 2 }"#),
    (#"{ "a": 1, "b": 2, "c": 3 }"#, #"{"a":null,"b":null}"#, #"{ "c": 3 }"#),
    (#"{ "a": 1, "b": 2, "c": 3 }"#, #"{"a":null,"c":null}"#, #"{ "b": 2 }"#),
    (#"{ "a": 1, "b": 2, "c": 3 }"#, #"{"c":null,"b":null}"#, #"{ "a": 1 }"#),
    (#"{ "a": 1, "b": 2, "c": 3 }"#, #"{"c":null,"b":null,"a":null}"#, #"{  }"#),
    (#"{ "a": 1 , "b": 2 }"#, #"{"a":null,"b":null,"c":3}"#, #"{ "c":3 }"#),
    (#"{ "a": 1 , "b": 2 }"#, #"{"b":null,"c":3}"#, #"{ "a": 1,"c":3 }"#),
    (#"{ "a": 1 , "b": 2 }"#, #"{"a":5,"b":null}"#, #"{ "a": 5 }"#),
    (#"{ "a": {"x": 1} , "b": 2 }"#, #"{"a":{"y":2},"b":null}"#, #"{ "a": {"x": 1,"y":2} }"#),
    (#"{"a":{"x":1},"b":2}"#, #"{"a":{"x":null},"b":3}"#, #"{"a":{},"b":3}"#),
    // Additions come last, in the patch's order.
    (#"{}"#, #"{"b":1,"a":2}"#, #"{"b":1,"a":2}"#),
    ("{ \n }", #"{"a":1}"#, "{\"a\":1 \n }"),
    ("\n{\"a\":1\t}\r\n", #"{"b":{"c":[]}}"#, "\n{\"a\":1,\"b\":{\"c\":[]}\t}\r\n"),
    // Other text stays as it is.
    (#"{"n": 1.50e+2, "s":"\u00e9\/", "a":0}"#, #"{"a":1.0}"#, #"{"n": 1.50e+2, "s":"\u00e9\/", "a":1.0}"#),
    (#"{"a":1,"b":2}"#, #"{"c":null}"#, #"{"a":1,"b":2}"#),
    (#"{"a":{"b":1}}"#, #"{"a":{}}"#, #"{"a":{"b":1}}"#),
    (#"{"a":7}"#, #"{"a":{}}"#, #"{"a":{}}"#),
    // Nulls inside of arrays are values.
    (#"{}"#, #"{"a":[null,{"b":null}]}"#, #"{"a":[null,{"b":null}]}"#),
    // Names: empty, escaped, with dots, and two spellings of é.
    (#"{"":1,"x":2}"#, #"{"":null}"#, #"{"x":2}"#),
    (#"{"\u0061":1}"#, #"{"a":2}"#, #"{"\u0061":2}"#),
    (#"{"a":1}"#, #"{"\u0061":2}"#, #"{"a":2}"#),
    (#"{"a.b":1,"a":{"b":2}}"#, #"{"a.b":3}"#, #"{"a.b":3,"a":{"b":2}}"#),
    ("{\"e\u{301}\":1}", "{\"\u{E9}\":2}", "{\"e\u{301}\":1,\"\u{E9}\":2}"),
    (#"{"\ud83d\ude00":1}"#, #"{"😀":null}"#, #"{}"#),
    (#"{"q\"\\":1}"#, #"{"q\"\\":2,"\n":3}"#, #"{"q\"\\":2,"\n":3}"#),
    // Of equal names the last one counts; the others go.
    (#"{"a":1,"b":2,"a":3}"#, #"{"a":4}"#, #"{"b":2,"a":4}"#),
    (#"{"a":1,"a":2,"b":3}"#, #"{"a":null}"#, #"{"b":3}"#),
    (#"{"a":1,"\u0061":2}"#, #"{"a":3}"#, #"{"\u0061":3}"#),
    (#"{"a":{"b":1},"a":{"c":2}}"#, #"{"a":{"b":3}}"#, #"{"a":{"c":2,"b":3}}"#),
    (#"{"a":{"b":1,"b":2},"a":{"b":3,"b":4},"a":5}"#, #"{"a":{"b":6}}"#, #"{"a":{"b":6}}"#),
    (#"{"b":1,"b":2}"#, #"{"a":3}"#, #"{"b":1,"b":2,"a":3}"#),
    // Operators are names like any others below the top level.
    (#"{}"#, #"{"a":{"$inc":1}}"#, #"{"a":{"$inc":1}}"#),
    (#"{}"#, #"{"a":{"_id":1}}"#, #"{"a":{"_id":1}}"#),
  ])
  func `a patch changes what it names and nothing else`(document: String, patch: String, result: String) throws {
    #expect(try updated(document, patch) == result)
  }

  @Test func `the empty patch changes nothing`() throws {
    for document in ["{}", " {\t\"a\" : 1 , \"a\":[ ] }\n", #"{"a":{"b":[1,2.0,"\u0041"]},"a":null}"#] {
      #expect(try updated(document, "{}") == document)
      #expect(try updated(document, #"{"$set":{},"$unset":[]}"#) == document)
    }
  }

  @Test func `patches of hundreds of members find each`() throws {
    // Names of all sizes, and many of one size.
    let names = (0..<300).map { $0 % 3 == 0 ? String(repeating: "n", count: $0 + 1) : "name\($0)" }
    let document = "{" + names.map { #""\#($0)": 0"# }.joined(separator: ", ") + #", "other": 0}"#
    let patch = "{" + names.shuffled().map { #""\#($0)":1"# }.joined(separator: ",") + "}"
    let result = "{" + names.map { #""\#($0)": 1"# }.joined(separator: ", ") + #", "other": 0}"#
    #expect(try updated(document, patch) == result)
  }
}

/// The text of a document after an update, both given as text.
func updated(
  _ document: String, _ update: String, limits: JSONLimits = JSONLimits()
) throws(DocumentUpdateError) -> String {
  String(
    decoding: try DocumentUpdate(parsing: update).apply(to: Array(document.utf8).span, limits: limits), as: UTF8.self)
}
