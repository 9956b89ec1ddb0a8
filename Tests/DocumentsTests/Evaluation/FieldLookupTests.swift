import DocumentTestSupport
import TestSupport
import Testing

@testable import Documents

/// How fields are found by their names, which are compared a word at a time.
@Suite struct FieldLookupTests {
  /// Names around the size of a word; some begin others. The first one is empty, so no path has it.
  private static let names = [
    "", "a", "ab", "abcdef", "abcdefg", "abcdefh", "abcdefgh", "abcdefgi", "abcdefghi", "abcdefgh1", "abcdefghijklmnop",
    "abcdefghijklmnoq", "é", "日本語日本語", "0", "1", "a\"b", "tab\t", "_id", "_rev",
  ]

  private static func document(_ random: inout SeededGenerator, depth: Int = 2) -> JSONValue {
    switch depth == 0 ? 0 : Int.random(in: 0..<4, using: &random) {
    case 0: .integer(.random(in: 0..<3, using: &random))
    case 1: .array((0..<2).map { _ in document(&random, depth: depth - 1) })
    default: object(&random, depth: depth - 1)
    }
  }

  private static func object(_ random: inout SeededGenerator, depth: Int) -> JSONValue {
    var members: JSONObject = [:]
    for _ in 0..<Int.random(in: 0..<6, using: &random) {
      members[names.randomElement(using: &random)!] = document(&random, depth: depth)
    }
    return .object(members)
  }

  @Test func `fields are found whatever their names and number are`() throws {
    var random = SeededGenerator.announced()
    for _ in 0..<(SeededGenerator.isThorough ? 5_000 : 150) {
      let tree = Self.object(&random, depth: 2)
      // Up to 16 fields of an object are found by comparing, more by a dictionary.
      let fields = (0..<Int.random(in: 1..<40, using: &random)).map { _ in
        (0..<Int.random(in: 1...2, using: &random)).map { _ in
          Self.names.dropFirst().randomElement(using: &random)!
        }
      }
      let text = tree.encoded()
      let escaped = try #require(Self.escapingNames(text))
      for field in fields {
        let selector =
          Selector.or(fields.map { Selector.field(FieldPath(names: $0), .size(99)) })
          || .field(FieldPath(names: field), .exists())
        let compiled = try CompiledSelector(selector)
        let isFound = !TreeOracle.values(tree, field[...]).isEmpty
        #expect(compiled.matches(Document(text)) == isFound, "\(field) in \(String(decoding: text, as: UTF8.self))")
        #expect(
          compiled.matches(Document(escaped)) == isFound, "\(field) in \(String(decoding: escaped, as: UTF8.self))")
      }
    }
  }

  /// Returns text with each letter `b` as an escape.
  private static func escapingNames(_ text: [UInt8]) -> [UInt8]? {
    Array(String(decoding: text, as: UTF8.self).replacing("b", with: "\\u0062").utf8)
  }

  @Test(arguments: [1, 2, 16, 17, 63, 64, 65, 66, 200])
  func `the last of several equal member names counts, however many fields are looked up`(count: Int) throws {
    let names = (0..<count).map { "field\($0)" }
    let selector = try CompiledSelector(.and(names.map { .field(FieldPath(names: [$0]), .equal(1)) }))
    func text(_ first: Int, _ second: Int) -> String {
      let (before, after) = (names.map { #""\#($0)":\#(first)"# }, names.map { #""\#($0)":\#(second)"# })
      return "{\((before + after).joined(separator: ","))}"
    }
    #expect(selector.matches(Document(text(2, 1))))
    #expect(!selector.matches(Document(text(1, 2))))
    #expect(selector.matches(Document("{\(names.map { #""\#($0)" : 1"# }.joined(separator: " , "))}")))
  }

  @Test func `text that is cut short anywhere does not match`() throws {
    let selector = try CompiledSelector(
      Selector(parsing: #"{"abcdefghi": 1, "a": {"$exists": true}, "x.abcdefgh": 2}"#))
    let text = Array(#" { "a" : [ 1 ] , "x" : { "abcdefgh" : 2 } , "abcdefghi" : 1 } "#.utf8)
    #expect(selector.matches(Document(text)))
    for count in 0..<text.count - 2 { #expect(!selector.matches(Document(Array(text[..<count]))), "\(count) bytes") }
  }
}
