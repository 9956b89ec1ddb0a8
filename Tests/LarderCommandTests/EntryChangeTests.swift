import Testing

/// The commands that read an entry and change it if it is unchanged.
@Suite struct `Changes of entries` {
  @Test func `touch and persist set and remove the expiry`() throws {
    let server = try RunningServer()
    for key in ["a", "b", "c"] { #expect(try server.larder("put", "items", key, "1").status == 0) }
    #expect(try server.larder("touch", "items", "a", "b", "none", "a", "--expire", "1h").text == "2\n")
    let lines = try server.larder("get-many", "items", "a", "b", "c").lines
    #expect(lines.map { $0.contains("expiresInMilliseconds\":3") } == [true, true, false])
    #expect(lines.allSatisfy { $0.contains(#""value":"1""#) })
    #expect(try server.larder("persist", "items", "--keys-from", "-", input: "a\nb\n").text == "2\n")
    #expect(try !server.larder("dump", "items").text.contains("expires"))
    let missing = try server.larder("touch", "items", "none", "--expire", "1h")
    #expect(missing.status == 1 && missing.output.isEmpty)
    #expect(try server.larder("persist", "items", "none").status == 1)
    for arguments in [["touch", "items", "a"], ["touch", "items", "--expire", "1h"], ["persist", "items"]] {
      #expect(try server.larder(arguments, input: []).status == 2)
    }
  }

  @Test func `increment adds to a value`() throws {
    let server = try RunningServer()
    #expect(try server.larder("increment", "items", "n").text == "1\n")
    #expect(try server.larder("increment", "items", "n", "--by", "41").text == "42\n")
    #expect(try server.larder("increment", "items", "n", "--by", "-50").text == "-8\n")
    #expect(try server.larder("get", "items", "n").text == "-8")
    #expect(try server.larder("touch", "items", "n", "--expire", "1h").status == 0)
    #expect(try server.larder("increment", "items", "n").text == "-7\n")
    #expect(try server.larder("dump", "items").text.contains("expiresInMilliseconds\":35"))
    #expect(try server.larder("put", "items", "max", "\(Int64.max)").status == 0)
    #expect(try server.larder("put", "items", "text", "one").status == 0)
    for key in ["max", "text"] {
      let run = try server.larder("increment", "items", key)
      #expect(run.status == 3 && run.error.contains("nothing was changed"))
    }
    for by in ["x", "1.5", "", "{}"] { #expect(try server.larder("increment", "items", "n", "--by", by).status == 2) }
  }

  @Test func `increment adds to a field of a document`() throws {
    let server = try RunningServer()
    #expect(try server.larder("increment", "items", "d", "visits").text == "1\n")
    #expect(try server.larder("increment", "items", "d", "visits", "--by", "2").text == "3\n")
    #expect(try server.larder("increment", "items", "d", "pet.age", "--by", "1.5").text == "1.5\n")
    #expect(try server.larder("get", "items", "d").text == #"{"visits":3,"pet":{"age":1.5}}"#)
    #expect(try server.larder("put", "items", "d", #"{"name":"mike"}"#).status == 0)
    #expect(try server.larder("increment", "items", "d", "name").status == 3)
    #expect(try server.larder("put", "items", "d", "text").status == 0)
    #expect(try server.larder("increment", "items", "d", "n").status == 3)
  }

  @Test func `increments of several clients all count`() throws {
    let server = try RunningServer()
    let run = try server.shell(
      """
      for c in 1 2 3 4; do
        (for i in 1 2 3 4 5; do larder increment items n; larder increment items d n; done) &
      done
      wait
      """
    )
    #expect(Set(run.lines).count == 20 && run.lines.count == 40, "\(run.error)")
    #expect(try server.larder("get", "items", "n").text == "20")
    #expect(try server.larder("get", "items", "d").text == #"{"n":20}"#)
  }

  @Test func `copy and rename take place in one step`() throws {
    let server = try RunningServer()
    #expect(try server.larder("put", "items", "a", "1", "--expire", "1h").status == 0)
    #expect(try server.larder("put", "items", "b", "2").status == 0)
    #expect(try server.larder("copy", "items", "a", "c").text == "3\n")
    #expect(try server.larder("get-many", "items", "a", "c").text.split(separator: "expiresIn").count == 3)
    #expect(try server.larder("rename", "items", "a", "d").text == "4\n")
    #expect(try server.larder("get", "items", "a").status == 1)
    #expect(try server.larder("get", "items", "d").text == "1")
    for command in ["copy", "rename"] {
      let taken = try server.larder(command, "items", "b", "d")
      #expect(taken.status == 3 && taken.error.contains("--replace"), "\(taken.error)")
      #expect(try server.larder(command, "items", "none", "x").status == 1)
      #expect(try server.larder(command, "items", "b", "b").status == 2)
      #expect(try server.larder(command, "items", "b").status == 2)
    }
    #expect(try server.larder("get", "items", "d").text == "1")
    #expect(try server.larder("rename", "items", "b", "d", "--replace").text == "5\n")
    #expect(try server.larder("get", "items", "d").text == "2")
    #expect(try server.larder("count", "items").text == "2\n")
  }
}
