import Testing

@Suite struct `Changing matching documents` {
  private func makeServer() throws -> RunningServer {
    let server = try RunningServer(stores: ["people=memory"])
    let lines = [
      #"{"key":"fred23","value":{"name":"fred","age":23}}"#, #"{"key":"mike12","value":{"name":"mike","age":12}}"#,
      #"{"key":"mike34","value":{"name":"mike","age":34}}"#, #"{"key":"text","value":"mike"}"#,
    ]
    try #require(server.larder("load", "people", "-", input: lines.joined(separator: "\n")).status == 0)
    return server
  }

  @Test func `update changes the matching documents and prints their count`() throws {
    let server = try makeServer()
    let update = ["update", "people", #"{"name":"mike"}"#, "--set", #"{"$inc":{"age":1},"$push":{"tags":"x"}}"#]
    let before = try server.larder("dump", "people").text
    let dry = try server.larder(update + ["--dry-run"], input: [])
    #expect(dry.status == 0 && dry.text == "2\n" && dry.error.isEmpty, "\(dry.error)")
    #expect(try server.larder("dump", "people").text == before)
    #expect(try server.larder(update, input: []).text == "2\n")
    #expect(try server.larder("get", "people", "mike34").text == #"{"name":"mike","age":35,"tags":["x"]}"#)
    #expect(try server.larder("get", "people", "fred23").text == #"{"name":"fred","age":23}"#)
    // A document that stays as it is isn't counted.
    #expect(try server.larder("update", "people", "{}", "--set", #"{"age":23}"#).text == "2\n")
    #expect(try server.larder("update", "people", #"{"name":"none"}"#, "--set", #"{"a":1}"#).text == "0\n")
    #expect(try server.larder("update", "people", #"{"age":23}"#, "--set", #"{"name":null,"tags":null}"#).text == "3\n")
    #expect(try server.larder("get", "people", "mike34").text == #"{"age":23}"#)
    #expect(try server.larder("get", "people", "text").text == "mike")
  }

  @Test func `update changes all matching documents or none`() throws {
    let server = try makeServer()
    _ = try server.larder("put", "people", "zoe", #"{"age":"old"}"#)
    let before = try server.larder("dump", "people").text
    let refused = try server.larder("update", "people", "{}", "--set", #"{"$inc":{"age":1}}"#)
    #expect(refused.status == 3 && refused.output.isEmpty && refused.error.contains("nothing was changed"))
    #expect(refused.error.split(separator: "\n").count == 1)
    #expect(try server.larder("dump", "people").text == before)
  }

  @Test func `delete removes the matching documents and prints their count`() throws {
    let server = try makeServer()
    let delete = ["delete", "people", "--where", #"{"name":"mike"}"#]
    #expect(try server.larder(delete + ["--dry-run"], input: []).text == "2\n")
    #expect(try server.larder("count", "people").text == "4\n")
    #expect(try server.larder(delete, input: []).text == "2\n")
    #expect(try server.larder(delete, input: []).text == "0\n")
    // Without a terminal there is nobody to ask whether all documents are meant.
    #expect(try server.larder("delete", "people", "--where={}").status == 2)
    // Entries that are not documents remain.
    #expect(try server.larder("delete", "people", "--where={}", "--yes").text == "1\n")
    #expect(try server.larder("page", "people", "--keys-only").lines.count == 1)
  }

  @Test(arguments: [
    (["update", "people", "{}"], "--set"), (["update", "people", "--set", "{}"], "<selector>"),
    (["update", "people", "[]", "--set", "{}"], "bad selector at $: "),
    (["update", "people", "{}", "--set", "[]"], "bad update at $: "),
    (["update", "people", "{}", "--set", #"{"$inc":{"a":"b"}}"#], "bad update at $.$inc.a: "),
    (["update", "people", "{}", "--set", #"{"$set":{"a":1},"b":2}"#], "bad update at $"),
    (["update", "people", "{}", "--set", #"{"_id":"x"}"#], "bad update at $._id: "),
    (["update", "people", "{}", "--set", "-x"], "bad update at $: "),
    (["delete", "people"], "--where"), (["delete", "people", "a", "--where", "{}"], "--where"),
    (["delete", "people", "a", "--dry-run"], "--dry-run can't be combined with keys"),
    (["delete", "people", "--where", "{"], "bad selector at $: "), (["delete", "people", "--where"], "--where"),
  ]) func `an invalid update or delete of matching documents isn't sent`(arguments: [String], message: String) throws {
    let command = try Command.larder(["--server", "unix:/tmp/larder-nobody.sock"] + arguments)
    #expect(command.status == 2 && command.output.isEmpty)
    #expect(command.error.hasPrefix("larder: ") && command.error.contains(message), "\(command.error)")
    #expect(command.error.hasSuffix("see 'larder \(arguments[0]) --help'\n"), "\(command.error)")
    #expect(command.error.split(separator: "\n").count == 1)
  }

  @Test func `the console prints how many matching documents were changed`() throws {
    let server = try makeServer()
    let console = try ConsoleProcess(server.address)
    #expect(
      try console.run("update people '{}' --set '{\"name\":\"mike\"}' --dry-run")
        .contains("\nwould change 1 of 3 matching documents\n"))
    #expect(try console.run("update people '{\"age\":12}' --set '{\"age\":13}'").contains("\nchanged 1 document\n"))
    #expect(try console.run("delete people --where '{\"name\":\"mike\"}'").contains("\ndeleted 2 documents\n"))
    #expect(try console.run("delete people fred23").contains("\n1\n"))
    #expect(try console.quit() == 0)
  }

  @Test(arguments: [["update", "none", "{}", "--set", "{}"], ["delete", "none", "--where", "{}"]])
  func `a change of matching documents in a missing store suggests larder create`(arguments: [String]) throws {
    let command = try makeServer().larder(arguments, input: [])
    #expect(command.status == 3 && command.error.contains("larder create") && command.output.isEmpty)
  }
}
