import TestSupport
import Testing

@testable import Documents

@Suite struct LikePatternTests {
  @Test(arguments: [
    ("", "", true), ("", "a", false), ("*", "", true), ("*", "anything", true), ("?", "", false), ("?", "é", true),
    ("?", "🐈", true), ("?", "e\u{301}", false), ("??", "e\u{301}", true), ("m*k?", "mike", true),
    ("m*k?", "mik", false),
    ("*mi*", "admire", true), ("*a*b", "aXbXb", true), ("*ab", "aab", true), (#"\*"#, "*", true), (#"\*"#, "a", false),
    (#"\\?"#, #"\a"#, true), (#"\a"#, "a", true), (#"\é"#, "é", true), ("**a**", "bab", true), ("a?c", "a\nc", true),
  ])
  func `a pattern matches whole strings`(_ pattern: String, _ text: String, _ matches: Bool) throws {
    var budget = WorkBudget()
    let pattern = try #require(LikePattern(pattern))
    let isMatch = pattern.matches(text.utf8.span, &budget)
    #expect(isMatch == matches)
  }

  @Test(arguments: [#"\"#, #"a\"#, #"\\\"#])
  func `a pattern doesn't end with a single backslash`(_ pattern: String) {
    #expect(LikePattern(pattern) == nil)
  }

  @Test func `a $like pattern has up to 16,384 bytes`() {
    let longest = String(repeating: "*a", count: 8_192)
    #expect(LikePattern(longest) != nil)
    #expect(LikePattern(longest + "a") == nil)
  }

  @Test func `an invalid literal of a $like pattern traps`() async {
    await #expect(processExitsWith: .failure) {
      let pattern: LikePattern = #"a\"#
      print(pattern)
    }
  }

  @Test func `equal patterns have the same text, which reads back`() {
    let pattern: LikePattern = #"**\a?\*\\é"#
    #expect(pattern.description == #"*a?\*\\é"#)
    #expect(LikePattern(pattern.description) == pattern)
  }

  @Test func `folding removes an escape together with its character`() {
    let pattern: LikePattern = "A\\\u{301}*\\*É"
    #expect(pattern.folded([.ignoringCase, .ignoringDiacritics]) == "a*\\*e")
    #expect(pattern.folded([]) == pattern)
  }

  @Test(arguments: [1, 20, 61, 62, 63, 64, 65, 126, 127, 128, 129, 1_000])
  func `long patterns match`(_ count: Int) throws {
    func matches(_ pattern: String, _ text: String) throws -> Bool {
      var budget = WorkBudget()
      let pattern = try #require(LikePattern(pattern))
      return pattern.matches(text.utf8.span, &budget)
    }
    let (pairs, name) = ("*" + String(repeating: "?é", count: count) + "*x", String(repeating: "aé", count: count))
    #expect(try matches(pairs, name + "x"))
    #expect(try matches(pairs, "é" + name + "🐈x"))
    #expect(try !matches(pairs, name.dropLast() + "x"))
    #expect(try !matches(pairs, name + "xy"))
    let scalars = String(repeating: "?", count: count)
    #expect(try matches(scalars, String(name.prefix(count))))
    #expect(try !matches(scalars, name))
  }

  @Test func `random patterns match as a plain definition says`() throws {
    var generator = SeededGenerator.announced()
    func text(_ characters: [String], _ count: Int) -> String {
      (0..<Int.random(in: 0...count, using: &generator)).map { _ in characters.randomElement(using: &generator)! }
        .joined()
    }
    var matched = 0
    var budget = WorkBudget()
    for _ in 0..<20_000 {
      let source = text(["a", "b", "é", "*", "?", #"\*"#, #"\a"#], 6)
      let subject = text(["a", "b", "é", "*"], 8)
      let pattern = try #require(LikePattern(source))
      let expected = plainlyMatches(Array(source.unicodeScalars)[...], Array(subject.unicodeScalars)[...])
      let matches = pattern.matches(subject.utf8.span, &budget)
      #expect(matches == expected, "\(source) on \(subject)")
      if expected { matched += 1 }
    }
    #expect(matched > 1_000)
  }

  private func plainlyMatches(_ pattern: ArraySlice<Unicode.Scalar>, _ text: ArraySlice<Unicode.Scalar>) -> Bool {
    guard let first = pattern.first else { return text.isEmpty }
    switch first {
    case "*":
      return plainlyMatches(pattern.dropFirst(), text) || (!text.isEmpty && plainlyMatches(pattern, text.dropFirst()))
    case "?": return !text.isEmpty && plainlyMatches(pattern.dropFirst(), text.dropFirst())
    case "\\":
      return text.first == pattern.dropFirst().first && plainlyMatches(pattern.dropFirst(2), text.dropFirst())
    default: return text.first == first && plainlyMatches(pattern.dropFirst(), text.dropFirst())
    }
  }
}
