import Foundation
import Testing

/// `larder` without a command, whose standard input is not a terminal.
@Suite struct `Commands from standard input` {
  @Test func `commands from standard input run line by line on one connection`() throws {
    let server = try RunningServer()
    let script = """
      # A comment, and a blank line.

      put items apple red
        larder put items 'two words' "a\\"b"
      get-many items apple
      format table
      count items
      """
    let run = try server.larder([], input: Array(script.utf8))
    #expect(run.status == 0 && run.error.isEmpty, "\(run.error)")
    #expect(run.text == "1\n2\n{\"key\":\"apple\",\"value\":\"red\",\"revision\":1}\n2\n")
    #expect(try server.larder("get", "items", "two words").text == "a\"b")
  }

  @Test func `a command continues on the next line in an open quote or after a backslash`() throws {
    let server = try RunningServer()
    let script = "put items \\\n  k '{\"a\":\n1}'\nget items k\nput items 'a\\\nb' x\\\n\\\ny\nget items 'a\\\nb'\n"
    #expect(try server.larder([], input: Array(script.utf8)).text == "1\n{\"a\":\n1}\n2\nxy\n")
  }

  @Test func `JSON in a script needs no quotes`() throws {
    let server = try RunningServer()
    let script = """
      put items a {"a":1, "b": [1, "it's \\" {"]}
      put items b {
        "c": 1
      }
      get items a
      get items b
      find items {"a": 1} --fields ["a"]
      update items {"a":1} --set={"d": "x y"}
      get items a
      """
    let run = try server.larder([], input: Array(script.utf8))
    #expect(run.error.isEmpty)
    #expect(
      run.text == """
        1
        2
        {"a":1, "b": [1, "it's \\" {"]}
        {
          "c": 1
        }
        {"a":1}
        1
        {"a":1, "b": [1, "it's \\" {"],"d":"x y"}

        """)
    #expect(try server.larder([], input: Array("put items c {\"a\":1\n".utf8)).error.contains("a bracket of a JSON"))
  }

  @Test func `a script prints each value on its own line, unlike a single command`() throws {
    let server = try RunningServer()
    for (key, value) in [("a", "1"), ("b", "2\n"), ("c", "")] { _ = try server.larder("put", "items", key, value) }
    #expect(
      try server.larder([], input: Array("get items a\nget items b\nget items c\nget items a".utf8)).text
        == "1\n2\n\n1\n")
    #expect(try server.larder("get", "items", "a").text == "1" && server.larder("get", "items", "c").text == "")
  }

  @Test func `a script stops at the first failing command, with its line and status`() throws {
    let server = try RunningServer()
    for (line, status) in [("get items none", 1), ("get items", 2), ("count nothing", 3), ("put items 'a", 2)] {
      let run = try server.larder([], input: Array("ping\n\n\(line)\ndrop items\n".utf8))
      #expect(run.status == status && run.error.hasPrefix("larder: line 3: "), "\(run.error)")
      #expect(run.error.split(separator: "\n").count == 1)
    }
    #expect(try server.larder("count", "items").status == 0)
    let invalid = try server.larder([], input: Array("ping\n".utf8) + [0xFF, 0x0A])
    #expect(invalid.status == 2 && invalid.error == "larder: line 2: it is not valid UTF-8\n")
  }

  @Test func `with --keep-going, a script continues, and its first failure decides the status`() throws {
    let server = try RunningServer()
    let run = try server.larder(["--keep-going"], input: Array("get items none\nget items\nput items a 1".utf8))
    #expect(run.status == 1 && run.text == "1\n")
    #expect(run.lines == ["1"] && run.error.split(separator: "\n").count == 2)
  }

  @Test func `a script ends at quit`() throws {
    let server = try RunningServer()
    #expect(try server.larder([], input: Array("put items a 1\nquit\ndrop items\n".utf8)).text == "1\n")
    #expect(try server.larder("count", "items").text == "1\n")
  }

  @Test(arguments: ["put items k", "load items -", "apply items -", "delete items --keys-from -", ".read -"])
  func `commands of a script can't read values from standard input`(line: String) throws {
    let server = try RunningServer()
    let run = try server.larder([], input: Array("\(line)\nput items a 1\n".utf8))
    #expect(run.status == 2 && run.output.isEmpty)
    #expect(run.error.contains("standard input has the commands") || line == ".read -", "\(run.error)")
  }

  @Test func `.read runs the commands in a file`() throws {
    let server = try RunningServer()
    let folder = try TemporaryFolder()
    try Data("put items a 1\nget items none\nput items b 1\n".utf8).write(to: folder.file("commands"))
    let path = folder.file("commands").path
    let run = try server.larder([], input: Array(".read \(path)\nput items c 1\n".utf8))
    #expect(run.status == 1 && run.text == "1\n")
    #expect(run.error.hasPrefix("larder: \(path), line 2: "), "\(run.error)")
    #expect(try server.larder([], input: Array(".read /nowhere/file\n".utf8)).status == 2)
    #expect(try server.larder([], input: Array(".read\n".utf8)).status == 2)
    try Data(".read \(path)\n".utf8).write(to: folder.file("nested"))
    #expect(try server.larder([], input: Array(".read \(folder.path)/nested\n".utf8)).status == 2)
  }

  /// No letter is an option in the place of an argument, and none makes a command that did nothing succeed. With
  /// `LARDER_SEEDS`, each word is tried in every place of every command.
  @Test func `a script's command with an option in the place of an argument fails`() throws {
    let server = try RunningServer()
    let isThorough = ProcessInfo.processInfo.environment["LARDER_SEEDS"] != nil
    #expect(try server.larder("put", "items", "a", "1").status == 0)
    let contents = try server.larder("dump", "items").text
    let letters = (0..<128).map { UnicodeScalar($0)! }.filter { $0.properties.isAlphabetic || ("0"..."9").contains($0) }
    let letterWords = letters.map { "-\($0)" }
    let words = ["-v", "--version", "-help", "-hx", "--x"]
    let someWords = ["-h", "-5", "--help", "-xh", "--x=1"]
    var lines = letterWords.flatMap { ["put items \($0) v", "put items k \($0)", "get items \($0)"] }
    for word in isThorough ? letterWords + words + someWords : someWords {
      for command in [
        "put items \(word) v", "put items k \(word)", "put items k v \(word)", "put items \(word)", "get items \(word)",
        "get items a \(word)", "get-many items \(word)", "get-many items a \(word)", "delete items \(word)",
        "delete items \(word) a", "delete items a \(word)", "count items \(word)", "page items \(word)",
        "dump items \(word)", "find items \(word)", "find items {} \(word)", "update items {} --set {} \(word)",
        "update items \(word) --set {}", "create more \(word)", "create more memory \(word)", "drop items \(word)",
        "stats items \(word)", "index list items \(word)", "index delete items \(word)", "apply items \(word)",
        "load items \(word)", "watch items \(word)", "backup items \(word)", "restore items \(word)",
        "verify /dev/null \(word)", "ping x \(word)",
      ] { lines.append(command) }
    }
    let run = try server.larder(["--keep-going"], input: Array(lines.joined(separator: "\n").utf8))
    #expect(run.status == 2 && run.output.isEmpty, "\(run.text.prefix(300))")
    let failed = Set(run.error.split(separator: "\n").compactMap { Int($0.split(separator: ":")[1].dropFirst(6)) })
    let succeeded = lines.indices.filter { !failed.contains($0 + 1) }.map { lines[$0] }
    #expect(succeeded.isEmpty)
    #expect(try server.larder("dump", "items").text == contents)
    #expect(try server.larder("stores").lines.count == 1)
  }
}
