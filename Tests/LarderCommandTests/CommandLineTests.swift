import Foundation
import Platform
import Testing

@Suite struct `The command line` {
  @Test(arguments: [
    [], ["frobnicate"], ["get"], ["get", "items"], ["get", "items", "a", "b"], ["get", "items", ""],
    ["put", "items", "-5", "x"],
    ["put", "items", "a", "b", "--if-absent", "--if-revision", "1"], ["put", "items", "a", "b", "--expire", "0s"],
    ["put", "items", "a", "b", "--expire", "10"], ["ping", "--timeout", "5"], ["--timeout", "-1s", "ping"],
    ["--server", "here", "ping"], ["page", "items", "--limit", "-1"], ["page", "items", "--offset", "x"],
    ["load", "items"], ["backup", "items"], ["restore", "items"], ["verify"], ["verify", "/nowhere"],
    ["check"], ["check", "/nowhere"], ["check", "/tmp"], ["check", "/tmp", "/tmp/other"],
    ["check", "/tmp", "--salvage"], ["json"], ["json", "chek"], ["json", "check"], ["json", "check", "/nowhere"],
    ["json", "check", "/tmp"], ["json", "check", "--lines", "/tmp"], ["json", "check", "-x", "-"],
    ["index"], ["index", "creat"], ["index", "list"], ["index", "delete", "items"], ["update", "items"],
    ["get", "items", String(repeating: "k", count: 4_097)],
  ]) func `an invalid command line is refused with status 2`(arguments: [String]) throws {
    let command = try Command.larder(arguments)
    #expect(command.status == 2)
    #expect(command.output.isEmpty)
    #expect(command.error.hasPrefix(arguments.isEmpty ? "OVERVIEW" : "larder: "))
    #expect(arguments.isEmpty || command.error.split(separator: "\n").count == 1)
  }

  @Test func `an invalid command line names the command that prints the help`() throws {
    #expect(try Command.larder(["get", "items"]).error.hasSuffix("see 'larder get --help'\n"))
    #expect(try Command.larder(["json", "check"]).error.hasSuffix("see 'larder json check --help'\n"))
    #expect(try Command.larder(["json", "check", "a", "-h"]).error.hasSuffix("see 'larder json check --help'\n"))
    #expect(try Command.larder(["put", "items", "-5", "x"]).error.contains("put -- before"))
  }

  @Test func `an invalid number on the command line is named`() throws {
    for (arguments, option) in [
      (["page", "items", "--limit", "-1"], "limit"), (["page", "items", "--offset", "-1"], "offset"),
      (["find", "items", "--limit", "x"], "limit"), (["find", "items", "--skip", "1e3"], "skip"),
      (["top", "--limit", "-h"], "limit"), (["watch", "items", "--from", "-1"], "revision"),
      (["put", "items", "a", "b", "--if-revision", "-1"], "revision"),
    ] {
      let command = try Command.larder(arguments)
      let value = arguments[arguments.endIndex - 1]
      #expect(command.status == 2)
      #expect(command.error.contains("'\(value)' is invalid for '--"), "\(command.error)")
      #expect(command.error.contains("<\(option)>': it must be a whole number from 0 to "), "\(command.error)")
    }
  }

  @Test(arguments: [
    (["gte", "items", "a"], "there is no command 'gte'; did you mean 'get'? see 'larder --help'"),
    (["--timeout", "5s", "frobnicate"], "there is no command 'frobnicate'; see 'larder --help'"),
    (["index", "creat", "items"], "there is no command 'creat'; did you mean 'create'? see 'larder index --help'"),
  ]) func `an unknown command on the command line gets a suggestion`(arguments: [String], message: String) throws {
    let command = try Command.larder(arguments)
    #expect(command.status == 2 && command.output.isEmpty)
    #expect(command.error == "larder: \(message)\n")
  }

  @Test(arguments: [
    (["check", "d", "--bogus", "x"], "Unknown option '--bogus'; ", "see 'larder check --help'"),
    (
      ["put", "items", "a", "--if-absent", "--if-revision", "1", "--bogus"], "Unknown option '--bogus'; ", "put --help'"
    ),
    (["help", "putt"], "there is no command 'putt'; ", "did you mean 'put'? see 'larder --help'"),
    (["help", "index", "creat"], "there is no command 'creat'; ", "did you mean 'create'? see 'larder index --help'"),
    (
      ["increment", "items", "a", "--by", "99999999999999999999"], "The value '99999999999999999999' is invalid",
      "64 bits"
    ),
    (["increment", "items", "a", "--by", "1.5"], "only a FIELD can have a fraction", "whole number"),
    (
      ["--server", "unix:/s", "--tls-ca", "no.pem", "ping"], "--tls-ca is for addresses with TLS", "this one is unix:/s"
    ),
    (["--server", "tls:localhost:1", "--tls-ca", "/no.pem", "ping"], "/no.pem: can't be read", "No such file"),
  ])
  func `a command line is refused for what is wrong with it`(arguments: [String], message: String, rest: String) throws
  {
    let command = try Command.larder(arguments)
    #expect(command.status == 2 && command.output.isEmpty)
    #expect(command.error.hasPrefix("larder: " + message) && command.error.contains(rest), "\(command.error)")
  }

