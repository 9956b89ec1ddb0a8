import Documents
import TestSupport
import Testing

@Suite struct `Regular expressions` {
  /// Patterns, texts they match, and texts they don't match.
  static let cases: [(pattern: String, matching: [String], failing: [String])] = [
    ("", ["", "a"], []),
    ("abc", ["abc", "xxabcxx"], ["", "ab", "ABC"]),
    ("a.c", ["abc", "a\u{1F600}c"], ["a\nc", "ac"]),
    ("(?s)a.c", ["a\nc"], ["ac"]),
    ("^abc$", ["abc", "abc\n"], ["abc\n\n", "xabc", "abcx"]),
    (#"\Aabc\Z"#, ["abc"], ["abc\n"]),
    ("(?m)^b$", ["a\nb\nc", "b"], ["ab\nc"]),
    ("$", ["", "a", "a\n"], []),
    ("a$\n", ["a\n"], ["a\n\n"]),
    ("\n$", ["\n", "a\n\n"], ["a"]),
    (#"\bfoo\b"#, ["a foo b", "foo"], ["foobar", "äfoo"]),
    (#"(?a)\bfoo\b"#, ["äfoo"], ["xfoo"]),
    (#"\B"#, ["ab", " "], ["", "a"]),
    (#"^\d+$"#, ["123", "١٢"], ["", "12a", "²"]),
    (#"^\w+$"#, ["äöü_1", "²", "ⅷ", "中文"], ["a b", "a\u{301}"]),
    (#"^\s$"#, [" ", "\u{A0}", "\u{1C}", "\u{85}", "\u{3000}"], ["\u{200B}", "a"]),
    ("[a-c]+[^a-c]", ["abcd"], ["abc"]),
    ("[]a]", ["]", "a"], ["b"]),
    ("[^]a]", ["b"], ["]a"]),
    (#"[\w-]"#, ["-", "a"], ["+"]),
    (#"[\x41-\u0043]"#, ["B"], ["D"]),
    (#"\101\0\x7e\U0001F600"#, ["A\0~\u{1F600}"], ["A0~"]),
    ("a|bc|", ["", "x"], []),
    ("^(a|bc)$", ["a", "bc"], ["b", "abc"]),
    ("^a{2,3}$", ["aa", "aaa"], ["a", "aaaa"]),
    ("^a{,2}$", ["", "aa"], ["aaa"]),
    ("a{", ["a{"], ["a"]),
    ("a{1,x}", ["a{1,x}"], ["a"]),
    ("^(?P<name>a)(?:b)*?c$", ["abbc", "ac"], ["abb"]),
    ("(?i)straße", ["STRAßE", "ſtraẞe"], ["STRASSE"]),
    ("(?i)k", ["\u{212A}", "K"], ["x"]),
    ("(?i)[k]", ["\u{212A}"], []),
    ("(?i)µ", ["μ", "Μ"], []),
    ("(?i)ΣΑΣ", ["σας"], []),
    ("(?i)[^a]", ["b"], ["aA"]),
    ("(?i:a)b", ["Ab"], ["AB"]),
    ("(?i)a(?-i:b)", ["Ab"], ["AB"]),
    ("(?x) a b # comment\n c", ["abc"], ["a b"]),
    ("(?x:a b) c", ["ab c"], ["abc"]),
    ("(a*)*b", ["aab", "b"], ["aa"]),
    ("^(|a)+$", ["", "aaa"], ["ab"]),
    ("^(a?){3}$", ["", "aaa"], ["aaaa"]),
    ("(?:)^a", ["ab"], ["ba"]),
    ("(?:^a|b)c", ["ac", "xbc"], ["xac"]),
    (#"\."#, ["."], ["a"]),
    ("[a-z]+@[a-z]+", ["me@example"], ["me@", "@example"]),
    ("é", ["café"], ["cafe\u{301}"]),
  ]

  @Test(arguments: cases.indices)
  func `regular expressions match the documented texts`(_ index: Int) throws {
    let (pattern, matching, failing) = Self.cases[index]
    let expression = try RegularExpression(pattern)
    for text in matching {
      #expect(expression.matches(text), "\(pattern.debugDescription) on \(text.debugDescription)")
    }
    for text in failing {
      #expect(!expression.matches(text), "\(pattern.debugDescription) on \(text.debugDescription)")
    }
  }

  @Test(arguments: [
    ("(", 0), (")", 0), ("a**", 2), ("*", 0), ("^*", 1), ("[a", 0), ("[b-a]", 1), ("\\", 0), (#"a\q"#, 1),
    (#"(a)\1"#, 3), ("(?=a)", 0), ("(?<!a)", 0), ("(?>a)", 0), ("a++", 1), ("(?P=a)", 0), ("(?P<1>a)", 4),
    ("(?P<a>)(?P<a>)", 11), ("a{3,2}", 1), ("a{1001}", 1), ("a(?i)", 1), ("(?L)a", 0), ("(?au)a", 0),
    (#"\400"#, 0), (#"\x4"#, 0), (#"\U00110000"#, 0), (#"[\8]"#, 1), (#"\N{DIGIT ONE}"#, 0), ("é(", 1),
  ])
  func `an invalid regular expression reports the offset of the error`(_ pattern: String, _ offset: Int) {
    let error = #expect(throws: RegularExpressionError.self) { try RegularExpression(pattern) }
    #expect(error?.offset == offset, "\(pattern): \(error.map(String.init(describing:)) ?? "")")
  }

  @Test(arguments: [
    (String(repeating: "(", count: 51) + "a" + String(repeating: ")", count: 51), "nested more than 50"),
    (String(repeating: "a", count: 32 * 1024 + 1), "larger than 32768 bytes"),
    ("a{1001}", "the repetition count exceeds 1000"),
    ("(a{1000}){4}", "more than 4000 instructions"),
    ("(a{1000}){1000}", "more than 4000 instructions"),
    ("[ab]{0,401}", "more than 400 branches"),
    ("((((a{2,9}){2,9}){2,9}){2,9}){2,9}", "more than 400 branches"),
    (String(repeating: "(", count: 45) + "a" + String(repeating: "){0,1000}", count: 45), "more than 400 branches"),
  ])
  func `a regular expression that is too large names the limit it exceeds`(_ pattern: String, _ limit: String) {
    let error = #expect(throws: RegularExpressionError.self) { try RegularExpression(pattern) }
    #expect(error?.reason.contains(limit) == true, "\(error.map(String.init(describing:)) ?? "")")
  }

  @Test func `regular expressions can be as large as the limits`() throws {
    let nested = String(repeating: "(", count: 50) + "a" + String(repeating: ")", count: 50)
    #expect(try RegularExpression(nested).matches("a"))
    #expect(try RegularExpression("(a{1000}){3}a{999}").matches(String(repeating: "a", count: 3_999)))
    #expect(try RegularExpression("a[ab]{0,400}c").matches("abbac"))
    let empty = String(repeating: "(", count: 45) + String(repeating: "){1000}", count: 45)
    #expect(try RegularExpression(empty).matches(""))
  }

  @Test(
    arguments: [
      ("^abc", "abc"), ("^abc*", "ab"), (#"\Aab{2}c"#, "ab"), ("^(ab)c.", "abc"), ("^é$", "é"),
      ("abc", nil), ("(?m)^abc", nil), ("^(?i)", nil), ("(?i)^abc", nil), ("^a|^b", nil), ("^.", nil), ("^", nil),
      ("^1(?i:a)", "1"), ("^a?b", nil), ("^a^b", "a"),
    ] as [(String, String?)])
  func `an anchored regular expression has the prefix of its matches`(_ pattern: String, _ prefix: String?) {
    #expect((try? RegularExpression(pattern))?.anchoredLiteralPrefix == prefix)
  }

  @Test func `regular expressions are equal if their patterns and options are`() throws {
    #expect(try RegularExpression("a") == RegularExpression("a"))
    #expect(try RegularExpression("a") != RegularExpression("a", options: .ignoringCase))
    #expect(try RegularExpression("é") != RegularExpression("e\u{301}"))
    #expect(try RegularExpression("ab", options: .ignoringCase).matches("AB"))
  }

  @Test(arguments: [
    "(a|a)*b", "(a*)*b", "(|a)+b", "(.*)(.*)(.*)[^a]", "(a+)+$b", "^(a|aa)+$b", "(?:a?){50}a{50}b",
    "(a|b)*a(a|b){900}c",
    #"\b(\w|a)*\Bb"#, "(((((a*)*)*)*)*)*[bc]", "(?:(?:a{0,20}b?){10})[bc]",
  ])
  func `hostile regular expressions end in time`(_ pattern: String) throws {
    let expression = try RegularExpression(pattern)
    #expect(!expression.matches(String(repeating: "a", count: 20_000)))
  }

  @Test func `regular expressions still match when the table of states is full`() throws {
    let expression = try RegularExpression("(a|b)*a(a|b){14}c")
    var generator = SeededGenerator(seed: 7)
    var text = (0..<20_000).map { _ in Bool.random(using: &generator) ? UInt8(97) : 98 }
    let matchesBefore = expression.matches(text.span)
    #expect(!matchesBefore)
    text += Array("aaaaaaaaaaaaaaac".utf8)
    let matchesAfter = expression.matches(text.span)
    #expect(matchesAfter)
  }

  @Test(arguments: ["", "-a\n", "\u{E9}-", "needle\n"])
  func `regular expressions match long texts as they match short ones`(_ end: String) throws {
    for (pattern, text) in [
      ("(?i)NEEDLE", "needle"), ("(?:fox|dog)s", "dogs"), ("x.*y", "x-y"), ("é[a-z]", "éa"), (".$", "a"),
    ] {
      let expression = try RegularExpression(pattern)
      for count in [1, 2, 1_000, 1_020, 5_000] {
        let padding = String(repeating: "1 n", count: count)
        #expect(expression.matches(padding + text + end) == expression.matches("1 n" + text + end))
        #expect(expression.matches(padding + end) == expression.matches("1 n" + end))
      }
    }
  }

  @Test(arguments: [
    ("(?i)", "[^é-\u{10FFFF}]", "aé\u{4E2D}"), ("(?i)", "é", "É"), ("", #"[\w\D]"#, "a"), ("", "(?:a?b)", "bab"),
    ("", "[\u{0}-\u{10FFFF}]", "a"),
  ])
  func `large regular expressions match`(_ flags: String, _ part: String, _ text: String) throws {
    let expression = try RegularExpression(flags + String(repeating: part, count: 240))
    #expect(expression.matches(String(repeating: text, count: 240)) == (part != "[^é-\u{10FFFF}]"))
    #expect(!expression.matches(text))
  }

  @Test func `regular expressions match with as many states as a word has bits, and more`() throws {
    for count in 55..<75 {
      let skipped = String(repeating: "(?:x|)", count: count)
      let expression = try RegularExpression("^a\(skipped)(?:b\(skipped)c)*d$")
      #expect(expression.matches("abcbxxcd"))
      #expect(!expression.matches("abcbd"))
    }
  }

  @Test func `regular expressions match more scalars than there are classes`() throws {
    let scalars = (0..<190).compactMap { Unicode.Scalar(0x4E00 + $0) }
    let expression = try RegularExpression("^(" + scalars.map { "\($0)x" }.joined(separator: "|") + ")*$")
    let text = scalars.map { "\($0)x" }.joined()
    #expect(expression.matches(text + text))
    #expect(!expression.matches(text + "\(scalars[0])"))
    #expect(!expression.matches(text + "\(scalars[189])y"))
  }

  @Test func `a literal in a regular expression is found at every position`() throws {
    for literal in ["a", "ab", "abcdefghijklmnop", "0123456789abcdefghijklmnopqrstuvwxyzABCDEF"] {
      let expression = try RegularExpression(literal)
      for count in 0..<50 {
        let padding = String(repeating: "-", count: count)
        #expect(expression.matches(padding + literal))
        #expect(expression.matches(padding + literal + padding))
        #expect(!expression.matches(padding + literal.dropLast() + padding))
      }
    }
  }

  @Test func `random regular expressions never trap`() {
    var generator = SeededGenerator.announced()
    let syntax = Array(#"()[]{}|*+?^$.\-,:=!<>#Pimsxaud09bBAZwWN \#u{E9}"#.utf8)
    for round in 0..<5_000 {
      let bytes = (0..<Int.random(in: 0...24, using: &generator)).map { _ in
        round % 4 == 0 ? UInt8.random(in: 0...255, using: &generator) : syntax.randomElement(using: &generator)!
      }
      let pattern = String(decoding: bytes, as: UTF8.self)
      if let expression = try? RegularExpression(pattern) {
        _ = expression.matches(pattern)
        _ = expression.matches(bytes.span)
      }
    }
  }
}
