import Foundation
import Testing

@testable import larder

@Suite struct `The format of results` {
  private func makeServer() throws -> RunningServer {
    let server = try RunningServer()
    for (key, value) in [("a", "1"), ("b,\"c\"", "two\nlines"), ("p", #"{"name":"mike","age":12}"#)] {
      #expect(try server.larder("put", "items", "--", key, value).status == 0)
    }
    return server
  }

  @Test func `results are printed as CSV on request`() throws {
    let server = try makeServer()
    let entries =
      "key,value,revision,expiresInMilliseconds,expiresAtMilliseconds\na,1,1,,\n\"b,\"\"c\"\"\",\"two\nlines\",2,,\n"
      + #"p,"{""name"":""mike"",""age"":12}",3,,"# + "\n"
    #expect(try server.larder("dump", "items", "--format", "csv").text == entries)
    #expect(try server.larder("page", "items", "--format", "csv").text == entries)
    #expect(
      try server.larder("page", "items", "--format=csv", "--keys-only", "--limit", "1").text
        == "key,revision,expiresInMilliseconds,expiresAtMilliseconds\na,1,,\n")
    #expect(
      try server.larder("get-many", "items", "a", "none", "--format", "csv").text
        == "key,value,revision,expiresInMilliseconds,expiresAtMilliseconds\na,1,1,,\nnone,,,,\n")
    #expect(
      try server.larder("find", "items", "--fields", "name,age", "--format", "csv").text == "name,age\nmike,12\n")
    #expect(
      try server.larder("find", "items", "--fields", "age,_id,name", "--format", "csv").text
        == "age,_id,name\n12,p,mike\n")
    #expect(
      try server.larder("stores", "--format", "csv").text
        == "STORE,ENGINE,DURABILITY,LIMIT,ENTRIES\nitems,memory,-,-,3\n")
    #expect(try server.larder("page", "items", "--prefix", "x", "--format", "csv").lines.count == 1)
    #expect(try server.larder(["put", "items", "bytes"], input: [0xFF]).status == 0)
    let binary = try server.larder("dump", "items", "--format", "csv")
    #expect(binary.status == 2 && binary.error.contains("'bytes' has bytes that are not UTF-8"))
  }

  @Test func `results are printed as a table without a terminal, with whole cells`() throws {
    let server = try makeServer()
    let long = String(repeating: "x", count: 300)
    #expect(try server.larder("put", "items", "long", long).status == 0)
    let table = try server.larder("page", "items", "--format", "table")
    #expect(table.lines.first == "KEY    REVISION  VALUE" && table.text.contains(long))
    #expect(!table.text.contains("\u{1B}"))
    let colored = try server.larder("page", "items", "--format", "table", "--color", "always")
    #expect(colored.lines.first == "\u{1B}[1mKEY    REVISION  VALUE\u{1B}[0m")
    #expect(
      try server.larder("page", "items", "--format", "json", "--color", "always").text
        == server.larder("page", "items").text)
    #expect(try server.larder("dump", "items", "--format", "table").text == table.text)
    #expect(try server.larder("page", "items", "--format", "tabel").error.contains("'tabel' is invalid"))
  }

  @Test func `a script sets the format of its results`() throws {
    let server = try makeServer()
    let run = try server.larder(
      [],
      input: Array("page items --limit 1\nformat csv\npage items --limit 1\nformat table\nstores --format json".utf8))
    #expect(run.lines.count == 4 && run.lines[1].hasPrefix("key,value") && run.lines[3].hasPrefix(#"{"name":"items""#))
  }
}

@Suite struct `A misspelled name` {
  @Test func `a misspelled store, index, engine or unit gets a suggestion`() throws {
    let server = try RunningServer()
    #expect(try server.larder("count", "itmes").error.contains("did you mean 'items'? 'larder stores'"))
    #expect(try server.larder("page", "--limit", "1", "item").error.contains("did you mean 'items'?"))
    #expect(try !server.larder("count", "people").error.contains("did you mean"))
    #expect(try server.larder("create", "x", "memroy").error.contains("did you mean 'memory'?"))
    #expect(try server.larder("create", "x", "memroy?limit=1MiB").error.contains("did you mean 'memory'?"))
    #expect(try server.larder("index", "create", "items", "by-name", "name").status == 0)
    #expect(try server.larder("index", "delete", "items", "by-nmae").error.contains("did you mean 'by-name'?"))
    #expect(try server.larder("find", "items", "--use-index", "byname").error.contains("did you mean 'by-name'?"))
    #expect(try server.larder("put", "items", "k", "v", "--expire", "10 minutes").error.contains("did you mean 10m?"))
    #expect(try server.larder("put", "items", "k", "v", "--expire", "10").error.contains("did you mean 10s?"))
    #expect(try server.larder("put", "items", "k", "v", "--exprie", "10s").error.contains("--expire"))
    let run = try server.larder([], input: Array("count itmes\n".utf8))
    #expect(run.error.hasPrefix("larder: line 1: there is no store \"itmes\"; did you mean 'items'?"), "\(run.error)")
  }
}
