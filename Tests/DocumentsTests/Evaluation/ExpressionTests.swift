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
  func `a result that is not a number compares with nothing`(operand: String, comparison: String) throws {
    let operand = operand.replacing(#""a""#, with: #"{"$field": "a"}"#)
    let document = #"{"a": 1e999, "b": [1e999, -1e999]}"#
    for other in ["5", "2.5", "1e999", operand] {
      let selector = #"{"$expr": {"\#(comparison)": [\#(operand), \#(other)]}}"#
      #expect(try !matches(selector, document), "\(selector)")
    }
  }
}
