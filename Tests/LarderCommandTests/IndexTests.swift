import Foundation
import Testing

@Suite struct `Indexes on the command line` {
  /// A server whose store `people` has 200 documents, and entries that are no documents.
  private func makeServer() throws -> RunningServer {
    let server = try RunningServer(stores: ["people=memory"])
    let lines =
      (0..<200).map { #"{"key":"p\#($0 + 100)","value":{"name":"n\#($0 % 7)","age":\#($0),"-x":[1,2]}}"# } + [
        #"{"key":"text","value":"mike"}"#
      ]
    try #require(server.larder("load", "people", "-", input: lines.joined(separator: "\n")).status == 0)
    return server
  }

  private func list(on server: RunningServer) throws -> [[String: Any]] {
    let command = try server.larder("index", "list", "people")
    #expect(command.status == 0 && command.error.isEmpty, "\(command.error)")
    return try command.lines.map { line in
      try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
    }
  }

  @Test func `indexes are created, listed and deleted on the command line`() throws {
    let server = try makeServer()
    #expect(try list(on: server).isEmpty)
    let create = ["index", "create", "people", "by-age", "-age", "name"]
    let created = try server.larder(create, input: [])
    #expect(created.status == 0 && created.output.isEmpty && created.error.isEmpty, "\(created.error)")
    let index = try #require(list(on: server).first)
    #expect(index["name"] as? String == "by-age" && index["state"] as? String == "ready")
    let fields = try #require(index["fields"] as? [Any])
    #expect(fields.first as? [String: String] == ["age": "desc"] && fields.last as? String == "name")
    #expect(index["entries"] as? Int == 200 && index["documents"] as? Int == 200)
    #expect(index["memoryBytes"] as? Int ?? 0 > 0 && index["overflowDocuments"] as? Int == 0)
    #expect(index["arrayFields"] as? [String] == [] && index["where"] == nil && index["progress"] == nil)
    // Creating it again confirms it.
    #expect(try server.larder(create, input: []).status == 0)
    let other = try server.larder("index", "create", "people", "by-age", "age")
    #expect(other.status == 3 && other.error.contains("larder index delete"), "\(other.error)")
    #expect(other.error.split(separator: "\n").count == 1)
    #expect(try server.larder("index", "delete", "people", "by-age").status == 0)
    let missing = try server.larder("index", "delete", "people", "by-age")
    #expect(missing.status == 1 && missing.output.isEmpty)
    #expect(
      missing.error == "larder: 'people' has no index 'by-age'; 'larder index list people' lists its indexes\n")
    #expect(try list(on: server).isEmpty)
  }

  @Test(arguments: [
    (["a", "-h-e.b", "--", "-h", "c"], #"["a",{"h-e.b":"desc"},{"h":"desc"},"c"]"#),
    (["-help-x,-age", "_id"], #"[{"help-x":"desc"},{"age":"desc"},"_id"]"#), (["-age"], #"[{"age":"desc"}]"#),
    ([#"["a,b",{"c":"desc"}]"#, #"\-x"#], #"["a,b",{"c":"desc"},"-x"]"#),
  ]) func `index create reads a field that begins with a dash as descending`(fields: [String], json: String) throws {
    let server = try makeServer()
    #expect(
      try server.larder(["index", "create", "people", "i", "--background"] + fields, input: []).error.isEmpty)
    #expect(try server.larder("index", "list", "people").text.hasPrefix(#"{"name":"i","fields":\#(json),"#))
  }

  @Test func `an index can cover a part of the documents`() throws {
    let server = try makeServer()
    let selector = #"{"age":{"$gt":149}}"#
    #expect(try server.larder("index", "create", "people", "old", "--where", selector, "-age").status == 0)
    let index = try #require(list(on: server).first)
    #expect(index["documents"] as? Int == 50 && index["where"] as? [String: [String: Int]] == ["age": ["$gt": 149]])
    #expect(try server.larder("index", "create", "people", "new", "--where", "age = 5", "-age").status == 0)
    #expect(try list(on: server).contains { $0["where"] as? [String: Int] == ["age": 5] })
  }

  @Test(arguments: [
    (["by-age"], "<field>"), (["by-age", "a..b"], "bad sort at $[0]: "), (["by-age", ""], "bad sort at $[0]: "),
    (["by-age", "age", "age"], "bad index at $.fields[1]: "), (["", "age"], "bad index at $.name: "),
    (["by-age", "age", "--where", "[]"], "bad predicate: "), (["by-age", "age", "-h"], "-h"),
    (["by-age", "--agee"], "--agee"), (["-x", "age"], "-x"),
    (["by-age", "age", "--where", #"{"$text":"cat"}"#], "bad index at $.where: "),
  ]) func `an invalid definition of an index is refused with status 2`(arguments: [String], message: String) throws {
    let command = try Command.larder(
      ["--server", "unix:/tmp/larder-nobody.sock", "index", "create", "people"] + arguments)
    #expect(command.status == 2 && command.output.isEmpty)
    #expect(command.error.hasPrefix("larder: ") && command.error.contains(message), "\(command.error)")
    #expect(command.error.hasSuffix("see 'larder index create --help'\n"), "\(command.error)")
    #expect(command.error.split(separator: "\n").count == 1)
  }

  @Test(arguments: [["create", "none", "i", "a"], ["list", "none"], ["delete", "none", "i"]])
  func `index commands on a missing store suggest larder create`(arguments: [String]) throws {
    let command = try makeServer().larder(["index"] + arguments, input: [])
    #expect(command.status == 3 && command.error.contains("larder create") && command.output.isEmpty)
  }

  @Test func `find uses an index, and its statistics say so`() throws {
    let server = try makeServer()
    let find = ["find", "people", #"{"age":{"$gte":190}}"#, "--fields", "age"]
    func explanation(_ arguments: String...) throws -> [String: Any] {
      let command = try server.larder(find + ["--explain"] + arguments, input: [])
      #expect(command.status == 0 && command.error.isEmpty && command.lines.count == 1, "\(command.error)")
      return try #require(JSONSerialization.jsonObject(with: Data(command.output)) as? [String: Any])
    }
    func plan(_ explanation: [String: Any]) -> [String: Any]? { explanation["plan"] as? [String: Any] }
    let scan = try explanation()
    #expect(plan(scan)?["kind"] as? String == "scan")
    #expect((scan["suggestion"] as? [String: Any])?["fields"] as? [String] == ["age"])
    #expect((scan["statistics"] as? [String: Any])?["examinedDocuments"] as? Int == 201)
    let before = try server.larder(find, input: []).text
    #expect(try server.larder("index", "create", "people", "by-age", "age").status == 0)
    #expect(try server.larder("index", "create", "people", "by-name", "name").status == 0)
    let indexed = try explanation()
    #expect(plan(indexed)?["kind"] as? String == "index" && plan(indexed)?["index"] as? String == "by-age")
    #expect((indexed["statistics"] as? [String: Any])?["examinedDocuments"] as? Int ?? 99 <= 10)
    #expect((indexed["candidates"] as? [[String: Any]])?.contains { $0["index"] as? String == "by-name" } == true)
    #expect(try server.larder(find, input: []).text == before && before.split(separator: "\n").count == 10)
    #expect(try server.larder(find + ["--use-index", "by-age"], input: []).text == before)
    #expect(
      try server.larder("find", "people", #"{"age":{"$gte":190}}"#, "--count", "--use-index", "by-age").text == "10\n")
    let unusable = try server.larder(find + ["--use-index", "none"], input: [])
    #expect(unusable.status == 3 && unusable.error.contains("none") && unusable.output.isEmpty, "\(unusable.error)")
  }

  @Test(arguments: [["--group-by", "name", "--compute", "count,max:name"], ["--distinct", "name"]])
  func `an index counts groups, and the explanation says so`(arguments: [String]) throws {
    let server = try makeServer()
    func explanation() throws -> [String: Any] {
      let command = try server.larder(["find", "people", "--explain"] + arguments, input: [])
      #expect(command.status == 0 && command.error.isEmpty && command.lines.count == 1, "\(command.error)")
      return try #require(JSONSerialization.jsonObject(with: Data(command.output)) as? [String: Any])
    }
    let scan = try explanation()
    #expect((scan["plan"] as? [String: Any])?["kind"] as? String == "scan")
    #expect((scan["suggestion"] as? [String: Any])?["fields"] as? [String] == ["name"])
    let groups = try server.larder(["find", "people"] + arguments, input: []).text
    #expect(try server.larder("index", "create", "people", "by-name", "name").status == 0)
    let indexed = try explanation()
    let plan = indexed["plan"] as? [String: Any]
    #expect(plan?["index"] as? String == "by-name" && plan?["estimatedGroups"] is Int && indexed["suggestion"] == nil)
    let statistics = indexed["statistics"] as? [String: Any]
    #expect(statistics?["examinedDocuments"] as? Int == 7 && statistics?["returned"] as? Int == 7, "\(indexed)")
    #expect(try server.larder(["find", "people"] + arguments, input: []).text == groups)
    let text = try ConsoleProcess(server.address).run(
      (["find", "people", "--explain"] + arguments).joined(separator: " "))
    #expect(text.contains(" with one document of each group (about "), "\(text)")
  }

  @Test func `the console shows the indexes of a store`() throws {
    let server = try makeServer()
    let console = try ConsoleProcess(server.address)
    #expect(
      try console.run("index list people")
        .contains("There are no indexes; 'larder index create people NAME FIELD' creates one."))
    #expect(try console.run("index create people by-age -age name").contains("\nindexed 200 entries ("))
    let table = try console.run("index list people")
    #expect(
      table.contains("INDEX   FIELDS     STATE  ENTRIES  DOCUMENTS") && table.contains("by-age  -age name  ready"))
    let text = try console.run("find people '{\"name\":\"n1\"}' --explain")
    #expect(text.contains("\nPlan        all documents of the store"), "\(text)")
    #expect(
      text.contains("\nNot used    by-age") && text.contains("\nExamined    0 keys and 201 documents in "), "\(text)")
    let suggestion = try #require(text.split(separator: "\n").first { $0.hasPrefix("Would help") })
    #expect(suggestion == "Would help  larder index create people by-name name")
    // The command can be pasted.
    _ = try console.run(String(suggestion.dropFirst("Would help  ".count)))
    #expect(try console.run("find people '{\"name\":\"n1\"}' --explain").contains("\nPlan        index by-name"))
    #expect(try console.run("index delete people by-name").contains("by-name"))
    #expect(try console.quit() == 0)
  }
}
