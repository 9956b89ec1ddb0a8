import Foundation
import Testing

@testable import larder

@Suite struct `A command with many keys` {
  private func makeServer(keyCount: Int) throws -> RunningServer {
    let server = try RunningServer()
    let lines = (0..<keyCount).map { "{\"key\":\"key-\($0)\",\"value\":\"\"}\n" }.joined()
    #expect(try server.larder("load", "items", "-", input: lines).status == 0)
    return server
  }

  @Test func `a command accepts as many keys as fit on a command line`() throws {
    let server = try makeServer(keyCount: 20_000)
    let run = try server.shell("seq -f key-%.0f 0 19998 | xargs larder delete items | paste -sd+ | bc")
    #expect(run.text == "19999\n", "\(run.error)")
    #expect(try server.larder("dump", "items").text.contains("key-19999"))
    let found = try server.shell("seq -f key-%.0f 19000 19999 | xargs larder get-many items")
    #expect(found.lines.count == 1_000)
    #expect(found.lines.first == #"{"key":"key-19000","missing":true}"#)
    #expect(found.lines.last?.hasPrefix(#"{"key":"key-19999","value":"""#) == true)
  }

  @Test func `an invalid key among many is reported as among few`() throws {
    let keys = (0..<1_000).map { "k\($0)" }
    for word in ["", String(repeating: "k", count: 4_097), "-x", "--unknown", "-h", "--help"] {
      let few = try Command.larder(["delete", "items", "k", word])
      let many = try Command.larder(["delete", "items"] + keys[..<500] + [word] + keys[500...])
      #expect(few.status == 2 && many.status == 2)
      #expect(few.error == many.error)
    }
  }

  @Test func `many keys keep their order, with options and two dashes between them`() {
    let keys = (0..<1_000).map { "k\($0)" }
    let (words, taken) = CommandLinePosition.separatingKeys(
      in: ["--timeout", "5s", "delete", "items"] + keys + ["--server", "tcp:h:1", "last", "--", "--where", "-h", "--"])
    #expect(words == ["--timeout", "5s", "delete", "items", "k0", "--server", "tcp:h:1", "--"])
    #expect(taken == keys[1...] + ["last", "--where", "-h", "--"])
    let fields = ["index", "create", "items", "i"] + keys
    #expect(CommandLinePosition.separatingKeys(in: fields) == (fields, []))
  }

  @Test func `a command reads keys from a file or from standard input`() throws {
    let server = try makeServer(keyCount: 25_000)
    let keys = (0..<24_998).map { "key-\($0)\n" }.joined()
    #expect(try server.larder("delete", "items", "--keys-from", "-", input: keys).text == "24998\n")
    let folder = try TemporaryFolder()
    try Data("key-24998\r\n\n{\"revision\":1,\"key\":\"key-24999\"}".utf8).write(to: folder.file("keys"))
    let found = try server.larder("get-many", "items", "--keys-from", folder.file("keys").path)
    #expect(found.lines.count == 2 && !found.text.contains("missing"), "\(found.text)")
    #expect(try server.larder("delete", "items", "--keys-from", folder.file("keys").path).text == "2\n")
    #expect(try server.larder("delete", "items", "--keys-from", "-").text == "0\n")
  }

  @Test(arguments: ["a\n{\"k\":1}\n", "a\n{\"key\":1}\n", "a\n{\n", "a\n" + String(repeating: "k", count: 4_097)])
  func `a command that reads keys changes nothing if a line has no key`(lines: String) throws {
    let server = try RunningServer()
    #expect(try server.larder("put", "items", "a", "1").status == 0)
    let run = try server.larder("delete", "items", "--keys-from", "-", input: lines)
    #expect(run.status == 2 && run.error.hasPrefix("larder: line 2: "), "\(run.error)")
    #expect(try server.larder("count", "items").text == "1\n")
  }

  @Test func `keys, --keys-from and --where are mutually exclusive`() throws {
    for arguments in [["a", "--keys-from", "-"], ["--keys-from", "-", "--where", "{}"], [], ["--keys-from"]] {
      #expect(try Command.larder(["delete", "items"] + arguments).status == 2)
    }
  }
}
