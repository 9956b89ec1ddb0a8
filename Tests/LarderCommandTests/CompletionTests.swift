import Foundation
import Larder
import Platform
import Testing

@testable import larder

@Suite struct `Completion in the console` {
  private func completer(_ address: String = "unix:/tmp/larder-nobody.sock") throws -> Completer {
    Completer(session: try ConsoleSession(Address(address), timeout: .seconds(5)))
  }

  @Test(
    arguments: [
      ([], "", .command), (["larder"], "pi", .command), (["frobnicate"], "", .nothing), (["get"], "", .store),
      (["get", "items"], "", .key(of: "items")), (["get", "items", "a"], "", .nothing),
      (["get-many", "items", "a", "b"], "c", .key(of: "items")),
      (["delete", "--timeout", "5s", "items"], "", .key(of: "items")),
      (["page", "items", "--after"], "", .key(of: "items")), (["page", "items", "--prefix"], "u", .key(of: "items")),
      (["page", "items", "--limit"], "", .nothing), (["page", "items", "--limit", "5"], "", .nothing),
      (["page", "--reverse"], "", .store), (["load", "items"], "", .file), (["load"], "", .store),
      (["verify"], "", .file),
      (["check"], "", .folder), (["--timeout", "1s"], "", .command), (["drop"], "", .store), (["stats"], "", .store),
      (["create"], "", .nothing), (["put", "items", "k"], "", .nothing), (["ping", "--"], "-", .nothing),
      (["format"], "", .choice(["table", "json"])), (["format", "json"], "", .nothing), (["quit"], "", .nothing),
    ] as [([String], String, Completer.Place)]) func `knows what a word is`(
      words: [String], prefix: String, place: Completer.Place
    ) throws
  {
    #expect(try completer().place(words, prefix) == place)
  }

  @Test func `offers commands, options and choices`() async throws {
    let completer = try completer()
    #expect(await completer.candidates([], "st") == ["stats", "stores"])
    #expect(await completer.candidates([], "q") == ["quit"])
    #expect(await completer.candidates(["help"], "get") == ["get", "get-many"])
    #expect(await completer.candidates(["page", "items"], "--k") == ["--keys-only"])
    #expect(await completer.candidates(["create", "x"], "dir").first == "directory")
    #expect(await completer.candidates(["format"], "j") == ["json"])
  }

  @Test func `offers what the server has`() async throws {
    let server = try RunningServer(stores: ["items=memory", "item-list=memory"])
    let completer = try completer(server.address)
    let items = completer.session.client.store("items")
    let keys = (0..<300).map { "user:\($0)" } + ["two words", "evil\u{1B}[2J", "x"]
    try await items.putMany(keys.map { Write($0, []) })
    #expect(await completer.candidates(["count"], "it") == ["item-list", "items"])
    #expect(await completer.candidates(["get", "items"], "t") == ["two words"])
    #expect(await completer.candidates(["get", "items"], "evil") == [])
    let users = await completer.candidates(["get", "items"], "us")
    #expect(users.count == Completer.maxKeyCount + 1 && users.last == "user:99")
    #expect(await completer.candidates(["get", "nowhere"], "") == [])
    #expect(await completer.candidates(["page", "items", "--prefix"], "x") == ["x"])
  }

  @Test func `waits for no server`() async throws {
    #expect(try await completer().candidates(["count"], "") == [])
    let folder = try TemporaryFolder()
    let silent = try ListeningSocket.open(Address("unix:\(folder.path)/silent.sock"))
    let start = ContinuousClock.now
    #expect(try await completer("unix:\(folder.path)/silent.sock").candidates(["get", "items"], "") == [])
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
    let completer = try completer()
    #expect(
      await completer.candidates(["verify"], path + "/on") == ["\(path)/one.jsonl", "\(path)/only/", "\(path)/onward/"])
    #expect(await completer.candidates(["check"], path + "/") == ["\(path)/only/", "\(path)/onward/"])
    #expect(await completer.candidates(["verify"], path + "/.h") == ["\(path)/.hidden"])
    #expect(await completer.candidates(["verify"], path + "/none/") == [])
  }

  private func completion(_ line: String, _ candidates: [String]) -> Completion {
    Completion(of: CommandWords(line).last, in: line, to: candidates, width: 40)
  }

  @Test func `makes the word longer, in its quotes`() {
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

  @Test func `shows names in columns, and not too many`() {
    #expect(Completion.columns(["a", "bb", "ccc", "dd"], width: 11) == "a    ccc\nbb   dd")
    let many = Completion.columns((0..<500).map { "name-\($0)" }, width: 80).split(separator: "\n")
    #expect(many.count < 40 && many.last == "… and more")
  }
}
