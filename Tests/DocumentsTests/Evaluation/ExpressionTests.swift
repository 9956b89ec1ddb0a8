import Documents
import Testing

@Suite struct ExpressionTests {
  private func matches(_ selector: String, _ document: String) throws -> Bool {
    try CompiledSelector(Selector(parsing: selector)).matches(Document(document))
  }

  @Test(
    arguments: [
      #"{"$subtract": ["a", "a"]}"#, #"{"$multiply": ["a", 0]}"#, #"{"$divide": ["a", "a"]}"#, #"{"$sum": "b"}"#,
      #"{"$avg": "b"}"#,
    ], ["$eq", "$lt", "$lte", "$gt", "$gte"])
  func `an expression whose result isn't a number matches no comparison`(operand: String, comparison: String) throws {
    let operand = operand.replacing(#""a""#, with: #"{"$field": "a"}"#)
    let document = #"{"a": 1e999, "b": [1e999, -1e999]}"#
    for other in ["5", "2.5", "1e999", operand] {
      let selector = #"{"$expr": {"\#(comparison)": [\#(operand), \#(other)]}}"#
      #expect(try !matches(selector, document), "\(selector)")
    }
  }

  @Test(arguments: [
    ("9007199254740993.0", "[9007199254740993, 0]", false),
    ("9007199254740993.0", "[9007199254740993, 9007199254740992]", true),
    ("9007199254740993", "[9007199254740993, 0]", true), ("1e300", "[9223372036854775807, 3362436547623630]", true),
    ("-1e300", "[9223372036854775807, -3362436547623630]", true), ("1e300", "[1000000007, 673966564]", true),
    ("9223372036854775808", "[-9223372036854775808, 0]", true), ("-9223372036854775808", "[-1, 0]", true),
    ("-9223372036854775808.0", "[-1, 0]", true), ("-7.5", "[4, -3]", true), ("1e999", "[2, 0]", false),
  ])
  func `remainders in expressions are exact`(_ number: String, _ operands: String, _ matches: Bool) throws {
    #expect(try self.matches(#"{"a":{"$mod":\#(operands)}}"#, #"{"a":\#(number)}"#) == matches)
  }

  @Test(arguments: [
    ("[1e308, 1e308, -1e999]", "-1e999"), ("[1e999, 1]", "1e999"), ("[1e308, 1e308]", "1e999"),
    ("[-1e308, -1e308, 1e999]", "1e999"), ("[1, 2, 3]", "6"), ("[1, 0.5]", "1.5"),
  ])
  func `a sum with infinities is infinite unless their signs differ`(_ numbers: String, _ sum: String) throws {
    for operation in numbers.contains("e") ? ["$sum", "$avg"] : ["$sum"] {
      let selector = #"{"$expr":{"$eq":[{"\#(operation)":"a"},\#(sum)]}}"#
      #expect(try matches(selector, #"{"a":\#(numbers)}"#), "\(selector)")
    }
  }

  @Test func `long arrays compare as short ones do`() throws {
    let numbers = (0..<1_000).map(String.init).joined(separator: ",")
    let document =
      #"{"n":[\#(numbers)],"s":[\#(numbers),"b","a",null,{}],"one":[999],"none":[true,"x",[]],"above":[1000]}"#
    let cases: [(left: String, comparison: String, right: String, holds: Bool)] = [
      ("n", "$eq", "one", true), ("n", "$eq", "above", false), ("n", "$eq", "none", false), ("n", "$ne", "s", false),
      ("n", "$lt", "n", true), ("n", "$gt", "n", true), ("above", "$lt", "n", false), ("n", "$lt", "above", true),
      ("n", "$gte", "above", false), ("n", "$gte", "one", true), ("above", "$lte", "n", false),
      ("s", "$lt", "none", true), ("s", "$gt", "none", false), ("n", "$lt", "none", false), ("none", "$gt", "s", true),
      ("s", "$eq", "s", true),
    ]
    for (left, comparison, right, holds) in cases {
      let selector = #"{"$expr":{"\#(comparison)":[{"$field":"\#(left)"},{"$field":"\#(right)"}]}}"#
      #expect(try matches(selector, document) == holds, "\(selector)")
    }
  }

  @Test func `an operation combines up to 65,536 pairs of values`() throws {
    func numbers(_ count: Int) -> String { "[\((0..<count).map { "\($0)" }.joined(separator: ","))]" }
    let selector = #"{"$expr":{"$eq":[{"$add":[{"$field":"a"},{"$field":"b"}]},0]}}"#
    #expect(try matches(selector, #"{"a":\#(numbers(256)),"b":\#(numbers(256))}"#))
    #expect(try !matches(selector, #"{"a":\#(numbers(256)),"b":\#(numbers(257))}"#))
    #expect(try matches(selector, #"{"a":\#(numbers(65_536)),"b":0}"#))
    #expect(try !matches(selector, #"{"a":\#(numbers(65_537)),"b":0}"#))
    let nested = (0..<20).reduce(#"{"$field":"a"}"#) { inner, _ in #"{"$add":[{"$field":"a"},\#(inner)]}"# }
    #expect(try !matches(#"{"$expr":{"$gte":[\#(nested),0]}}"#, #"{"a":\#(numbers(200))}"#))
  }
}
