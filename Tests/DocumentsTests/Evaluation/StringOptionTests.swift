import Documents
import Testing

@Suite struct StringOptionTests {
  @Test(arguments: [#"{"a": {"$eq": ["a"], "$options": "c"}}"#, #"{"a": {"$in": [["a"]], "$options": "c"}}"#])
  func `options apply to the strings of a field's array but not of arrays within it`(selector: String) throws {
    let selector = try CompiledSelector(Selector(parsing: selector))
    #expect(selector.matches(Document(#"{"a": ["A"]}"#)))
    #expect(selector.matches(Document(#"{"a": ["a"]}"#)))
    #expect(selector.matches(Document(#"{"a": [["a"]]}"#)))
    #expect(!selector.matches(Document(#"{"a": [["A"]]}"#)))
  }
}
