import Foundation
import Testing

@Suite struct `Finding documents` {
  /// A server whose store `people` has the documents of the seed, and entries that are no documents.
  private func makeServer() throws -> RunningServer {
    let server = try RunningServer(stores: ["people=memory"])
    let lines = [
      #"{"key":"mike12","value":{"name":"mike","age":12,"pet":{"species":"cat"}}}"#,
      #"{"key":"mike34","value":{"name":"mike","age":34,"pet":{"species":"dog"}}}"#,
      #"{"key":"fred23","value":{"name":"fred","age":23,"pet":{"species":"cat"}}}"#,
      #"{"key":"array","value":[{"name":"mike"}]}"#, #"{"key":"text","value":"mike"}"#,
      #"{"key":"cut","value":"{\"name\":"}"#, #"{"key":"list","values":["{\"name\":\"mike\"}"]}"#,
    ]
    try #require(server.larder("load", "people", "-", input: lines.joined(separator: "\n")).status == 0)
    return server
  }

  private func find(_ arguments: String..., on server: RunningServer) throws -> [String] {
    let command = try server.larder(["find", "people"] + arguments, input: [])
    #expect(command.status == 0 && command.error.isEmpty, "\(command.error)")
    return command.lines
  }

  @Test(arguments: [
    (#"{"pet.species":"cat"}"#, ["fred23", "mike12"]), (#"{"age":{"$gt":12}}"#, ["fred23", "mike34"]),
    (#"{"name":"fred","pet.species":"cat"}"#, ["fred23"]), ("{}", ["fred23", "mike12", "mike34"]),
    (#"{"$or":[{"pet.species":{"$eq":"dog"}},{"age":{"$lt":30}}]}"#, ["fred23", "mike12", "mike34"]),
    (#"{"$or":[{"pet.species":"dog"},{"$and":[{"age":{"$gt":30}},{"name":"mike"}]}]}"#, ["mike34"]),
    (#"{"_id":{"$beginsWith":"mike"}}"#, ["mike12", "mike34"]), (#"{"name":"nobody"}"#, []),
  ]) func `the seed's selectors find the documents that match`(selector: String, keys: [String]) throws {
    let server = try makeServer()
    #expect(try find(selector, "--fields", "_id", on: server) == keys.map { #"{"_id":"\#($0)"}"# })
    #expect(try find(selector, "--count", on: server) == [String(keys.count)])
  }

  @Test func `a predicate finds what a selector finds, and narrows it`() throws {
    let server = try makeServer()
    #expect(
      try find("--where", "age > 12 AND pet.species = 'cat'", "--sort", "name", "--fields", "_id", on: server)
        == [#"{"_id":"fred23"}"#])
    #expect(try find("--where", "age BETWEEN {12, 30}", "--count", on: server) == ["2"])
    #expect(try find(#"{"name":"mike"}"#, "--where", "pet.species == 'cat'", "--count", on: server) == ["1"])
    #expect(try find("--where", "TRUEPREDICATE", "--count", on: server) == ["3"])
    let wrong = try server.larder(["find", "people", "--where", "age >"], input: [])
    #expect(wrong.status == 2)
    #expect(wrong.error.contains("bad predicate: the predicate needs a field or a value at offset 5"), "\(wrong.error)")
  }

  @Test func `a document is printed with its key and revision, on one line`() throws {
    let server = try makeServer()
    let revision = try server.larder("put", "people", "new", "{\n  \"_id\": 7,\r\n  \"pets\": [\n1]\n}").lines[0]
    #expect(try find(#"{"pets":1}"#, on: server) == [#"{"_id":"new","_rev":\#(revision),"pets":[1]}"#])
    #expect(try find(on: server).count == 4)
  }

  @Test(arguments: ["name,-age", #"[{"name":"asc"},{"age":"desc"}]"#, #"["name",{"age":"desc"}]"#])
  func `documents are sorted and projected`(sort: String) throws {
    let server = try makeServer()
    let lines = [
      #"{"name":"fred","pet":{"species":"cat"}}"#, #"{"name":"mike","pet":{"species":"dog"}}"#,
      #"{"name":"mike","pet":{"species":"cat"}}"#,
    ]
    #expect(try find("--sort", sort, "--fields", "name,pet.species", on: server) == lines)
    #expect(try find("--sort", sort, "--fields", #"["name","pet.species"]"#, on: server) == lines)
    #expect(
      try server.larder("find", "people", "--sort", "-age", "--fields", "age,none").lines == [
        #"{"age":34}"#, #"{"age":23}"#, #"{"age":12}"#,
      ])
  }

  @Test func `find prints the requested page of the result`() throws {
    let server = try makeServer()
    func ages(_ arguments: String...) throws -> [String] {
      try server.larder(["find", "people", "--sort", "age", "--fields", "age"] + arguments, input: []).lines
    }
    #expect(try ages("--limit", "2") == [#"{"age":12}"#, #"{"age":23}"#])
    #expect(try ages("--skip", "1", "--limit", "1") == [#"{"age":23}"#])
    #expect(try ages("--skip", "2") == [#"{"age":34}"#])
    #expect(try ages("--skip", "3").isEmpty)
    #expect(try ages("--limit", "0").count == 3)
  }

  @Test func `statistics go to standard error, as JSON for a script`() throws {
    let server = try makeServer()
    func statistics(_ arguments: String...) throws -> [String: Any] {
      let command = try server.larder(["find", "people", "--stats"] + arguments, input: [])
      #expect(command.status == 0 && command.error.split(separator: "\n").count == 1, "\(command.error)")
      return try #require(JSONSerialization.jsonObject(with: Data(command.error.utf8)) as? [String: Any])
    }
    let all = try statistics(#"{"name":"mike"}"#)
    // The list is not examined.
    #expect(all["examinedDocuments"] as? Int == 6 && all["examinedKeys"] as? Int == 0 && all["returned"] as? Int == 2)
    #expect(all["nanoseconds"] is Int && all["bookmark"] == nil)
    #expect(try statistics("--count", "--sort", "age", "--fields", "age")["returned"] as? Int == 0)
  }

  @Test func `a script reads page after page with the bookmark`() throws {
    let server = try makeServer()
    let pages = try server.shell(
      """
      arguments=(--sort -age --fields age --limit 1)
      for page in 1 2 3 4; do
        larder find people "${arguments[@]}" --stats 2> "$TMPDIR/stats"
        bookmark=$(sed -n 's/.*"bookmark":"\\([^"]*\\)".*/\\1/p' "$TMPDIR/stats")
        if [ -z "$bookmark" ]; then echo end; break; fi
        arguments=(--sort -age --fields age --limit 1 --bookmark "$bookmark")
      done
      """)
    #expect(pages.lines == [#"{"age":34}"#, #"{"age":23}"#, #"{"age":12}"#, "end"], "\(pages)")
  }

  @Test func `the different values of a field are printed in order`() throws {
    let server = try makeServer()
    _ = try server.larder("put", "people", "new", #"{"name":["zoe","mike",null,7],"age":"12"}"#)
    #expect(try find("--distinct", "name", on: server) == ["null", "7", #""fred""#, #""mike""#, #""zoe""#])
    #expect(try find(#"{"pet.species":"cat"}"#, "--distinct", "age", on: server) == ["12", "23"])
    #expect(try server.larder("find", "people", "--distinct", "none").lines.isEmpty)
  }

  @Test func `groups are printed with what is computed from them`() throws {
    let server = try makeServer()
    _ = try server.larder("put", "people", "new", #"{"name":"zoe"}"#)
    #expect(
      try find("--group-by", "pet.species", on: server) == [
        #"{"by":{},"count":1}"#, #"{"by":{"pet.species":"cat"},"count":2}"#, #"{"by":{"pet.species":"dog"},"count":1}"#,
      ])
    #expect(
      try find(#"{"age":{"$gt":12}}"#, "--group-by", "name", "--compute", "avg:age,max:_id", on: server) == [
        #"{"by":{"name":"fred"},"avg:age":23.0,"max:_id":"fred23"}"#,
        #"{"by":{"name":"mike"},"avg:age":34.0,"max:_id":"mike34"}"#,
      ])
    #expect(
      try find("--compute", "count,sum:age,min:none", on: server) == [#"{"by":{},"count":4,"sum:age":69}"#])
  }

  @Test(arguments: [
    ([#"{"age":{"$gth":3}}"#], "bad selector at $.age.$gth: there is no operator $gth"),
    ([#"{"age":{"$in":3}}"#], "bad selector at $.age.$in: "), ([#"{"age":"#], "line 1, column 8"),
    (["[]"], "bad selector at $: "), ([""], "bad selector at $: "), ([#"{"$text":"cat"}"#], "needs a text index"),
    (["--sort", "name,,age"], "bad sort at $[1]: "), (["--sort", #"[{"age":"up"}]"#], "bad sort at $[0]: "),
    (["--sort", #"[{"age""#], "bad sort at $: expected a colon"), (["--sort", "{}"], "bad sort at $: "),
    (["--fields", "a..b"], "bad fields at $[0]: "), (["--fields", ""], "bad fields at $[0]: "),
    (["--fields", #"["a",1]"#], "bad fields at $[1]: "), (["--bookmark", "-x"], "bad bookmark: "),
    (["--skip", "-1"], "--skip"), (["--limit", "x"], "--limit"), (["--count", "--limit", "1"], "--count"),
    (["--distinct", "a..b"], "bad field: "), (["--group-by", "a,"], "bad fields at $[1]: "),
    (["--compute", "sum"], "bad compute: "), (["--compute", "count:age"], "bad compute: "),
    (["--compute", "mode:age"], "bad compute: "), (["--compute", "sum:a..b"], "bad compute: "),
    (["--distinct", "a", "--group-by", "b"], "--distinct can't be combined with --group-by"),
    (["--group-by", "a", "--skip", "1"], "--group-by can't be combined with --skip"),
    (["--group-by", "a", "--sort", "b"], "bad sort: "),
    (["--compute", "count", "--stats"], "--group-by can't be combined with --use-index"),
  ]) func `a bad query is refused before the server is asked`(arguments: [String], message: String) throws {
    let command = try Command.larder(["--server", "unix:/tmp/larder-nobody.sock", "find", "people"] + arguments)
    #expect(command.status == 2 && command.output.isEmpty)
    #expect(command.error.hasPrefix("larder: ") && command.error.contains(message), "\(command.error)")
    #expect(command.error.hasSuffix("see 'larder find --help'\n"))
    #expect(command.error.split(separator: "\n").count == 1)
  }

  @Test func `find in a missing store ends with status 3`() throws {
    let command = try makeServer().larder("find", "none", "{}")
    #expect(command.status == 3 && command.error.contains("larder create") && command.output.isEmpty)
  }

  @Test func `the console shows a table, and how to continue`() throws {
    let server = try makeServer()
    _ = try server.larder("put", "people", "evil", #"{"name":"zoe\u001b[2J","age":99}"#)
    let console = try ConsoleProcess(server.address)
    // The echo of a long line is several lines.
    func rows(_ line: String) throws -> [String] {
      try console.run(line).split(separator: "\n").drop { !$0.hasPrefix("_id") }.dropLast().map {
        $0.split(separator: " ").joined(separator: " ")
      }
    }
    let command = "find people '{\"age\":{\"$lt\":50}}' --sort -age --fields name,pet.species,_id --limit 2"
    let first = try rows(command)
    #expect(Array(first.prefix(3)) == ["_id name pet.species", "mike34 mike dog", "fred23 fred cat"])
    let more = try #require(first.dropFirst(3).first)
    #expect(first.count == 4 && more.hasPrefix("more: --bookmark "))
    let next = try rows("\(command) \(more.dropFirst("more: ".count))")
    #expect(next == ["_id name pet.species", "mike12 mike cat"])
    let other = try console.run("find people \(more.dropFirst("more: ".count))")
    #expect(other.contains("bad bookmark: the bookmark belongs to a query with another selector or sort"))
    #expect(try console.run("find people --count").contains("\n4\n"))
    #expect(try console.run("find people --stats").contains("\nexamined 7 documents, returned 4, "))
    #expect(try console.run("find people --distinct name").contains("\nname\nfred\nmike\nzoe\\u001b[2J\n"))
    #expect(
      try console.run("find people '{\"age\":{\"$lt\":50}}' --group-by pet.species --compute count,avg:age")
        .contains("\npet.species  count  avg:age\ncat              2     17.5\ndog              1     34.0\n"))
    #expect(try console.run("find people '{\"name\":1}'").contains("\nNo documents match.\n"))
    #expect(
      try rows("find people '{\"age\":12}'")
        == ["_id document", #"mike12 {"name":"mike","age":12,"pet":{"species":"cat"}}"#])
    #expect(
      try rows("find people '{\"age\":99}' --fields name,pet.species")
        == ["_id name pet.species", #"evil zoe\u001b[2J"#])
    #expect(try console.quit() == 0)
  }

  @Test func `a long table has one header`() throws {
    let server = try RunningServer(stores: ["people=memory"])
    let lines = (0..<2_500).map { #"{"key":"p\#($0 + 1_000)","value":{"age":\#($0)}}"# }
    try #require(server.larder("load", "people", "-", input: lines.joined(separator: "\n")).status == 0)
    let console = try ConsoleProcess(server.address)
    let rows = try console.run("find people --fields age").split(separator: "\n")
    #expect(rows.filter { $0.hasPrefix("_id") }.count == 1)
    #expect(rows.filter { $0.hasPrefix("p") }.count == 2_500)
    #expect(rows.contains("p1000    0") && rows.contains("p3499  2499"), "\(rows.suffix(3))")
    #expect(try console.quit() == 0)
  }
}
