import Foundation
import Testing

/// Words that begin with a dash where a command takes keys and values. None of them may be a success that does nothing.
/// With `LARDER_SEEDS`, there are more words.
@Suite struct `A key or value that begins with a dash` {
  /// Options that the parser answers itself, with the help, the version or a completion script.
  private static let builtIn =
    ["-h", "-xh", "--generate-completion-script=bash"] + more(["--help", "-hello", "--version"])
  private static let unknown = ["-5"] + more(["--dash=1"])
  private static let known = ["--expire", "--"] + more(["--if-absent", "-"])

  private static func more(_ words: [String]) -> [String] {
    ProcessInfo.processInfo.environment["LARDER_SEEDS"] != nil ? words : []
  }

  /// Starts a server whose store has one entry. Returns the server and a dump of the store.
  private func makeServer() throws -> (server: RunningServer, contents: String) {
    let server = try RunningServer()
    #expect(try server.larder("put", "items", "a", "1").status == 0)
    return (server, try server.larder("dump", "items").text)
  }

  @Test(arguments: builtIn + unknown + known)
  func `a key that begins with a dash is stored and found after two dashes`(word: String) throws {
    let (server, contents) = try makeServer()
    #expect(try server.larder("put", "items", "--", word, word).text == "2\n")
    #expect(try server.larder("get", "items", "--", word).text == word)
    #expect(try server.larder("put", "items", "k", "--", word).text == "3\n")
    #expect(try server.larder("put", "--expire", "1h", "--", "items", "v", word).text == "4\n")
    #expect(try server.larder("get", "items", "k").text == word)
    #expect(try server.larder("get", "items", "v").text == word)
    #expect(
      try server.larder("get-many", "items", "--", word).lines == [
        #"{"key":"\#(word)","value":"\#(word)","revision":2}"#
      ])
    #expect(try server.larder(["put", "items", "--", word], input: Array("piped".utf8)).text == "5\n")
    #expect(try server.larder("get", "items", "--", word).text == "piped")
    #expect(try server.larder("delete", "items", "--", "k", "v", word).text == "3\n")
    #expect(try server.larder("dump", "items").text == contents)
  }

  @Test(arguments: builtIn + unknown)
  func `an argument that begins with a dash is a usage error without two dashes before it`(word: String) throws {
    let (server, contents) = try makeServer()
    var commands = [["put", "items", "k", word], ["put", "items", word], ["get", "items", word]]
    if ["-h", "-5"].contains(word) {
      commands += [
        ["put", "items", word, "v"], ["put", "items", "a", word], ["put", "items", "k", "v", word],
        ["put", "items", "k", word, "--expire", "10s"], ["get", "items", "a", word], ["get-many", "items", "a", word],
        ["get-many", "items", word], ["delete", "items", word], ["delete", "items", "a", word],
        ["page", "items", word],
        ["count", "items", word], ["load", "items", word], ["drop", "items", word], ["create", "more", "memory", word],
      ]
    }
    for arguments in commands {
      let command = try server.larder(arguments, input: [])
      #expect(command.status == 2 && command.output.isEmpty, "\(arguments)")
      #expect(command.error.contains("put -- before a key or value that begins with a dash"), "\(command.error)")
      #expect(command.error.hasSuffix("see 'larder \(arguments[0]) --help'\n"), "\(command.error)")
      #expect(command.error.split(separator: "\n").count == 1)
    }
    #expect(try server.larder("dump", "items").text == contents)
    #expect(try server.larder("stores").lines.count == 1)
  }

  @Test func `a key or value that begins with a dash never prints a completion script`() throws {
    let (server, contents) = try makeServer()
    let word = "--generate-completion-script"
    for arguments in [
      ["put", "items", "k", word], ["put", "items", word, "v"], ["get", "items", word, "bash"],
      ["page", "items", "--prefix", word], ["page", "items", "--after", word + "=bash"],
    ] {
      let command = try server.larder(arguments, input: [])
      #expect(command.status == 2 && command.output.isEmpty, "\(arguments)")
    }
    #expect(try server.larder("dump", "items").text == contents)
  }

  @Test(arguments: (builtIn + unknown).filter { !$0.contains("completion") })
  func `a word that begins with a dash can be the value of an option`(word: String) throws {
    let server = try RunningServer()
    for key in ["+", word, word + "1", "a"] { #expect(try server.larder("put", "items", "--", key, "1").status == 0) }
    func keys(_ arguments: String...) throws -> [Substring] {
      let page = try server.larder(["page", "items", "--keys-only"] + arguments, input: [])
      #expect(page.status == 0 && page.error.isEmpty, "\(page.error)")
      return page.lines.map { $0.split(separator: "\"")[3] }
    }
    #expect(try keys("--prefix", word) == [word[...], word[...] + "1"])
    #expect(try keys("--prefix=\(word)") == [word[...], word[...] + "1"])
    #expect(try keys("--after", word) == [word[...] + "1", "a"])
    #expect(try keys("--after", word, "--reverse", "--limit", "1") == ["+"])
    #expect(try server.larder("load", "items", "-", "--key", word, input: #"{"\#(word)":"loaded"}"#).status == 0)
    #expect(try server.larder("get", "items", "loaded").text == #"{"\#(word)":"loaded"}"#)
    let watch = try server.shell(
      """
      larder watch items --prefix \(word) > "$TMPDIR/out" & watch=$!
      until larder stats items | grep -q '"watches":1'; do sleep 0.02; done
      larder put items b 2 && larder put items -- \(word) 2
      until [ -s "$TMPDIR/out" ]; do sleep 0.02; done
      kill -INT $watch; wait $watch; echo status $?; cat "$TMPDIR/out"
      """)
    #expect(watch.error == "larder: watching 'items' from revision 6\n")
    #expect(watch.lines.suffix(2).first == "status 0" && watch.text.contains(#"{"key":"\#(word)","value":"2","#))
  }

  @Test func `options are accepted after the arguments`() throws {
    let (server, contents) = try makeServer()
    #expect(try server.larder("put", "items", "k", "v", "--expire", "1h").text == "2\n")
    #expect(try server.larder("get-many", "items", "k").text.contains("expiresInMilliseconds"))
    #expect(try server.larder("put", "items", "k", "--expire", "1h", "--", "-v").text == "3\n")
    #expect(try server.larder("get", "--timeout", "5s", "items", "k", "--server", server.address).text == "-v")
    #expect(try server.larder("put", "items", "k", "w", "--if-absent").status == 3)
    #expect(try server.larder("put", "items", "k", "w", "--exprie", "1h").error.contains("--expire"))
    #expect(try server.larder("delete", "items", "k").text == "1\n")
    #expect(try server.larder("dump", "items").text == contents)
  }

  @Test(arguments: [
    ["put", "--help"], ["put", "-h"], ["put", "-help"], ["put", "--expire", "5s", "-h"],
    ["put", "--if-absent", "--help"],
    ["put", "-h", "items", "k", "v"], ["--timeout", "5s", "put", "-h"], ["put", "--timeout=5s", "--help"],
    ["help", "put"],
    ["--help", "put", "items", "k"],
  ]) func `help options are accepted before the arguments`(arguments: [String]) throws {
    let (server, contents) = try makeServer()
    let command = try server.larder(arguments, input: [])
    #expect(command.status == 0 && command.error.isEmpty)
    #expect(command.text.hasPrefix("OVERVIEW: ") && command.text.contains("USAGE: larder"))
    #expect(try server.larder("dump", "items").text == contents)
    #expect(try server.larder("put", "--version").text == server.larder("--version").text)
  }

  @Test func `the console treats arguments that begin with a dash like the command line`() throws {
    let (server, contents) = try makeServer()
    let console = try ConsoleProcess(server.address)
    for line in [
      "put items k -h", "put items -hello v", "put items -5", "get items -x", "get items --version",
      "delete items a --help",
      "larder put items k --help-hidden", "put items k \"-h\"",
    ] {
      let answer = try console.run(line)
      #expect(answer.contains("put -- before a key or value that begins with a dash"), "\(answer)")
      #expect(!answer.contains("USAGE"))
    }
    #expect(try server.larder("dump", "items").text == contents)
    #expect(try console.run("put items k -- -h").contains("\n2\n"))
    #expect(try console.run("put items -- -hello --version").contains("\n3\n"))
    #expect(try console.run("get items -- -hello").contains("\n--version\n"))
    #expect(try console.run("page items --prefix -h --keys-only").contains("-hello"))
    #expect(try console.run("put -h").contains("USAGE: larder put"))
    #expect(try server.larder("get", "items", "k").text == "-h")
    #expect(try console.run("delete items -- k -hello").contains("\n2\n"))
    #expect(try server.larder("dump", "items").text == contents)
    #expect(try console.quit() == 0)
  }
}
