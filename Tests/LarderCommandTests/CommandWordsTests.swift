import Basics
import Platform
import Testing

@testable import larder

@Suite struct `The words of a line` {
  @Test(arguments: [
    ("", []), ("  \t ", []), ("ping", ["ping"]), ("  get  items\tapple ", ["get", "items", "apple"]),
    ("put items 'two words'", ["put", "items", "two words"]), (#"a\ b c"#, ["a b", "c"]), ("''", [""]), (#""""#, [""]),
    (#"'it'\''s'"#, ["it's"]), (#""say \"hi\"""#, [#"say "hi""#]), (#""a\b\\c\$d\`e""#, [#"a\b\c$d`e"#]),
    (#"'a\b'"#, [#"a\b"#]), (#"a'b'"c"d"#, ["abcd"]), (#"\'"#, ["'"]), (#"\\"#, [#"\"#]),
    (#"put a '{"x":"y z"}'"#, ["put", "a", #"{"x":"y z"}"#]), ("größe 漢字 👩‍👩‍👧", ["größe", "漢字", "👩‍👩‍👧"]),
    ("e\u{301} 'o\u{308}'", ["e\u{301}", "o\u{308}"]), ("a' '\u{301}", ["a \u{301}"]), ("$HOME *", ["$HOME", "*"]),
    ("a > b | c; d # e", ["a", ">", "b", "|", "c;", "d", "#", "e"]),
    (#"put j {"a": "x y"} z"#, ["put", "j", #"{"a": "x y"}"#, "z"]), (#"{"a":"}\""} b"#, [#"{"a":"}\""}"#, "b"]),
    (#"{"it's":{"a":[{}]}}"#, [#"{"it's":{"a":[{}]}}"#]), ("{ } {}x", ["{ }", "{}x"]),
    (#"--set={"a": 1}"#, [#"--set={"a": 1}"#]),
    (#"["a", {"b": 1}] c"#, [#"["a", {"b": 1}]"#, "c"]), (#"[ [ "a" ] ]"#, [#"[ [ "a" ] ]"#]),
    ("[a-z]* [1 {a b} x{\"y\"}", ["[a-z]*", "[1", "{a", "b}", "x{y}"]),
    (#"'{"a": 1}' "{ }" \{ }"#, [#"{"a": 1}"#, "{ }", "{", "}"]),
  ]) func `a line is split into words as in a shell`(line: String, words: [String]) throws {
    #expect(try CommandWords.split(line) == words)
  }

  @Test func `JSON on several lines is one word up to its last bracket`() throws {
    var words = CommandWords("put j {")
    #expect(words.isUnfinished)
    words.continueLine("  \"a\": \"}\\\"\"")
    #expect(words.isUnfinished)
    words.continueLine("} x")
    #expect(!words.isUnfinished)
    #expect(try words.all() == ["put", "j", "{\n  \"a\": \"}\\\"\"\n}", "x"])
  }

  @Test(arguments: ["'a", "\"a", "a 'b\" c", #"a\"#, #""a\""#, #"'it\'s'"#])
  func `a line with an open quote is refused`(
    line: String
  ) {
    #expect(throws: CommandFailure.self) { try CommandWords.split(line) }
  }

  @Test func `words are the same after quoting`() throws {
    let pieces = ["a", " ", "'", "\"", "\\", "{", "[", "}", "$", "`", "é", "漢", "-", "👩‍👩‍👧", "\t"]
    let seed = UInt64.random(in: 0 ... .max)
    var random = Shuffle(state: seed)
    for _ in 0..<2_000 {
      let word = (0..<Int.random(in: 0...6, using: &random)).map { _ in pieces.randomElement(using: &random)! }.joined()
      for quote in [nil, "'", "\""] as [Unicode.Scalar?] {
        let line = CommandWords.quoted(word, with: quote)
        #expect(try CommandWords.split("x \(line) y") == ["x", word, "y"], "seed \(seed): \(line)")
        let open = CommandWords(CommandWords.quoted(word, with: quote, isComplete: false))
        #expect((open.words, open.last?.text ?? "") == ([], word), "seed \(seed): \(line)")
      }
    }
  }

  @Test func `the words up to the cursor are known, and an open quote with them`() {
    let line = "get 'my store' \"ke"
    let words = CommandWords(line)
    #expect(words.words == ["get", "my store"])
    #expect(words.last?.text == "ke" && words.last?.quote == "\"")
    #expect(words.last.map { String(line[$0.start...]) } == "\"ke")
    #expect(CommandWords("get ").last == nil)
  }
}

@Suite struct `An unknown command` {
  @Test(arguments: [
    ("pagee", "page"), ("gte", "get"), ("Stores", "stores"), ("storse", "stores"), ("dele", "delete"),
    ("get_many", "get-many"),
  ]) func `an unknown command is similar to a known one`(word: String, similar: String) {
    #expect(SpellingSuggestion.nearest(to: word, of: CommandSyntax.larder.commands.map(\.commandName)) == similar)
  }

  @Test(arguments: ["frobnicate", "", "xyz", String(repeating: "page", count: 10_000)])
  func `an unknown command without a similar one gets no suggestion`(
    word: String
  ) {
    #expect(SpellingSuggestion.nearest(to: word, of: CommandSyntax.larder.commands.map(\.commandName)) == nil)
  }
}
