import Foundation
import Testing

@testable import larder

@Suite struct `Checking a file of JSON` {
  private let folder = try! TemporaryFolder()

  /// Runs `json check` on a file with these bytes.
  private func check(_ text: some Sequence<UInt8>, _ options: String...) throws -> Command {
    let file = folder.file("file.json")
    try Data(text).write(to: file)
    return try Command.larder(["json", "check", file.path] + options)
  }

  /// The output, with a short name of the file.
  private func output(_ command: Command) -> String {
    command.text.replacing(folder.file("file.json").path, with: "FILE")
  }

  @Test func `json check prints nothing for valid JSON`() throws {
    for text in ["{}", " [1, 2]\n", "null", "\"é\""] {
      let command = try check(text.utf8)
      #expect(command.status == 0 && command.output.isEmpty && command.error.isEmpty, "\(text)")
    }
    let lines = try check("{}\r\n\n  \t\n1\n\"a\"".utf8, "--lines")
    #expect(lines.status == 0 && lines.output.isEmpty && lines.error.isEmpty)
    #expect(try check([], "--lines").status == 0)
  }

  @Test func `json check shows the position of an error`() throws {
    let command = try check("{\n  \"name\": \"mike\"\n  \"age\": 12\n}\n".utf8)
    #expect(command.status == 5)
    #expect(output(command) == "FILE:3:3: expected a comma or }\n  \"age\": 12\n  ^\n")
    #expect(command.error == "larder: \(folder.file("file.json").path) is not JSON; correct line 3 and check again\n")
  }

  @Test(arguments: [
    ("", "FILE:1:1: expected a value\n"),
    ("{\n", "FILE:2:1: expected a member name in double quotes\n"),
    ("\t[1,\t2", "FILE:1:7: expected a comma or ]\n  [1,\\t2\n        ^\n"),
    ("[\"äöü漢\" 1]", "FILE:1:14: expected a comma or ]\n  [\"äöü漢\" 1]\n           ^\n"),
    ("[\"a\u{1B}[2J\"]", "FILE:1:4: expected an escape in place of a control character\n  [\"a\\u001b[2J\"]\n     ^\n"),
    ("\u{FEFF}{}", "FILE:1:1: expected no byte order mark\n  \\ufeff{}\n  ^\n"),
    ("[1,\r\n x]\r\n", "FILE:2:2: expected a value\n  x]\n  ^\n"),
  ]) func `json check aligns the caret with the error`(text: String, expected: String) throws {
    let command = try check(text.utf8)
    #expect(command.status == 5 && output(command) == expected)
  }

  @Test func `json check shows bytes that aren't UTF-8`() throws {
    let command = try check(Array("[\"a".utf8) + [0xFF] + Array("\"]".utf8))
    #expect(output(command) == "FILE:1:4: expected valid UTF-8\n  [\"a\\xff\"]\n     ^\n")
  }

  @Test func `json check shows a part of a long line`() throws {
    let command = try check(
      ("[" + String(repeating: "1, ", count: 100_000) + "x" + String(repeating: ", 2", count: 100_000)).utf8)
    let lines = output(command).split(separator: "\n")
    #expect(lines[0] == "FILE:1:300002: expected a value")
    #expect(lines.count == 3 && lines[1].count == 100 && lines[1].hasPrefix("  …") && lines[1].hasSuffix("…"))
    let caret = try #require(lines[2].firstIndex(of: "^"))
    #expect(
      lines[1][lines[1].index(lines[1].startIndex, offsetBy: lines[2].distance(from: lines[2].startIndex, to: caret))]
        == "x")
  }

  @Test func `json check lists up to ten invalid lines`() throws {
    let command = try check("{}\n{\"a\" 1}\n\n[1]]\r\n7".utf8, "--lines")
    #expect(command.status == 5)
    #expect(
      output(command) == """
        FILE:2:6: expected a colon
          {"a" 1}
               ^
        FILE:4:4: expected the end of the text
          [1]]
             ^

        """)
    #expect(command.error.hasSuffix("2 of 4 lines are not JSON; correct them and check again\n"))
    let many = try check(String(repeating: "x\n1\n", count: 1_500).utf8, "--lines")
    #expect(many.status == 5 && many.lines.count == 31)
    #expect(many.lines.last == "… and 1,490 more lines")
    #expect(many.error.hasSuffix("1,500 of 3,000 lines are not JSON; correct them and check again\n"))
  }

  @Test func `json check suggests checking line by line`() throws {
    #expect(try check("{}\n{}\n".utf8).error.contains("--lines"))
  }

  @Test func `json check reads standard input`() throws {
    #expect(try Command.larder(["json", "check", "-"], input: Array("[1]".utf8)).status == 0)
    let command = try Command.larder(["json", "check", "-"], input: Array("[1".utf8))
    #expect(command.status == 5 && command.text == "standard input:1:3: expected a comma or ]\n  [1\n    ^\n")
    #expect(
      try Command.shell("(echo '{}'; echo '[') | larder json check --lines -").text.hasPrefix("standard input:2:2: "))
  }

  @Test func `json check confirms valid JSON on a terminal`() throws {
    let server = try RunningServer()
    let console = try ConsoleProcess(server.address)
    try Data("{}\n[]\n".utf8).write(to: folder.file("lines"))
    try Data("{}".utf8).write(to: folder.file("whole"))
    #expect(try console.run("json check \(folder.path)/whole").contains("/whole is JSON (2 B)."))
    #expect(try console.run("json check \(folder.path)/lines --lines").contains("/lines is JSON Lines (2 lines)."))
    #expect(try console.run("json check \(folder.path)/lines").contains("/lines:2:1: expected the end of the text"))
    #expect(try console.quit() == 0)
  }
}

@Suite struct `An excerpt of a line` {
  private func excerpt(_ line: String, at position: Int, width: Int) -> String {
    LineExcerpt(Array(line.utf8)[...], at: position, width: width).text
  }

  @Test func `an excerpt of a line fits the width at any position`() {
    let line = String(repeating: "aé漢😀\t\u{1}", count: 200)
    let count = line.utf8.count
    for position in [0, 1, 2, 3, 5, 100, 1_001, 1_002, 1_003, count / 2, count - 1, count] {
      for width in [22, 40, 80, 81, 82, 200] {
        let lines = excerpt(line, at: position, width: width).split(separator: "\n").map(String.init)
        #expect(lines.count == 2 && lines.allSatisfy { EscapedText.width($0) <= width }, "\(position) \(width)")
        #expect(lines.last?.last == "^")
      }
    }
  }

  @Test func `an excerpt of a line omits indentation and empty lines`() {
    #expect(excerpt("\t  abc", at: 4, width: 80) == "  abc\n   ^\n")
    #expect(excerpt("    abc", at: 1, width: 80) == "     abc\n  ^\n")
    #expect(excerpt("", at: 0, width: 80).isEmpty)
    #expect(excerpt("abc", at: 3, width: 80) == "  abc\n     ^\n")
  }
}
