import Documents
import Foundation
import Larder
import LarderTesting
import Testing
import TypedQueries

/// The language of raw predicates: what it accepts, and where it refuses the rest.
@Suite struct RawPredicateTests {
  private func json(_ text: String, _ arguments: any Encodable...) throws -> String {
    try Filter<Row>(raw: text, arguments: arguments).selector.description
  }

  @Test(arguments: [
    ("a = 1", #"{"a":1}"#), ("a == 1", #"{"a":1}"#), ("1 = a", #"{"a":1}"#), ("a != 1", #"{"$not":{"a":1}}"#),
    ("a <> 1", #"{"$not":{"a":1}}"#), ("a < 1", #"{"a":{"$lt":1,"$type":"number"}}"#),
    ("1 > a", #"{"a":{"$lt":1,"$type":"number"}}"#), ("a <= 1", #"{"a":{"$lte":1,"$type":"number"}}"#),
    ("a =< 1", #"{"a":{"$lte":1,"$type":"number"}}"#), ("a > 'x'", #"{"a":{"$gt":"x","$type":"string"}}"#),
    ("a => -1.5", #"{"a":{"$gte":-1.5,"$type":"number"}}"#), ("a=1e3", #"{"a":1000.0}"#), ("a = .5", #"{"a":0.5}"#),
    ("a IN {1, 2}", #"{"a":{"$in":[1,2]}}"#), ("a in {}", #"{"a":{"$in":[]}}"#),
    ("a Between {1, 2}", #"{"a":{"$gte":1,"$lte":2,"$type":"number"}}"#),
    ("name BEGINSWITH 'x'", #"{"name":{"$beginsWith":"x"}}"#),
    ("name EndsWith[c] \"x\"", #"{"name":{"$endsWith":"x","$options":"c"}}"#),
    ("name LIKE[cd] 'x*'", #"{"name":{"$like":"x*","$options":"cd"}}"#),
    ("name MATCHES 'x+'", #"{"name":{"$regex":"\\A(?:x+)\\Z"}}"#),
    ("name =[cd] 'x'", #"{"name":{"$eq":"x","$options":"cd"}}"#),
    (#"name MATCHES 'b\\w+'"#, #"{"name":{"$regex":"\\A(?:b\\w+)\\Z"}}"#),
    (#"name = '\r\t\"\\'"#, #"{"name":"\r\t\"\\"}"#),
    ("name = 'it\\'s'", #"{"name":"it's"}"#), ("name = \"a\\n\"", #"{"name":"a\n"}"#),
    ("a = nil", #"{"$or":[{"a":{"$exists":false}},{"a":{"$type":"null"}}]}"#),
    ("a = NULL", #"{"$or":[{"a":{"$exists":false}},{"a":{"$type":"null"}}]}"#),
    ("flag = YES", #"{"flag":true}"#), ("flag", #"{"flag":true}"#), ("!flag", #"{"$not":{"flag":true}}"#),
    ("TRUEPREDICATE", "{}"), ("FALSEPREDICATE", #"{"_id":{"$in":[]}}"#), ("NOT TRUEPREDICATE", #"{"_id":{"$in":[]}}"#),
    ("a = 1 AND b = 2", #"{"a":1,"b":2}"#), ("a = 1 && b = 2", #"{"a":1,"b":2}"#),
    ("a = 1 OR b = 2 AND c = 3", #"{"$or":[{"a":1},{"b":2,"c":3}]}"#),
    ("NOT a = 1 AND b = 2", #"{"$not":{"a":1},"b":2}"#), ("NOT (a = 1 AND b = 2)", #"{"$not":{"a":1,"b":2}}"#),
    ("((a) = (1))", #"{"a":1}"#), ("a.b.c = 1", #"{"a.b.c":1}"#), ("tags[0] = 1", #"{"tags.0":1}"#),
    ("tags.0.x = 1", #"{"tags.0.x":1}"#), ("tags[FIRST] = 1", #"{"tags.0":1}"#),
    ("tags[SIZE] > 1", #"{"$expr":{"$gt":[{"$count":"tags"},1]}}"#), (#"\in = 1"#, #"{"in":1}"#),
    (#"a\.b = 1"#, #"{"a\\.b":1}"#), ("grün = 1", #"{"grün":1}"#),
    ("a + b * 2 > 3", #"{"$expr":{"$gt":[{"$add":[{"$field":"a"},{"$multiply":[{"$field":"b"},2]}]},3]}}"#),
    ("(a + b) / 2 = 3", #"{"$expr":{"$eq":[{"$divide":[{"$add":[{"$field":"a"},{"$field":"b"}]},2]},3]}}"#),
    ("a - 1 = b", #"{"$expr":{"$eq":[{"$subtract":[{"$field":"a"},1]},{"$field":"b"}]}}"#),
    ("a < b", #"{"$expr":{"$lt":[{"$field":"a"},{"$field":"b"}]}}"#),
    ("x.@avg.y = 1", #"{"$expr":{"$eq":[{"$avg":"x.y"},1]}}"#),
    ("x.y.@min < 1", #"{"$expr":{"$lt":[{"$min":"x.y"},1]}}"#),
    ("a <[c] 1", #"{"a":{"$lt":1,"$type":"number"}}"#),
    ("a BETWEEN[cdcd] {1, 2}", #"{"a":{"$gte":1,"$lte":2,"$type":"number"}}"#),
    ("-b < - -%d", #"{"$expr":{"$lt":[{"$subtract":[0,{"$field":"b"}]},9]}}"#), ("a = -(2)", #"{"a":-2}"#),
    ("a IN {-1, -2.5}", #"{"a":{"$in":[-1,-2.5]}}"#), ("subs[0].price = 1", #"{"subs.0.price":1}"#),
    ("SELF.a = 1", #"{"a":1}"#), ("a.SELF = 1", #"{"a.SELF":1}"#), (#"\SELF = 1"#, #"{"SELF":1}"#),
    (
      "tags CONTAINS name",
      #"{"$and":[{"tags":{"$type":"array"}},{"$expr":{"$eq":[{"$field":"tags"},{"$field":"name"}]}}]}"#
    ),
    ("名前 = 'é'", #"{"名前":"é"}"#), ("\\\u{201C}x\\\u{201D} = 1", "{\"\u{201C}x\u{201D}\":1}"),
    ("ANY tags = 'x'", #"{"tags":"x"}"#), ("SOME tags IN {'x'}", #"{"tags":{"$in":["x"]}}"#),
    ("ANY tags BEGINSWITH 'x'", #"{"tags":{"$beginsWith":"x"}}"#), ("NONE tags = 'x'", #"{"$not":{"tags":"x"}}"#),
    (
      "SUBQUERY(subs, $s, $s.price > 1 AND $s.label = 'x').@count > 0",
      #"{"$expr":{"$gt":[{"$count":{"$field":"subs","$where":"#
        + #"{"$and":[{"price":{"$gt":1}},{"price":{"$type":"number"}},{"label":"x"}]}}},0]}}"#
    ),
  ])
  func `a supported raw predicate has the expected selector`(_ text: String, _ selector: String) throws {
    let arguments = text.contains("%d") ? [9] : []
    #expect(try Filter<Row>(raw: text, arguments: arguments).selector.description == selector)
    if arguments.isEmpty { #expect(try Selector(predicate: text).description == selector) }
  }

  @Test(
    arguments: [
      ("", 0, "a field or a value"), ("a", nil, ""), ("a =", 3, "a field or a value"),
      ("a = 1 b", 6, "an operator or the end"),
      ("= 1", 0, "a field or a value"), ("a = 1 AND", 9, "a field or a value"),
      ("(a = 1", 6, "an operator or a closing parenthesis"),
      (#"a MATCHES 'b\w+'"#, 12, #"one of the escapes \n, \r, \t, \", \' and \\, which is a backslash,"#),
      (#"a LIKE "x\*""#, 9, #"one of the escapes \n, \r, \t, \", \' and \\, which is a backslash,"#),
      ("a = 'x", 6, "a closing quote"), ("a IN 1", 5, "a list such as {1, 2}"),
      ("a IN {1", 7, "a comma or a closing brace"),
      ("a IN {b}", 6, "a value"), ("a BETWEEN {1}", 10, "a list of two values"),
      ("a < [c] 'x'", 4, "no options: strings have one order only"),
      ("a BETWEEN [d] {'x', 'y'}", 10, "no options: strings have one order only"),
      ("name =[c] c", 6, "no options: they are for a field and a value"),
      ("name <[c] c", 6, "no options: they are for a field and a value"),
      ("tags CONTAINS[c] c", 13, "no options: they are for a field and a value"),
      ("a + 1 =[c] c", 7, "no options: they are for a field and a value"),
      ("{1, 2} > a", 0, "a single value"), ("{1} + 1 = a", 0, "a single value"), ("a = -'x'", 5, "a number"),
      ("a = -(b = 1)", 5, "a value or a field"), ("a = -%@", 5, "an argument for this place"),
      ("tags[SIZE].x > 1", 10, "an operator or the end"), ("a.@count.b > 1", 8, "an operator or the end"),
      ("a.@count[0] > 1", 8, "an operator or the end"), ("a.@sum[0] > 1", 6, "an operator or the end"),
      ("SELF = 1", 5, "a dot and a field: by itself, SELF is an element of an array"),
      ("SUBQUERY(SELF, $x, $x = 1) > 0", 9, "a field"), ("SUBQUERY(in, $x, $x = 1) > 0", 9, "a field"),
      ("a = \u{201C}x\u{201D}", 4, "a field, a value or an operator"),
      ("a\u{A0}= 1", 1, "a field, a value or an operator"), ("a = 1\u{2003}", 5, "a field, a value or an operator"),
      ("a =[x] 1", 4, "c, d or cd"), ("a =[c 1", 6, "a closing bracket"),
      ("a = #", 4, "a field, a value or an operator"),
      ("a BEGINSWITH 1", 13, "a string"), ("1 BEGINSWITH a", 0, "a field on the left"),
      ("a LIKE b", 7, "a value on the right"),
      ("FUNCTION(a, 'b') = 1", 0, "no function: only SUBQUERY and @count, @sum, @avg, @min and @max are known"),
      ("a := 1", 2, "a field, a value or an operator"),
      ("BLOCK(a) = 1", 0, "no function: only SUBQUERY and @count, @sum, @avg, @min and @max are known"),
      ("a = $x", 4, "no variable outside of a SUBQUERY"), ("a = %@", 4, "an argument for this place"),
      ("a = %x", 4, "%@ or %K"), ("tags[x] = 1", 5, "an index, FIRST or SIZE"),
      ("tags[LAST] = 1", 5, "an index, FIRST or SIZE"),
      ("a.@foo = 1", 2, "a field or one of @count, @sum, @avg, @min and @max"), ("a. = 1", 3, "a field or a function"),
      ("ANY 'x' = 1", 4, "a field on the left"), ("ANY a", 5, "a comparison operator"),
      ("1", 1, "a comparison operator"),
      ("SUBQUERY(a, $x, b = 1).@count > 0", 16, "a field of $x"),
      ("SUBQUERY(a, $x, $y = 1) > 0", 16, "$x, the variable of the SUBQUERY"),
      ("SUBQUERY(a, $x, $x.@count = 1) > 0", 18, "a field: functions are for fields of documents"),
      ("a = 12x", 6, "the end of the number"),
      ("IN = 1", 0, #"a field or a value; a field of this name is written \in"#),
      ("(a = 1) + 2 = 3", 0, "a value or a field"), ("a = (b = 1)", 4, "a value or a field"),
    ] as [(String, Int?, String)])
  func `an unsupported raw predicate is refused`(_ text: String, _ offset: Int?, _ expected: String) throws {
    do {
      _ = try Filter<Row>(raw: text).selector
      #expect(offset == nil)
    } catch let error as PredicateSyntaxError {
      #expect(error.offset == offset)
      #expect(error.expected == expected)
    }
  }

  @Test func `the nesting of a raw predicate is limited`() throws {
    _ = try json(String(repeating: "(", count: 30) + "a = 1" + String(repeating: ")", count: 30))
    let error = #expect(throws: PredicateSyntaxError.self) {
      try json(String(repeating: "NOT ", count: 5_000) + "a = 1")
    }
    #expect(error?.expected == "less nesting: up to 64 levels")
    #expect(throws: PredicateSyntaxError.self) { try json(String(repeating: "(", count: 5_000)) }
    #expect(throws: PredicateSyntaxError.self) { try json("a = " + String(repeating: "-", count: 5_000) + "1") }
  }

  @Test(arguments: [("+1", 2), ("*1", 2), ("-(1)", 2)])
  func `a chain of operations in a raw predicate is limited like a selector's nesting`(
    _ operation: String, _ length: Int
  ) throws {
    func chain(_ count: Int) throws {
      let text = "a" + String(repeating: operation, count: count) + " > 1"
      _ = try Selector(predicate: text)
    }
    try chain(30)
    for count in [31, 5_000] {
      let error = #expect(throws: PredicateSyntaxError.self) { try chain(count) }
      #expect(error?.offset == 1 + 30 * operation.utf8.count + 1)
      #expect(error?.expected == "fewer operations: up to 30 in a chain")
    }
  }

  @Test func `the number of conditions in a raw predicate is limited`() throws {
    func chain(_ count: Int) -> String { Array(repeating: "a=1", count: count).joined(separator: "||") }
    _ = try json(chain(9_999))
    let error = #expect(throws: PredicateSyntaxError.self) { try json(chain(12_000)) }
    #expect(error?.expected == "fewer conditions: up to 10000")
    #expect(throws: PredicateSyntaxError.self) {
      try json(Array(repeating: "a", count: 10_001).joined(separator: " AND "))
    }
  }

  @Test func `arguments are bound and never become text`() throws {
    #expect(try json("name = %@ AND a > %d", "x' OR 'a' = 'a", 3).contains(#""name":"x' OR 'a' = 'a""#))
    #expect(try json("%K IN %@", "subs.price", [1, 2]) == #"{"subs.price":{"$in":[1,2]}}"#)
    #expect(try json("id = %@", UUID(uuidString: "00000000-0000-0000-0000-00000000000A")).contains("0000A"))
    let text = "' OR TRUEPREDICATE OR '"
    let bound: Filter<Row> = "name = \(text) AND \(\Row.subs) IN \([1])"
    #expect(try bound.selector.description == #"{"name":"' OR TRUEPREDICATE OR '","subs":{"$in":[1]}}"#)
    #expect(throws: PredicateSyntaxError(at: 5, "1 more %@ for the arguments")) { try json("a = 1", 2) }
    let mixed: Filter<Row> = "a = \(1) AND b = %@"
    #expect(throws: PredicateSyntaxError(at: 15, "an interpolated value")) { try mixed.selector }
    #expect(throws: PredicateSyntaxError(at: 0, "the path of a field as its argument")) { try json("%K = 1", 2) }
    #expect(try json("a = -%@", Int.min) == #"{"a":9.223372036854776e+18}"#)
    let whole: Filter<Row> = "\(\Row.self) = 1"
    #expect(throws: PredicateSyntaxError(at: 0, "a field, and not a whole document")) { try whole.selector }
    let tag: Filter<String> = "SELF BEGINSWITH 'x' AND \(\String.self) != 'xy'"
    #expect(try tag.matches(in: ["x"]) && !tag.matches(in: ["xy", "y"]))
  }

  @Test func `a request with a syntax error is refused before anything is sent`() async throws {
    // The server would say that there is no such store.
    let server = try TestServer.start()
    let store = server.client.store("none")
    await #expect(throws: LarderError.self) { try await store.fetch(Row.all.where(raw: "a = 1")) }
    await #expect(throws: PredicateSyntaxError(at: 3, "a field or a value")) {
      try await store.fetch(Row.all.where(raw: "a ="))
    }
  }

  @Test func `contains finds parts of strings and elements of arrays, as in does`() throws {
    let documents = [
      #"{"x":"abc"}"#, #"{"x":["abc"]}"#, #"{"x":["b","abc"]}"#, #"{"x":5}"#, #"{"x":[5]}"#, #"{"x":null}"#, "{}",
    ].map { Document($0) }
    func matches(_ text: String) throws -> [Bool] {
      let filter = Filter<Row>(raw: text)
      return try documents.map { try filter.matches($0) }
    }
    #expect(try matches("x CONTAINS 'b'") == [true, false, true, false, false, false, false])
    #expect(try matches("'b' IN x") == matches("x CONTAINS 'b'"))
    #expect(try matches("x CONTAINS 5") == [false, false, false, false, true, false, false])
  }

  @Test func `between two fields, contains is about elements`() throws {
    let documents = [
      #"{"x":["a","b"],"y":"b"}"#, #"{"x":"ab","y":"b"}"#, #"{"x":"b","y":"b"}"#, #"{"x":["a"],"y":"b"}"#,
    ]
    for text in ["x CONTAINS y", "y IN x"] {
      let filter = Filter<Row>(raw: text)
      #expect(try documents.map { try filter.matches(Document($0)) } == [true, false, false, false])
    }
  }
}

extension Filter<String> {
  /// Returns whether some string matches.
  fileprivate func matches(in strings: [String]) throws -> Bool {
    var row = Row(a: 1)
    row.tags = strings
    return try Query.any(\Row.tags) { self }.matches(row)
  }
}
