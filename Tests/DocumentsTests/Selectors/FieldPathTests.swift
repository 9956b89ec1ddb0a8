import TestSupport
import Testing

@testable import Documents

@Suite struct FieldPathTests {
  @Test(arguments: [
    ("age", ["age"]), ("pet.species", ["pet", "species"]), (#"a\.b"#, ["a.b"]), (#"a\\.b"#, [#"a\"#, "b"]),
    (#"\$eq"#, ["$eq"]), ("a.$b", ["a", "$b"]), (#"a\"#, [#"a\"#]), (#"\"#, [#"\"#]), ("tags.0", ["tags", "0"]),
    (#"\a"#, ["a"]), ("e\u{301}.\u{301}", ["e\u{301}", "\u{301}"]), (" ", [" "]), ("a\r\n.b", ["a\r\n", "b"]),
  ])
  func `text is split at dots that aren't escaped`(_ text: String, _ names: [String]) throws {
    #expect(try #require(FieldPath(text)).names == names)
  }

  @Test(arguments: ["", ".", "a.", ".a", "a..b", #"\..."#])
  func `text with an empty name isn't a field path`(_ text: String) {
    #expect(FieldPath(text) == nil)
  }

  @Test func `a string literal is a field path`() {
    let path: FieldPath = "pet.species"
    #expect(path == FieldPath(names: ["pet", "species"]))
  }

  @Test func `a field path literal with an empty name traps`() async {
    await #expect(processExitsWith: .failure) {
      let path: FieldPath = "a..b"
      print(path)
    }
  }

  @Test func `field paths are equal if their scalars are`() {
    #expect(FieldPath(names: ["\u{E9}"]) != FieldPath(names: ["e\u{301}"]))
    #expect(Set([FieldPath(names: ["\u{E9}"]), FieldPath(names: ["e\u{301}"])]).count == 2)
    #expect(FieldPath(names: ["a", "b"]) != FieldPath(names: ["a.b"]))
  }

  @Test func `a path's text reads back as the path, and is never an operator`() throws {
    var generator = SeededGenerator.announced()
    let characters: [Unicode.Scalar] = ["a", "$", ".", "\\", "0", "\"", "\u{301}", "é", "\r", "\n", "🐈"]
    for _ in 0..<2_000 {
      let names = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
        var name = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 1...4, using: &generator) {
          name.append(characters.randomElement(using: &generator)!)
        }
        return String(name)
      }
      let path = FieldPath(names: names)
      #expect(FieldPath(path.description) == path)
      #expect(path.description.utf8.first != UInt8(ascii: "$"))
    }
  }

  @Test(arguments: [
    ("0", 0), ("17", 17), ("01", nil), ("-1", nil), ("1.0", nil), ("+1", nil), ("99999999999999999999", Int.max),
    ("a", nil), ("٣", nil),
  ])
  func `an index is a number without leading zeros`(_ name: String, _ index: Int?) {
    #expect(FieldPath.index(name) == index)
  }
}
