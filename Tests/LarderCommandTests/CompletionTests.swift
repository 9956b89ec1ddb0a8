import Foundation
import Larder
import LarderTLS
import Platform
import Testing

@testable import larder

@Suite struct `Completion in the console` {
  private func makeCompleter(_ address: String = "unix:/tmp/larder-nobody.sock") throws -> Completer {
    Completer(
      session: try ConsoleSession(
        ServerAccess(servers: ServerList(address), tls: .system, token: nil, timeout: .seconds(5))))
  }

  @Test(
    arguments: [
      ([], "", .command), (["larder"], "pi", .command), (["frobnicate"], "", .unknown), (["get"], "", .store),
      (["get", "items"], "", .key(of: "items")), (["get", "items", "a"], "", .unknown),
      (["get-many", "items", "a", "b"], "c", .key(of: "items")),
      (["delete", "--timeout", "5s", "items"], "", .key(of: "items")),
      (["page", "items", "--after"], "", .key(of: "items")), (["page", "items", "--prefix"], "u", .key(of: "items")),
      (["page", "items", "--limit"], "", .unknown), (["page", "items", "--limit", "5"], "", .unknown),
      (["page", "--reverse"], "", .store), (["find"], "", .store),
      (["find", "items"], "", .documentJSON(of: "items", .selector)), (["find", "--limit", "1"], "", .store),
      (["find", "items", "--sort"], "-", .fields(of: "items", hasDirections: true)),
      (["find", "items", "--fields"], "", .fields(of: "items", hasDirections: false)),
      (["find", "items", "--distinct"], "", .fields(of: "items", hasDirections: false)),
      (["find", "items", "--group-by"], "", .fields(of: "items", hasDirections: false)),
      (["find", "items", "--use-index"], "", .index(of: "items")), (["find", "--use-index"], "", .unknown),
      (["index"], "", .choice(["create", "list", "delete"])), (["index", "list"], "", .store),
      (["index", "delete", "items"], "", .index(of: "items")), (["index", "create", "items"], "", .unknown),
      (["index", "create", "items", "i"], "", .fields(of: "items", hasDirections: true)),
      (["index", "create", "items", "i", "-a", "b"], "-c", .fields(of: "items", hasDirections: true)),
      (["index", "create", "items", "i", "--where"], "", .documentJSON(of: "items", .selector)),
      (["update", "items"], "", .documentJSON(of: "items", .selector)),
      (["update", "items", "{}", "--set"], "", .documentJSON(of: "items", .update)),
      (["delete", "items", "--where"], "", .documentJSON(of: "items", .selector)),
      (["find", "items", "--where"], "{", .documentJSON(of: "items", .selector)),
      (["update", "items", "--where"], "", .documentJSON(of: "items", .selector)),
      (["load", "items"], "", .file), (["load"], "", .store), (["verify"], "", .file),
      (["json"], "", .choice(["check"])), (["json", "check", "--lines"], "", .file),
      (["check"], "", .folder), (["--timeout", "1s"], "", .command), (["drop"], "", .store), (["stats"], "", .store),
      ([".read"], "", .file), ([".read", "a"], "", .unknown),
      (["create"], "", .unknown), (["put", "items", "k"], "", .unknown), (["ping", "--"], "-", .unknown),
      (["format"], "", .choice(["table", "json", "csv"])), (["format", "json"], "", .unknown), (["quit"], "", .unknown),
    ] as [([String], String, Completer.WordKind)]) func `completion recognizes the kind of a word`(
      words: [String], prefix: String, kind: Completer.WordKind
    ) throws
  {
    #expect(try makeCompleter().wordKind(after: words, prefix: prefix) == kind)
  }

