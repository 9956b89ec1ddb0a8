import Documents
import Testing

/// Input that is made to cost time or memory.
@Suite struct SelectorLimitTests {
  private static func nested(_ count: Int, _ open: String, _ core: String, _ close: String) -> String {
    String(repeating: open, count: count) + core + String(repeating: close, count: count)
  }

  private static func list(_ count: Int, _ element: String) -> String {
    Array(repeating: element, count: count).joined(separator: ",")
  }

  private func refusal(of text: String) -> SelectorError? {
    do throws(SelectorError) {
      let selector = try Selector(parsing: text)
      _ = try CompiledSelector(selector)
      return nil
    } catch { return error }
  }

  @Test(arguments: [
    (#"{"$not":"#, "}", 31), (#"{"$and":["#, "]}", 31), (#"{"$or":[{"b":1},"#, "]}", 31), (#"{"$nor":["#, "]}", 31),
    (#"{"a":"#, "}", 31), (#"{"b":1,"$or":["#, "]}", 15), (#"{"a":{"$elemMatch":"#, "}}", 15),
    (#"{"a":{"$not":"#, "}}", 15),
  ])
  func `selectors nest 32 levels deep`(_ open: String, _ close: String, _ count: Int) throws {
    #expect(refusal(of: Self.nested(count, open, #"{"a":1}"#, close)) == nil)
    let error = try #require(refusal(of: Self.nested(count + 1, open, #"{"a":1}"#, close)))
    #expect(error.code == .tooDeep)
    #expect(error.path.hasPrefix("$."))
  }

  @Test func `operands of an expression nest 31 levels deep`() throws {
    func selector(_ count: Int) -> String {
      #"{"$expr":{"$eq":[1,"# + Self.nested(count, #"{"$add":[1,"#, "1", "]}") + "]}}"
    }
    #expect(refusal(of: selector(30)) == nil)
    #expect(refusal(of: selector(31))?.code == .tooDeep)
  }

  @Test(arguments: [#"{"a":"#, #"{"a":{"$gt":"#, #"{"a":{"$in":["#, #"{"$expr":{"$eq":[1,{"$literal":"#])
  func `values in a selector nest 32 levels deep`(_ open: String) {
    let close = String(open.filter { "[{".contains($0) }.map { $0 == "{" ? "}" : "]" }.reversed())
    #expect(refusal(of: open + Self.nested(32, "[", "1", "]") + close) == nil)
    #expect(refusal(of: open + Self.nested(33, "[", "1", "]") + close)?.code == .tooDeep)
  }

  @Test func `a value that is built in Swift is no deeper than one in text`() {
    let deep = (0..<100).reduce(JSONValue.null) { value, _ in [value] }
    #expect(throws: SelectorError.self) { try Selector(["a": ["$eq": deep]]) }
    #expect(throws: SelectorError.self) { try CompiledSelector(.field("a", .equal(deep))) }
  }

  @Test(arguments: ["[", #"{"a":"#, #"{"$and":["#, #"{"$not":"#, #"{"a":["#])
  func `a text of endless nesting is refused`(_ open: String) {
    let text = Self.nested((1 << 20) / open.utf8.count, open, "", "")
    #expect(refusal(of: text)?.code == .tooDeep)
  }

  @Test func `a selector has up to 1 MiB of text`() {
    let text = #"{"a":1}"#
    let spaces = String(repeating: " ", count: 1 << 20 - text.utf8.count)
    #expect(refusal(of: text + spaces) == nil)
    #expect(refusal(of: text + spaces + " ")?.code == .tooLarge)
  }

  @Test func `a selector has up to 10,000 conditions and operators`() {
    #expect(refusal(of: #"{"$or":[\#(Self.list(9_999, #"{"a":1}"#))]}"#) == nil)
    #expect(refusal(of: #"{"$or":[\#(Self.list(10_000, #"{"a":1}"#))]}"#)?.code == .tooLarge)
    #expect(refusal(of: #"{"$or":[\#(Self.list(10_001, #"{"a":1}"#))]}"#)?.path == "$.$or[9999].a")
    let members = (0..<10_000).map { #""f\#($0)":1"# }.joined(separator: ",")
    #expect(refusal(of: "{\(members)}")?.code == .tooLarge)
  }

  @Test(arguments: ["$in", "$nin", "$all"])
  func `a condition has up to 65,536 operands`(_ name: String) {
    #expect(refusal(of: #"{"a":{"\#(name)":[\#(Self.list(65_536, "1"))]}}"#) == nil)
    #expect(refusal(of: #"{"a":{"\#(name)":[\#(Self.list(65_537, "1"))]}}"#)?.code == .tooLarge)
  }

  @Test func `a field path has up to 128 names and 4,096 bytes`() {
    #expect(refusal(of: #"{"\#(Array(repeating: "a", count: 128).joined(separator: "."))":1}"#) == nil)
    #expect(refusal(of: #"{"\#(Array(repeating: "a", count: 129).joined(separator: "."))":1}"#)?.code == .tooLarge)
    #expect(refusal(of: #"{"\#(String(repeating: "a", count: 4_096))":1}"#) == nil)
    #expect(refusal(of: #"{"\#(String(repeating: "a", count: 4_097))":1}"#)?.code == .tooLarge)
    #expect(
      refusal(of: #"{"\#(String(repeating: "a", count: 4_000))":{"\#(String(repeating: "b", count: 97))":1}}"#) != nil)
  }

  @Test func `an error with a long name is short`() throws {
    let name = String(repeating: "a", count: 100_000)
    for text in [
      #"{"\#(name)":1}"#, #"{"$\#(name)":1}"#, #"{"a":{"$\#(name)":1}}"#, #"{"$expr":{"$eq":[1,{"$\#(name)":1}]}}"#,
    ] {
      let error = try #require(refusal(of: text))
      #expect(error.description.utf8.count < 400)
    }
  }

  @Test func `a selector has up to 256 regular expressions`() {
    #expect(refusal(of: #"{"$or":[\#(Self.list(256, #"{"a":{"$regex":"b"}}"#))]}"#) == nil)
    #expect(refusal(of: #"{"$or":[\#(Self.list(257, #"{"a":{"$regex":"b"}}"#))]}"#)?.code == .tooLarge)
  }

  @Test func `the regular expressions of a selector have up to 65,536 instructions`() {
    // Each has 1,001 instructions.
    let regex = #"{"a":{"$regex":"b{1000}"}}"#
    #expect(refusal(of: #"{"$or":[\#(Self.list(65, regex))]}"#) == nil)
    #expect(refusal(of: #"{"$or":[\#(Self.list(66, regex))]}"#)?.code == .tooLarge)
  }

  @Test func `a $mod beyond 64 bits is refused with the reason`() throws {
    for operands in ["[9223372036854775808, 0]", "[2, 1e19]", "[1e999, 1]"] {
      #expect(try #require(refusal(of: #"{"a":{"$mod":\#(operands)}}"#)).description.contains("64-bit"))
    }
    #expect(refusal(of: #"{"a":{"$mod":[9223372036854775807,-9223372036854775808]}}"#) == nil)
    #expect(try #require(refusal(of: #"{"a":{"$mod":[0.5,0]}}"#)).description.contains("not 0"))
  }

  @Test func `a pattern of $like has up to 16,384 bytes`() {
    #expect(refusal(of: #"{"a":{"$like":"\#(String(repeating: "?", count: 16_384))"}}"#) == nil)
    #expect(refusal(of: #"{"a":{"$like":"\#(String(repeating: "?", count: 16_385))"}}"#)?.code == .tooLarge)
  }

  @Test func `a selector built in Swift is checked where it is used`() {
    func code(_ selector: Selector) -> SelectorError.Code? {
      #expect(throws: SelectorError.self) { try CompiledSelector(selector) }?.code
    }
    #expect(code(.field("a", .in(Array(repeating: 1, count: 65_537)))) == .tooLarge)
    #expect(code(.or(Array(repeating: .field("a", .equal(1)), count: 10_000))) == .tooLarge)
    #expect(code(.field(FieldPath(names: Array(repeating: "a", count: 129)), .exists())) == .tooLarge)
    #expect(code((0..<16).reduce(.field("a", .equal(1))) { inner, _ in .field("a", .elemMatch(inner)) }) == .tooDeep)
    #expect(code(.text("a") || .text("b")) == .textNotAllowed)
    #expect(code(.field("a", .elemMatch(.text("b")))) == .textNotAllowed)
    #expect(code(.field("a", .allMatch(.compare(1, .less, 2)))) == .badExpression)
    #expect(code(.text("a")) == .noTextIndex)
  }
}
