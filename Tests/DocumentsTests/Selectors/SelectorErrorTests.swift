import Documents
import Testing

@Suite struct SelectorErrorTests {
  struct Case: CustomTestStringConvertible, Sendable {
    let selector: String
    let code: SelectorError.Code
    let path: String
    let reason: String

    init(_ selector: String, _ code: SelectorError.Code, at path: String, _ reason: String) {
      self.selector = selector
      self.code = code
      self.path = path
      self.reason = reason
    }

    var testDescription: String { selector }
  }

  @Test(arguments: [
    // Not JSON.
    Case("", .notJSON, at: "$", "a value at line 1, column 1"),
    Case("{\n  \"a\" 1}", .notJSON, at: "$", "a colon at line 2, column 7"),
    Case(#"{"a": 1} x"#, .notJSON, at: "$", "line 1, column 10"),
    Case("{'a': 1}", .notJSON, at: "$", "a member name in double quotes"),
    Case("{\"a\": \"\u{1}\"}", .notJSON, at: "$", "an escape in place of a control character"),
    Case(#"{"a": "\ud800"}"#, .notJSON, at: "$", "both halves of a surrogate pair"),
    // Not an object.
    Case("[]", .notAnObject, at: "$", "an object"),
    Case("null", .notAnObject, at: "$", "an object"),
    Case(#""age""#, .notAnObject, at: "$", "an object"),
    // An operator without a field, at any depth.
    Case(#"{"$gt": 3}"#, .operatorWithoutField, at: "$.$gt", #"{"FIELD": {"$gt": …}}"#),
    Case(
      #"{"$and": [{"a": 1}, {"$or": [{"$in": [1]}]}]}"#, .operatorWithoutField, at: "$.$and[1].$or[0].$in", "a field"),
    Case(#"{"$not": {"$exists": true}}"#, .operatorWithoutField, at: "$.$not.$exists", "a field"),
    // An unknown operator.
    Case(#"{"age": {"$gth": 3}}"#, .unknownOperator, at: "$.age.$gth", "no operator $gth; did you mean $gt?"),
    Case(#"{"$orr": [{"a": 1}]}"#, .unknownOperator, at: "$.$orr", "did you mean $or?"),
    Case(#"{"tags": {"$elementMatch": {"a": 1}}}"#, .unknownOperator, at: "$.tags.$elementMatch", "mean $elemMatch?"),
    Case(#"{"age": {"$mod2": [1, 2]}}"#, .unknownOperator, at: "$.age.$mod2", "did you mean $mod?"),
    Case(#"{"age": {"$frobnicate": 3}}"#, .unknownOperator, at: "$.age.$frobnicate", "no operator $frobnicate"),
    Case(#"{"$where": "1"}"#, .unknownOperator, at: "$.$where", "no operator $where"),
    Case(#"{"a.b": {"$": 1}}"#, .unknownOperator, at: #"$["a.b"].$"#, "no operator $"),
    // A member twice.
    Case(#"{"a": 1, "b": {"c": 1}, "a": 2}"#, .notJSON, at: "$", "each member name only once at line 1, column 25"),
    Case(#"{"$or": [{"a": 1}], "$or": [{"a": 2}]}"#, .notJSON, at: "$", "each member name only once"),
    Case(#"{"a": {"$in": [{"x": 1, "\u0078": 2}]}}"#, .notJSON, at: "$", "each member name only once"),
    // An object that is meant to be something else than a value.
    Case(
      #"{"a": {"$lt": {"$date": "2020-01-01"}}}"#, .badOperand, at: "$.a.$lt",
      "write the value as the documents have it"),
    Case(#"{"a": {"$ne": {"$numberInt": "10"}}}"#, .badOperand, at: "$.a.$ne", "$numberInt is none"),
    Case(
      #"{"a": {"$lt": {"$add": [1, 2]}}}"#, .badOperand, at: "$.a.$lt",
      #"{"$expr": {"$lt": [{"$field": PATH}, {"$add": …}]}}"#),
    Case(
      #"{"a": {"$all": [{"$elemMatch": {"b": 1}}]}}"#, .badOperand, at: "$.a.$all[0]",
      #"{"$and": [{FIELD: {"$elemMatch""#),
    Case(#"{"a": {"$in": [1, {"$regex": "x"}]}}"#, .badOperand, at: "$.a.$in[1]", #"{"$or": [{FIELD: {"$regex""#),
    Case(#"{"a": {"$nin": [{"$gt": 1}]}}"#, .badOperand, at: "$.a.$nin[0]", #"{"$nor": ["#),
    Case(#"{"a": {"$eq": {"$gt": 1}}}"#, .badOperand, at: "$.a.$eq", "without $eq"),
    Case(#"{"a": {"$gte": {"b": [{"$oid": "5"}]}}}"#, .badOperand, at: "$.a.$gte", "$oid is none"),
    Case(#"{"a": [{"$ref": "x"}]}"#, .badOperand, at: "$.a", #"{"$literal": {…}}"#),
    Case(#"{"a": {"$literal": 1}}"#, .unknownOperator, at: "$.a.$literal", #"{"$eq": {"$literal": VALUE}}"#),
    Case(#"{"a": {"$date": "x"}}"#, .unknownOperator, at: "$.a.$date", "as the documents have it"),
    // A wrong operand.
    Case(#"{"age": {"$in": "x"}}"#, .badOperand, at: "$.age.$in", "$in takes an array"),
    Case(#"{"age": {"$nin": 5}}"#, .badOperand, at: "$.age.$nin", "$nin takes an array"),
    Case(#"{"tags": {"$all": {"a": 1}}}"#, .badOperand, at: "$.tags.$all", "$all takes an array"),
    Case(#"{"age": {"$exists": 1}}"#, .badOperand, at: "$.age.$exists", "true or false"),
    Case(#"{"age": {"$exists": "yes"}}"#, .badOperand, at: "$.age.$exists", "true or false"),
    Case(#"{"age": {"$type": "int"}}"#, .badOperand, at: "$.age.$type", #""null", "boolean", "number""#),
    Case(#"{"age": {"$type": 5}}"#, .badOperand, at: "$.age.$type", "one of"),
    Case(#"{"tags": {"$size": -1}}"#, .badOperand, at: "$.tags.$size", "a non-negative integer"),
    Case(#"{"tags": {"$size": 1.5}}"#, .badOperand, at: "$.tags.$size", "a non-negative integer"),
    Case(#"{"tags": {"$size": 1e30}}"#, .badOperand, at: "$.tags.$size", "a non-negative integer"),
    Case(#"{"n": {"$mod": [0, 1]}}"#, .badOperand, at: "$.n.$mod", "not 0"),
    Case(#"{"n": {"$mod": [0.5, 1]}}"#, .badOperand, at: "$.n.$mod", "not 0"),
    Case(#"{"n": {"$mod": [2]}}"#, .badOperand, at: "$.n.$mod", "two numbers"),
    Case(#"{"n": {"$mod": [2, "1"]}}"#, .badOperand, at: "$.n.$mod", "two numbers"),
    Case(#"{"n": {"$mod": [1e300, 1]}}"#, .badOperand, at: "$.n.$mod", "64-bit integers"),
    Case(#"{"s": {"$beginsWith": 5}}"#, .badOperand, at: "$.s.$beginsWith", "a string"),
    Case(#"{"s": {"$endsWith": null}}"#, .badOperand, at: "$.s.$endsWith", "a string"),
    Case(#"{"s": {"$contains": ["a"]}}"#, .badOperand, at: "$.s.$contains", "a string"),
    Case(#"{"s": {"$like": 5}}"#, .badOperand, at: "$.s.$like", "a string"),
    Case(#"{"s": {"$like": "a\\"}}"#, .badOperand, at: "$.s.$like", "a single backslash"),
    Case(#"{"s": {"$regex": 5}}"#, .badOperand, at: "$.s.$regex", "a string"),
    Case(#"{"$text": 5}"#, .badOperand, at: "$.$text", "a string"),
    Case(#"{"$text": {"$search": 5}}"#, .badOperand, at: "$.$text", "$search"),
    Case(#"{"$text": {"$find": "x"}}"#, .badOperand, at: "$.$text", "$search"),
    // A bad regular expression, found when the selector is read.
    Case(#"{"s": {"$regex": "ab("}}"#, .badRegularExpression, at: "$.s.$regex", "at offset"),
    Case(#"{"s": {"$regex": "(a)\\1"}}"#, .badRegularExpression, at: "$.s.$regex", "at offset 3"),
    Case(#"{"s": {"$regex": "a(?=b)"}}"#, .badRegularExpression, at: "$.s.$regex", "at offset 1"),
    // Empty clauses.
    Case(#"{"$and": []}"#, .emptyClause, at: "$.$and", "an array of at least one selector"),
    Case(#"{"$or": "x"}"#, .emptyClause, at: "$.$or", "an array"),
    Case(#"{"$nor": {"a": 1}}"#, .emptyClause, at: "$.$nor", "an array"),
    Case(#"{"$or": [{"a": 1}, {}]}"#, .emptyClause, at: "$.$or[1]", "at least one condition"),
    Case(#"{"$and": ["x"]}"#, .emptyClause, at: "$.$and[0]", "at least one condition"),
    Case(#"{"age": {"$not": {}}}"#, .emptyClause, at: "$.age.$not", "at least one condition"),
    Case(#"{"age": {"$not": 5}}"#, .emptyClause, at: "$.age.$not", "at least one condition"),
    Case(#"{"$not": [{"a": 1}]}"#, .emptyClause, at: "$.$not", "at least one condition"),
    Case(#"{"tags": {"$elemMatch": {}}}"#, .emptyClause, at: "$.tags.$elemMatch", "at least one condition"),
    Case(#"{"tags": {"$allMatch": "x"}}"#, .emptyClause, at: "$.tags.$allMatch", "at least one condition"),
    Case(#"{"tags": {"$keyMapMatch": 5}}"#, .emptyClause, at: "$.tags.$keyMapMatch", "at least one condition"),
    // Bad paths.
    Case(#"{"": 1}"#, .badPath, at: #"$[""]"#, "can't have empty names"),
    Case(#"{"a..b": {"$gt": 1}}"#, .badPath, at: #"$["a..b"]"#, "can't have empty names"),
    Case(#"{"a": {"b.": 1}}"#, .badPath, at: #"$.a["b."]"#, "can't have empty names"),
    Case(
      #"{"$expr": {"$eq": [{"$field": "a..b"}, 1]}}"#, .badPath, at: "$.$expr.$eq[0].$field", "can't have empty names"),
    // $text in a place where it can't be.
    Case(#"{"species": {"$text": "cat"}}"#, .textNotAllowed, at: "$.species.$text", "under a field"),
    Case(
      #"{"pets": {"$elemMatch": {"$text": "cat"}}}"#, .textNotAllowed, at: "$.pets.$elemMatch.$text", "under a field"),
    Case(#"{"$or": [{"$text": "a"}, {"$text": "b"}]}"#, .textNotAllowed, at: "$.$or[1].$text", "only one $text"),
    // Bad options.
    Case(#"{"s": {"$options": "c"}}"#, .badOptions, at: "$.s.$options", "a string operator beside it"),
    Case(#"{"s": {"$gt": "a", "$options": "c"}}"#, .badOptions, at: "$.s.$options", "a string operator beside it"),
    Case(#"{"$options": "c"}"#, .badOptions, at: "$.$options", "a string operator beside it"),
    Case(#"{"s": {"$eq": "a", "$options": "x"}}"#, .badOptions, at: "$.s.$options", #""cd" for both"#),
    Case(#"{"s": {"$eq": "a", "$options": "cc"}}"#, .badOptions, at: "$.s.$options", #""cd" for both"#),
    Case(#"{"s": {"$eq": "a", "$options": 1}}"#, .badOptions, at: "$.s.$options", #""cd" for both"#),
    // A malformed $expr.
    Case(#"{"a": {"$expr": {"$eq": [1, 1]}}}"#, .badExpression, at: "$.a.$expr", "under a field"),
    Case(#"{"$expr": [1, 1]}"#, .badExpression, at: "$.$expr", "one comparison"),
    Case(#"{"$expr": {"$in": [1, [1]]}}"#, .badExpression, at: "$.$expr.$in", "$eq, $ne, $lt"),
    Case(#"{"$expr": {"$eq": [1]}}"#, .badExpression, at: "$.$expr.$eq", "two operands"),
    Case(#"{"$expr": {"$eq": [[1], 1]}}"#, .badExpression, at: "$.$expr.$eq[0]", "$literal"),
    Case(#"{"$expr": {"$eq": [{"$sun": "a"}, 1]}}"#, .badExpression, at: "$.$expr.$eq[0]", "did you mean $sum?"),
    Case(#"{"$expr": {"$eq": [1, {}]}}"#, .badExpression, at: "$.$expr.$eq[1]", "one member"),
    Case(
      #"{"$expr": {"$eq": [{"$field": 1}, 1]}}"#, .badExpression, at: "$.$expr.$eq[0].$field", "the path of a field"),
    Case(#"{"$expr": {"$eq": [{"$add": [1, 2, 3]}, 6]}}"#, .badExpression, at: "$.$expr.$eq[0].$add", "two operands"),
    Case(
      #"{"$expr": {"$eq": [{"$count": {"$field": "a"}}, 1]}}"#, .badExpression, at: "$.$expr.$eq[0].$count", "$where"),
    Case(
      #"{"$expr": {"$eq": [{"$count": {"$field": "a", "$where": {}}}, 1]}}"#, .emptyClause,
      at: "$.$expr.$eq[0].$count.$where", "at least one condition"),
  ])
  func `bad input is an error that names code, place and reason`(_ test: Case) {
    let error = #expect(throws: SelectorError.self) { try Selector(parsing: test.selector) }
    #expect(error?.code == test.code)
    #expect(error?.path == test.path)
    #expect(error?.reason.contains(test.reason) == true, "\(error?.reason ?? "no error")")
  }

  @Test func `a name that isn't a plain identifier is quoted`() {
    func path(_ name: String) -> String? {
      let selector: JSONValue = .object([name: ["$foo": 1]])
      return #expect(throws: SelectorError.self) { try Selector(selector) }?.path
    }
    #expect(path("a_1") == "$.a_1.$foo")
    #expect(path("1a") == #"$["1a"].$foo"#)
    #expect(path("a b") == #"$["a b"].$foo"#)
    #expect(path("é") == #"$["é"].$foo"#)
    #expect(path(#"q"q"#) == #"$["q\"q"].$foo"#)
    #expect(path(String(repeating: "a", count: 100)) == "$.\(String(repeating: "a", count: 64))….$foo")
  }

  @Test func `a description has reason and place`() {
    let error = SelectorError(.badOperand, at: "$.age.$in", "$in takes an array")
    #expect("\(error)" == "$in takes an array (at $.age.$in)")
  }

  @Test func `the codes of selector errors are stable`() {
    #expect(
      SelectorError.Code.allCases.map(\.rawValue) == [
        "notJSON", "notAnObject", "operatorWithoutField", "unknownOperator", "badOperand", "emptyClause", "badPath",
        "badSort", "badFields", "badSkipOrLimit", "tooLarge", "tooDeep", "textNotAllowed", "noTextIndex", "badOptions",
        "badRegularExpression", "badExpression", "badBookmark", "badIndex", "badAggregation",
      ])
  }
}