  @Test func `completion offers commands, options and choices`() async throws {
    let completer = try makeCompleter()
    #expect(await completer.candidates(after: [], prefix: "st") == ["stats", "stores"])
    #expect(await completer.candidates(after: [], prefix: "q") == ["quit"])
    #expect(await completer.candidates(after: ["help"], prefix: "get") == ["get", "get-many"])
    #expect(await completer.candidates(after: ["page", "items"], prefix: "--k") == ["--keys-only"])
    #expect(
      await completer.candidates(after: ["find", "items"], prefix: "--s") == [
        "--server", "--skip", "--sort", "--stats",
      ])
    #expect(await completer.candidates(after: ["index", "create", "items", "i"], prefix: "--b") == ["--background"])
    #expect(await completer.candidates(after: [], prefix: "fi") == ["find"])
    #expect(await completer.candidates(after: ["create", "x"], prefix: "dir").first == "directory")
    #expect(await completer.candidates(after: ["format"], prefix: "j") == ["json"])
  }

  @Test func `completion offers stores and keys from the server`() async throws {
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

  @Test func `completion offers fields and operators from a sample of the documents`() async throws {
    let server = try RunningServer()
    let client = try LarderClient(server.address)
    let (documents, completer) = (client.store("items"), try makeCompleter(server.address))
    let texts = [
      #"{"name":"a","pet":{"species":"cat","paws":4}}"#, #"{"name":"b","tags":[{"label":"x"},7]}"#, "no document",
      #"{"a b":1,"evil\u001b":2,"d.o\\t":{"x":1},"":0,"q\"":1}"#,
    ]
    try await documents.putMany(texts.enumerated().map { Write("k\($0.offset)", Array($0.element.utf8)) })
    try await documents.put("z", #"{"a":{"b":{"c":{"d":{"e":1}}}}}"#.utf8)
    let find = ["find", "items"]
    #expect(
      await completer.candidates(after: find + ["--fields"], prefix: "p") == ["pet", "pet.paws", "pet.species"])
    #expect(await completer.candidates(after: find + ["--sort"], prefix: "name,-pet.s") == ["name,-pet.species"])
    #expect(await completer.candidates(after: find + ["--fields"], prefix: "_") == ["_id", "_rev"])
    #expect(
      await completer.candidates(after: ["index", "create", "items", "i"], prefix: "-t") == ["-tags", "-tags.label"])
    #expect(
      await completer.candidates(after: find + ["--fields"], prefix: "") == [
        "_id", "_rev", "a", "a b", "a.b", "a.b.c", "a.b.c.d", #"d\.o\\t"#, #"d\.o\\t.x"#, "name", "pet", "pet.paws",
        "pet.species", "q\"", "tags", "tags.label",
      ])
    #expect(await completer.candidates(after: find, prefix: #"{"pet.s"#) == [#"{"pet.species":"#])
    #expect(
      await completer.candidates(after: find, prefix: #"{"name":"a","pet":{"#) == [
        #"{"name":"a","pet":{"paws":"#, #"{"name":"a","pet":{"species":"#,
      ])
    #expect(await completer.candidates(after: find, prefix: #"{"$or":[{"n"#) == [#"{"$or":[{"name":"#])
    #expect(await completer.candidates(after: find, prefix: #"{"$o"#) == [#"{"$or":"#])
    #expect(await completer.candidates(after: find, prefix: #"{"name":{"$beg"#) == [#"{"name":{"$beginsWith":"#])
    #expect(await completer.candidates(after: find, prefix: #"{"name":{"$o"#) == [#"{"name":{"$options":"#])
    #expect(await completer.candidates(after: find, prefix: #"{"name":{""#).contains(#"{"name":{"$gt":"#))
    #expect(await completer.candidates(after: find, prefix: #"{"name":"a"#) == [])
    let update = ["update", "items", "{}", "--set"]
    #expect(await completer.candidates(after: update, prefix: #"{"$i"#) == [#"{"$inc":"#])
    #expect(await completer.candidates(after: update, prefix: #"{"$inc":{"na"#) == [#"{"$inc":{"name":"#])
    #expect(await completer.candidates(after: ["find", "none", "--fields"], prefix: "") == ["_id", "_rev"])
    // The sample is kept for a while.
    try await documents.put("k9", #"{"pest":1}"#.utf8)
    #expect(await completer.candidates(after: find + ["--fields"], prefix: "pes") == [])
    await client.shutdown()
  }

  @Test func `completion offers the names of indexes`() async throws {
    let server = try RunningServer()
    let completer = try makeCompleter(server.address)
    for name in ["by-name", "by-age", "two words"] {
      #expect(try server.larder("index", "create", "items", name, "age", "--background").status == 0)
    }
    #expect(await completer.candidates(after: ["index", "delete", "items"], prefix: "by") == ["by-age", "by-name"])
    #expect(await completer.candidates(after: ["find", "items", "--use-index"], prefix: "t") == ["two words"])
    #expect(await completer.candidates(after: ["index", "delete", "none"], prefix: "") == [])
  }

  @Test func `completion of fields reads only a small part of a store`() async throws {
    let server = try RunningServer()
    let client = try LarderClient(server.address)
    let completer = try makeCompleter(server.address)
    let large = String(repeating: "x", count: 600 << 10)
    try await client.store("items").putMany(
      (0..<10).map { Write("k\($0)", Array(#"{"field\#($0)":"\#(large)"}"#.utf8)) })
    #expect(
      await completer.candidates(after: ["find", "items", "--fields"], prefix: "f") == [
        "field0", "field1", "field8", "field9",
      ])
    await client.shutdown()
  }

  @Test func `completion doesn't wait for a server`() async throws {
    #expect(try await makeCompleter().candidates(after: ["count"], prefix: "") == [])
    let folder = try TemporaryFolder()
    let silent = try ListeningSocket.open(Address("unix:\(folder.path)/silent.sock"))
    let start = ContinuousClock.now
    #expect(
      try await makeCompleter("unix:\(folder.path)/silent.sock").candidates(after: ["get", "items"], prefix: "") == [])
    #expect(
      try await makeCompleter("unix:\(folder.path)/silent.sock")
        .candidates(after: ["find", "items", "--fields"], prefix: "") == ["_id", "_rev"])
    #expect(start.duration(to: .now) < .seconds(10))
    withExtendedLifetime(silent) {}
  }

  @Test func `completion offers files and folders`() async throws {
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

  @Test func `completion extends a word inside its quotes`() {
    #expect(completion("pa", ["page"]) == .replace(scalars: 2, by: "page "))
    #expect(completion("get ", ["items", "item-list"]) == .replace(scalars: 0, by: "item"))
    #expect(completion("get items tw", ["two words"]) == .replace(scalars: 2, by: "'two words' "))
    #expect(completion("get items \"tw", ["two words"]) == .replace(scalars: 3, by: "\"two words\" "))
    #expect(completion("get items tw", ["two words", "two worlds"]) == .replace(scalars: 2, by: "'two wor"))
    #expect(completion("get items 'two wor", ["two words", "two worlds"]) == .show("two words   two worlds"))
    #expect(completion("get items it", ["it's"]) == .replace(scalars: 2, by: "\"it's\" "))
    #expect(completion("load items /t", ["/tmp/"]) == .replace(scalars: 2, by: "/tmp/"))
    #expect(completion("find items '{\"ag", [#"{"age":"#]) == .replace(scalars: 5, by: #"'{"age":"#))
    #expect(completion("find items {\\\"ag", [#"{"age":"#]) == .replace(scalars: 5, by: #"'{"age":"#))
    #expect(completion("get x", []) == .none)
    #expect(completion("get items e\u{301}", ["e\u{301}t"]) == .replace(scalars: 2, by: "e\u{301}t "))
  }

  @Test func `completion shows only the part in which candidates differ`() {
    func shown(_ line: String, _ candidates: [String], after start: String) -> Completion {
      Completion(of: CommandWords(line).last, in: line, to: candidates, after: start, width: 40)
    }
    #expect(shown("verify /tmp/", ["/tmp/a", "/tmp/b"], after: "/tmp/") == .show("a  b"))
    #expect(shown("find x --sort name,-", ["name,-a", "name,-b"], after: "name,-") == .show("a  b"))
    #expect(shown("find x '{", [#"{"a":"#, #"{"b":"#], after: "{") == .replace(scalars: 2, by: #"'{""#))
    #expect(shown("find x '{\"", [#"{"a":"#, #"{"b":"#], after: "{") == .show(#""a":  "b":"#))
  }

  @Test func `completion shows candidates in columns, up to a maximum`() {
    #expect(Completion.columns(["a", "bb", "ccc", "dd"], width: 11) == "a    ccc\nbb   dd")
    let many = Completion.columns((0..<500).map { "name-\($0)" }, width: 80).split(separator: "\n")
    #expect(many.count < 40 && many.last == "… and more")
  }
}
