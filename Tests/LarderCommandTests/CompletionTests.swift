import Foundation
import Larder
import Platform
import Testing

@testable import larder

@Suite struct `Completion in the console` {
  private func makeCompleter(_ address: String = "unix:/tmp/larder-nobody.sock") throws -> Completer {
    Completer(session: try ConsoleSession(Address(address), timeout: .seconds(5)))
  }

  @Test(
    arguments: [
      ([], "", .command), (["larder"], "pi", .command), (["frobnicate"], "", .unknown), (["get"], "", .store),
      (["get", "items"], "", .key(of: "items")), (["get", "items", "a"], "", .unknown),
      (["get-many", "items", "a", "b"], "c", .key(of: "items")),
      (["delete", "--timeout", "5s", "items"], "", .key(of: "items")),
      (["page", "items", "--after"], "", .key(of: "items")), (["page", "items", "--prefix"], "u", .key(of: "items")),
      (["page", "items", "--limit"], "", .unknown), (["page", "items", "--limit", "5"], "", .unknown),
      (["page", "--reverse"], "", .store), (["find"], "", .store), (["find", "items"], "", .unknown),
      (["load", "items"], "", .file), (["load"], "", .store), (["verify"], "", .file),
      (["json"], "", .choice(["check"])), (["json", "check", "--lines"], "", .file),
      (["check"], "", .folder), (["--timeout", "1s"], "", .command), (["drop"], "", .store), (["stats"], "", .store),
      (["create"], "", .unknown), (["put", "items", "k"], "", .unknown), (["ping", "--"], "-", .unknown),
      (["format"], "", .choice(["table", "json"])), (["format", "json"], "", .unknown), (["quit"], "", .unknown),
    ] as [([String], String, Completer.WordKind)]) func `knows the kind of a word`(
      words: [String], prefix: String, kind: Completer.WordKind
    ) throws
  {
    #expect(try makeCompleter().wordKind(after: words, prefix: prefix) == kind)
  }

  @Test func `offers commands, options and choices`() async throws {
    let completer = try makeCompleter()
    #expect(await completer.candidates(after: [], prefix: "st") == ["stats", "stores"])
    #expect(await completer.candidates(after: [], prefix: "q") == ["quit"])
    #expect(await completer.candidates(after: ["help"], prefix: "get") == ["get", "get-many"])
    #expect(await completer.candidates(after: ["page", "items"], prefix: "--k") == ["--keys-only"])
    #expect(
      await completer.candidates(after: ["find", "items"], prefix: "--s") == [
        "--server", "--skip", "--sort", "--stats",
      ])
    #expect(await completer.candidates(after: [], prefix: "fi") == ["find"])
    #expect(await completer.candidates(after: ["create", "x"], prefix: "dir").first == "directory")
    #expect(await completer.candidates(after: ["format"], prefix: "j") == ["json"])
  }

  @Test func `offers stores and keys from the server`() async throws {
    let server = try RunningServer(stores: ["items=memory", "item-list=memory"])
    let completer = try makeCompleter(server.address)
    let client = try LarderClient(server.address)
    let keys = (0..<300).map { "user:\($0)" } + ["two words", "evil\u{1B}[2J", "x"]
    try await client.store("items").putMany(keys.map { Write($0, []) })
    #expect(await completer.candidates(after: ["count"], prefix: "it") == ["item-list", "items"])
    #expect(await completer.candidates(after: ["get", "items"], prefix: "t") == ["two words"])
    #expect(await completer.candidates(after: ["get", "items"], prefix: "evil") == [])
    let users = await completer.candidates(after: ["get", "items"], prefix: "us")
    #expect(users.count == Completer.maxKeyCount + 1 && users.last == "user:99")
    #expect(await completer.candidates(after: ["get", "nowhere"], prefix: "") == [])
    #expect(await completer.candidates(after: ["page", "items", "--prefix"], prefix: "x") == ["x"])
    await client.shutdown()
  }

  @Test func `does not wait for a server`() async throws {
    #expect(try await makeCompleter().candidates(after: ["count"], prefix: "") == [])
    let folder = try TemporaryFolder()
    let silent = try ListeningSocket.open(Address("unix:\(folder.path)/silent.sock"))
    let start = ContinuousClock.now
    #expect(
      try await makeCompleter("unix:\(folder.path)/silent.sock").candidates(after: ["get", "items"], prefix: "") == [])
    #expect(start.duration(to: .now) < .seconds(3))
    withExtendedLifetime(silent) {}
  }

  @Test func `offers files and folders`() async throws {
    let folder = try TemporaryFolder()
    try Data().write(to: folder.file("one.jsonl"))
    try Data().write(to: folder.file(".hidden"))
    try FileManager.default.createDirectory(at: folder.file("only"), withIntermediateDirectories: false)
    try FileManager.default.createSymbolicLink(at: folder.file("onward"), withDestinationURL: folder.file("only"))
    let path = folder.path
    let completer = try makeCompleter()
    #expect(
      await completer.candidates(after: ["verify"], prefix: path + "/on") == [
        "\(path)/one.jsonl", "\(path)/only/", "\(path)/onward/",
      ])
    #expect(await completer.candidates(after: ["check"], prefix: path + "/") == ["\(path)/only/", "\(path)/onward/"])
    #expect(await completer.candidates(after: ["verify"], prefix: path + "/.h") == ["\(path)/.hidden"])
    #expect(await completer.candidates(after: ["verify"], prefix: path + "/none/") == [])
  }

  private func completion(_ line: String, _ candidates: [String]) -> Completion {
    Completion(of: CommandWords(line).last, in: line, to: candidates, width: 40)
  }

  @Test func `extends the word inside its quotes`() {
    #expect(completion("pa", ["page"]) == .replace(scalars: 2, by: "page "))
    #expect(completion("get ", ["items", "item-list"]) == .replace(scalars: 0, by: "item"))
    #expect(completion("get items tw", ["two words"]) == .replace(scalars: 2, by: "'two words' "))
    #expect(completion("get items \"tw", ["two words"]) == .replace(scalars: 3, by: "\"two words\" "))
    #expect(completion("get items tw", ["two words", "two worlds"]) == .replace(scalars: 2, by: "'two wor"))
    #expect(completion("get items 'two wor", ["two words", "two worlds"]) == .show("two words   two worlds"))
    #expect(completion("get items it", ["it's"]) == .replace(scalars: 2, by: "\"it's\" "))
    #expect(completion("load items /t", ["/tmp/"]) == .replace(scalars: 2, by: "/tmp/"))
    #expect(completion("get x", []) == .none)
    #expect(completion("get items e\u{301}", ["e\u{301}t"]) == .replace(scalars: 2, by: "e\u{301}t "))
  }

  @Test func `shows names in columns, up to a maximum`() {
    #expect(Completion.columns(["a", "bb", "ccc", "dd"], width: 11) == "a    ccc\nbb   dd")
    let many = Completion.columns((0..<500).map { "name-\($0)" }, width: 80).split(separator: "\n")
    #expect(many.count < 40 && many.last == "… and more")
  }
}