  @Test func `help names the command that it is about`() throws {
    #expect(try Command.larder(["help", "index", "create"]).text.contains("larder index create"))
    #expect(try Command.larder(["help"]).text == Command.larder(["--help"]).text)
  }

  @Test func `a server without a cluster has nothing to hand over`() throws {
    let command = try RunningServer().larder("cluster", "drain")
    #expect(command.status == 3 && command.error.contains("shares no stores"))
  }

  @Test func `two dashes are accepted before a command, too`() throws {
    let server = try RunningServer()
    #expect(try server.larder("--", "put", "items", "--", "-h", "--").text == "1\n")
    #expect(try server.larder("--timeout", "5s", "--", "get", "--", "items", "-h").text == "--")
    #expect(try server.larder("index", "--", "list", "--", "items").status == 0)
    #expect(try server.larder("--", "index", "--", "list", "items").status == 0)
    #expect(try server.larder("page", "items", "--prefix", "--", "--keys-only").text.isEmpty)
    for arguments in [["--", "-h"], ["--"], ["--", "frobnicate"], ["--", "--version"], ["index", "--", "-h"]] {
      #expect(try server.larder(arguments, input: []).status == 2, "\(arguments)")
    }
    #expect(try server.larder([], input: Array("-- count -- items\n".utf8)).text == "1\n")
  }

  @Test func `an invalid duration on the command line is named`() throws {
    for arguments in [["put", "items", "k", "v", "--expire", "-1"], ["ping", "--timeout", "-1"]] {
      #expect(try Command.larder(arguments).error.contains("'-1' is invalid for '\(arguments[arguments.count - 2]) <"))
    }
  }

  @Test func `every command has help with an example`() throws {
    for name in [
      "ping", "stats", "stores", "create", "drop", "put", "get", "get-many", "delete", "count", "page", "increment",
      "touch", "persist",
      "copy", "rename", "find", "load",
      "dump", "backup", "restore", "verify", "check", "json check", "update", "index create", "index list",
      "index delete",
    ] {
      let command = try Command.larder(name.split(separator: " ").map(String.init) + ["--help"])
      #expect(command.status == 0 && command.error.isEmpty)
      #expect(command.text.contains("Example: "), "\(name)")
    }
    #expect(try Command.larder(["--version"]).text.split(separator: ".").count == 3)
  }

  @Test func `arguments that aren't UTF-8 are refused`() throws {
    let command = try Command.shell(#"larder get items $'a\xff'"#)
    #expect(command.status == 2)
    #expect(
      command.error
        == "larder: argument 3 is not valid UTF-8, as keys must be; pass a binary value on standard input\n"
    )
  }

  @Test func `the address is accepted before and after the command and from the environment`() throws {
    let server = try RunningServer()
    let address = server.address
    #expect(try Command.larder(["--server", address, "--timeout", "2s", "count", "items"]).text == "0\n")
    #expect(try Command.larder(["count", "--server=\(address)", "items", "--timeout", "2s"]).text == "0\n")
    #expect(try Command.larder(["count", "items"], environment: ["LARDER_SERVER": address]).text == "0\n")
    #expect(
      try Command.larder(["--server", address, "ping"], environment: ["LARDER_SERVER": "unix:/nowhere"]).status == 0)
    #expect(try Command.larder(["ping"], environment: ["LARDER_SERVER": "nowhere"]).status == 2)
  }

  @Test func `shell completion offers the names of stores`() throws {
    let server = try RunningServer()
    for shell in ["bash", "zsh", "fish"] {
      #expect(try Command.larder(["--generate-completion-script", shell]).status == 0)
    }
    let complete = """
      eval "$(larder --generate-completion-script bash)"
      COMP_WORDS=(larder count ''); COMP_CWORD=2; COMP_LINE='larder count '; COMP_POINT=13
      _larder larder '' count; echo "${COMPREPLY[@]}"
      """
    #expect(try server.shell(complete).text == "items\n")
  }
}

@Suite struct `Without a server` {
  @Test func `commands end with status 4 if there is no server`() throws {
    let command = try Command.larder(["--server", "unix:/tmp/larder-nobody.sock", "get", "items", "a"])
    #expect(command.status == 4)
    #expect(command.error.contains("is larderd running there?"))
    #expect(command.error.split(separator: "\n").count == 1)
  }

  @Test func `a silent server is abandoned at the timeout`() throws {
    let folder = try TemporaryFolder()
    let address = "unix:\(folder.path)/silent.sock"
    let socket = try ListeningSocket.open(Address(address))
    let clock = ContinuousClock()
    let start = clock.now
    let command = try Command.larder(["--server", address, "--timeout", "300ms", "ping"])
    let time = start.duration(to: clock.now)
    withExtendedLifetime(socket) {}
    #expect(command.status == 4)
    #expect(time >= .milliseconds(300))
  }
}
