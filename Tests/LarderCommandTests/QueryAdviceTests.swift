import Testing

/// Queries that are valid, but don't mean what they say in another language.
@Suite struct `A query that is probably wrong` {
  private func makeServer() throws -> RunningServer {
    let server = try RunningServer(stores: ["people=memory", "empty=memory", "text=memory"])
    let lines = [
      #"{"key":"mike12","value":{"name":"mike","age":12,"Installed-Size":5,"items":[{"sku":"a"}],"nick":"m%"}}"#,
      #"{"key":"fred23","value":{"name":"fred","age":23,"Installed-Size":7,"pet":{"species":"cat"},"a":{"b-c":1}}}"#,
    ]
    try #require(server.larder("load", "people", "-", input: lines.joined(separator: "\n")).status == 0)
    try #require(server.larder("put", "text", "a", "b").status == 0)
    return server
  }

  @Test(arguments: [
    ([#"{"nmae":"mike"}"#], "no document of 'people' has the field 'nmae'; did you mean 'name'?"),
    ([#"{"pet.speces":"cat"}"#, "--count"], "has the field 'pet.speces'; did you mean 'pet.species'?"),
    ([#"{"age":{"gt":12}}"#], #"has the field 'age.gt'; the names of operators begin with $, as in {"age":{"$gt":…}}"#),
    ([#"{"pet":{"species":{"in":["cat"]}}}"#], #"as in {"pet.species":{"$in":…}}"#),
    (["--where", "age = mike"], "has the field 'mike'; in a predicate, text to compare with has quotes: 'mike'"),
    (["--where", "age != mike"], "has quotes: 'mike'"),
    (["--where", "Installed-Size > 3"], #"the name of the field 'Installed-Size' is written Installed\-Size"#),
    (["--where", "a.b-c = 1"], #"the name of the field 'a.b-c' is written a.b\-c"#),
    (["--where", "name LIKE 'm%'"], "'m%', in which % is an ordinary character: * stands for any text"),
    ([#"{"name":{"$like":"m%"}}"#], "in which % is an ordinary character"),
    (["--sort", "agee"], "has the field 'agee'; did you mean 'age'?"), (["--sort", "size:desc"], "'size:desc'"),
    ([#"{"items":{"$elemMatch":{"skuu":"a"}}}"#], "has the field 'items.skuu'"), (["--distinct", "nmae"], "'nmae'"),
    (["--group-by", "name,nmae"], "'nmae'"), (["--fields", "nmae"], "'nmae'"),
    (
      ["--fields", "_id,items.sku"],
      "--fields items.sku leads into an array, and such fields are not printed; print items"
    ),
  ])
  func `a query that is probably wrong gets a warning with the right form`(arguments: [String], warning: String) throws
  {
    let find = try makeServer().larder(["find", "people"] + arguments, input: [])
    #expect(find.status == 0 && find.error.hasPrefix("larder: warning: "), "\(find)")
    #expect(find.error.contains(warning) && find.error.split(separator: "\n").count == 1, "\(find.error)")
  }

  @Test(arguments: [
    [#"{"name":"nobody"}"#], ["--where", #"Installed\-Size > 100"#], ["--where", "name LIKE 'x*'"], ["--sort", "-age"],
    ["--where", "nick LIKE 'm%'"], [#"{"none":{"$exists":true}}"#, "--skip", "1"], [#"{"none":{"$exists":false}}"#],
    [#"{"$nor":[{"none":1}]}"#], ["--fields", "age,pet.species,items.0.sku,_rev"], ["--sort", "_id,pet.species"],
    ["--group-by", "pet.species"], ["--where", "pet.@count = 7"], [#"{"_id":"nobody"}"#],
    ["--where", "age - Installed\\-Size > 1000"],
  ]) func `a query that finds nothing or has a rare field gets no warning`(arguments: [String]) throws {
    let find = try makeServer().larder(["find", "people"] + arguments, input: [])
    #expect(find.status == 0 && find.error.isEmpty, "\(find.error)")
  }

  @Test func `a query of a store without documents gets no warning`() throws {
    let server = try makeServer()
    for store in ["empty", "text"] {
      #expect(try server.larder("find", store, #"{"age":{"gt":1}}"#, "--sort", "name").error.isEmpty)
    }
  }

  @Test func `a script finds the warnings about a query in the line of statistics`() throws {
    let server = try makeServer()
    let find = try server.larder("find", "people", #"{"nmae":1}"#, "--stats")
    #expect(find.error.hasPrefix("{") && find.error.split(separator: "\n").count == 1, "\(find.error)")
    #expect(find.error.contains(#""warnings":["no document of 'people' has the field 'nmae'; did you mean"#))
    #expect(try !server.larder("find", "people", "{}", "--stats").error.contains("warnings"))
  }

  @Test func `update and delete warn about a query that is probably wrong`() throws {
    let server = try makeServer()
    let update = try server.larder("update", "people", #"{"age":{"gt":12}}"#, "--set", "{}")
    #expect(update.text == "0\n" && update.error.contains("begin with $"), "\(update.error)")
    let delete = try server.larder("delete", "people", "--where", "name = mike")
    #expect(delete.text == "0\n" && delete.error.contains("has quotes: 'mike'"), "\(delete.error)")
    #expect(try server.larder("update", "people", #"{"age":99}"#, "--set", "{}").error.isEmpty)
  }

  @Test(arguments: [
    (["find", "people", "--sort", "size desc"], #"write -size, or ["size desc"] for a field of that name"#),
    (
      ["find", "people", "--sort", "name,age ASC"],
      "at $[1]: a dash before a field makes its order descending: write age"
    ),
    (["index", "create", "people", "i", "size desc"], "write -size"),
    (["find", "people", "age > 3"], "; give a predicate with --where"),
  ]) func `a query that can't be intended is an error`(arguments: [String], message: String) throws {
    let command = try makeServer().larder(arguments, input: [])
    #expect(command.status == 2 && command.error.contains(message), "\(command.error)")
  }

  @Test func `spaces around the names between commas are accepted`() throws {
    let server = try makeServer()
    let find = try server.larder("find", "people", "--sort", "name, -age", "--fields", "name, age")
    #expect(find.lines == [#"{"name":"fred","age":23}"#, #"{"name":"mike","age":12}"#] && find.error.isEmpty)
  }
}

@Suite struct `The documents that --where means` {
  private static let conditions = [
    #"{"age":{"$gt":12}}"#, "age > 12", " {\"name\":\"fred\"}", "name = 'fred' AND age BETWEEN {20, 30}",
  ]

  private func makeServer() throws -> RunningServer {
    let server = try RunningServer(stores: ["people=memory"])
    for (key, age) in [("mike", 12), ("fred", 23)] {
      try #require(server.larder("put", "people", key, #"{"name":"\#(key)","age":\#(age)}"#).status == 0)
    }
    return server
  }

  @Test(arguments: conditions) func `every command with --where accepts a selector or a predicate`(
    condition: String
  ) throws {
    let server = try makeServer()
    #expect(try server.larder("find", "people", "--where", condition, "--fields", "_id").text == "{\"_id\":\"fred\"}\n")
    #expect(try server.larder("update", "people", "--where", condition, "--set", #"{"seen":true}"#).text == "1\n")
    #expect(try server.larder("update", "people", "{}", "--where", condition, "--set", #"{"seen":1}"#).text == "1\n")
    #expect(try server.larder("update", "people", #"{"age":1}"#, "--where", condition, "--set", "{}").text == "0\n")
    #expect(try server.larder("delete", "people", "--where", condition, "--dry-run").text == "1\n")
    #expect(try server.larder("delete", "people", "--where", condition).text == "1\n")
    #expect(try server.larder("page", "people", "--keys-only").lines.count == 1)
  }

  @Test func `update requires a selector or --where`() throws {
    let command = try makeServer().larder("update", "people", "--set", "{}")
    #expect(command.status == 2 && command.error.contains("'<selector>', or --where"), "\(command.error)")
  }
}
