import Foundation
import Testing

@testable import larder

@Suite struct `A pattern for keys` {
  @Test(arguments: [
    ("user:*", "user:7", true), ("user:*", "users:7", false), ("*", "", true), ("", "", true), ("", "a", false),
    ("a?c", "abc", true), ("a?c", "aéc", true), ("a?c", "ac", false), ("*b*b*", "abab", true), ("*b*b*", "aba", false),
    ("[a-c]x", "bx", true), ("[a-c]x", "dx", false), ("[^a-c]x", "dx", true), ("[!a]", "a", false), ("[]]", "]", true),
    ("[a-]", "-", true), (#"\*"#, "*", true), (#"\*"#, "a", false), (#"[\]-_]"#, "^", true), ("a*", "b", false),
    ("*.jpg", "a.b.jpg", true), ("*a", "aab", false),
  ]) func `a key pattern matches as in a shell`(pattern: String, key: String, isMatch: Bool) throws {
    #expect(try KeyPattern(pattern).matches(key) == isMatch)
  }

  @Test(arguments: ["[a", #"a\"#, "[z-a]", "[", "[^", #"[\"#])
  func `an unfinished key pattern is refused`(pattern: String) {
    #expect(throws: (any Error).self) { try KeyPattern(pattern) }
  }

  @Test(arguments: [("user:*", "user:"), ("*", ""), (#"a\*b?"#, "a*b"), ("abc", "abc"), ("[a]", "")])
  func `a key pattern has the common prefix of the keys it matches`(pattern: String, prefix: String) throws {
    #expect(try KeyPattern(pattern).prefix == prefix)
  }

  @Test func `matching a key pattern never takes exponential time`() throws {
    let pattern = try KeyPattern(String(repeating: "*a", count: 30) + "b")
    #expect(!pattern.matches(String(repeating: "a", count: 3_000)))
  }
}

@Suite struct `A range of keys` {
  @Test func `a range of keys begins right after the greatest key before it`() {
    #expect(KeyRangeOptions.predecessor(of: "\0") == nil)
    #expect(KeyRangeOptions.predecessor(of: "a\0") == "a")
    let seed = UInt64.random(in: 0 ... .max)
    var random = Shuffle(state: seed)
    let scalars: [Unicode.Scalar] = ["\0", "\u{1}", "a", "\u{7F}", "\u{80}", "é", "\u{D7FF}", "\u{E000}", "\u{10FFFF}"]
    func randomKey() -> String {
      var key = String.UnicodeScalarView()
      for _ in 0..<Int.random(in: 1...4, using: &random) { key.append(scalars.randomElement(using: &random)!) }
      return String(key)
    }
    for _ in 0..<2_000 {
      let (key, other) = (randomKey(), randomKey())
      guard let before = KeyRangeOptions.predecessor(of: key) else { continue }
      #expect(before.utf8.count <= 4_096 && before.utf8.lexicographicallyPrecedes(key.utf8), "seed \(seed)")
      // No other key is between the two.
      let isAfter = before.utf8.lexicographicallyPrecedes(other.utf8)
      #expect(!isAfter || !other.utf8.lexicographicallyPrecedes(key.utf8), "seed \(seed)")
    }
  }

  private static let keys = ["a", "a1", "b", "user:1", "user:10", "user:2", "usf", "z", "é"]

  private func makeServer() throws -> RunningServer {
    let server = try RunningServer()
    let lines = Self.keys.map { "{\"key\":\"\($0)\",\"value\":\"v\"}\n" }.joined()
    #expect(try server.larder("load", "items", "-", input: lines).status == 0)
    return server
  }

  private static let ranges: [([String], [String])] = [
    (["--from", "a1", "--to", "user:10"], ["a1", "b", "user:1"]), (["--from", "b"], Array(keys[2...])),
    (["--to", "b"], ["a", "a1"]), (["--prefix", "user:", "--from", "user:10"], ["user:10", "user:2"]),
    (["--match", "user:?"], ["user:1", "user:2"]), (["--match", "*1*"], ["a1", "user:1", "user:10"]),
    (["--prefix", "a", "--match", "user:*"], []), (["--prefix", "us", "--match", "?s*"], Array(keys[3...6])),
    (["--from", "z", "--to", "a"], []), (["--prefix", "user:"], Array(keys[3...5])),
  ]

  @Test func `a range of keys limits page, dump and count`() throws {
    let server = try makeServer()
    func keys(_ arguments: [String]) throws -> [String] {
      let run = try server.larder(arguments, input: [])
      #expect(run.status == 0 && run.error.isEmpty, "\(run.error)")
      return run.lines.map { String($0.split(separator: "\"")[3]) }
    }
    for (range, expected) in Self.ranges {
      #expect(try keys(["page", "items"] + range) == expected, "\(range)")
      #expect(try keys(["page", "items", "--reverse", "--keys-only"] + range) == expected.reversed(), "\(range)")
      #expect(
        try keys(["page", "items", "--offset", "1", "--limit", "1"] + range) == Array(expected.dropFirst().prefix(1)))
      #expect(try keys(["dump", "items"] + range) == expected, "\(range)")
      #expect(try server.larder(["count", "items"] + range, input: []).text == "\(expected.count)\n", "\(range)")
    }
    #expect(try keys(["page", "items", "--after", "a1", "--from", "a", "--to", "user:1"]) == ["b"])
    #expect(
      try keys(["page", "items", "--after", "user:2", "--from", "b", "--reverse"]) == ["user:10", "user:1", "b"])
    #expect(try keys(["page", "items", "--limit", "0", "--from", "a"]) == [])
  }

  @Test func `delete removes a range of keys`() throws {
    for (range, expected) in Self.ranges {
      let server = try makeServer()
      #expect(try server.larder(["delete", "items", "--dry-run"] + range, input: []).text == "\(expected.count)\n")
      #expect(try server.larder(["delete", "items", "--yes"] + range, input: []).text == "\(expected.count)\n")
      #expect(try server.larder("count", "items").text == "\(Self.keys.count - expected.count)\n")
      #expect(try server.larder(["count", "items"] + range, input: []).text == "0\n")
    }
  }

  @Test func `delete asks for confirmation before it removes a range of keys`() throws {
    let server = try makeServer()
    for choice in [["--all"], ["--prefix", "user:"], ["--match", "*"]] {
      let run = try server.larder(["delete", "items"] + choice, input: Array("yes\n".utf8))
      #expect(run.status == 2 && run.error.contains("add --yes"), "\(run.error)")
      #expect(run.error.split(separator: "\n").count == 1)
    }
    #expect(try server.larder("delete", "items", "--all", "--dry-run").text == "9\n")
    #expect(try server.larder("count", "items").text == "9\n")
    let console = try ConsoleProcess(server.address)
    #expect(
      try console.answer("delete items --prefix user:", question: "Delete 3 entries of 'items'? [y/N] ", "n").contains(
        "not confirmed"))
    #expect(
      try console.answer("delete items --prefix user:", question: "Delete 3 entries of 'items'? [y/N] ", "y").contains(
        "\n3\n"))
    #expect(try server.larder("count", "items").text == "6\n")
    #expect(try server.larder("delete", "items", "--all", "--yes").text == "6\n")
  }

  @Test func `a range of keys can't be combined with keys`() throws {
    for choice in [
      ["a", "--prefix", "b"], ["--all", "--prefix", "b"], ["a", "--all"], ["--all", "--where", "{}"], ["--prefix", ""],
      ["a", "--dry-run"], ["--yes"],
    ] {
      #expect(try Command.larder(["delete", "items"] + choice).status == 2, "\(choice)")
    }
  }
}
