import Testing

@testable import larder

/// `larder apply` reads what `larder watch` and `larder backup --since` print.
@Suite struct `The changes of a store` {
  /// Makes changes of every kind in a store that has some entries.
  private func makeChanges(_ server: RunningServer) throws {
    for arguments in [
      ["put", "items", "a", #"{"n":1}"#], ["put", "items", "text", "two\nlines"],
      ["delete", "items", "--all", "--yes"],
      ["put", "items", "b", #"{"n":2}"#], ["put", "items", "expiring", "x", "--expire", "1h"],
      ["put", "items", "c", ""],
      ["delete", "items", "c"], ["update", "items", "{}", "--set", #"{"seen":true}"#],
      ["index", "create", "items", "by-n", "n"], ["touch", "items", "b", "--expire", "2h"], ["persist", "items", "b"],
    ] {
      let command = try server.larder(arguments, input: [])
      #expect(command.status == 0, "\(arguments): \(command.error)")
    }
    let lines = [
      #"{"put":"list","values":["a",{"b":1}]}"#, #"{"put":"bytes","valueBase64":"AP8="}"#,
      #"{"put":"binary list","valuesBase64":["AP8=",""]}"#, #"{"update":"b","set":{"$inc":{"n":1}}}"#,
    ]
    #expect(try server.larder("apply", "items", "-", input: lines.joined(separator: "\n")).status == 0)
  }

  /// The entries of a store without revisions and the time left.
  private func contents(_ store: String, _ server: RunningServer) throws -> [String] {
    try server.larder("dump", store).lines.map { line in
      line.replacing(try Regex(#","revision":\d+|(,"expires(?:In|At)Milliseconds":)\d+"#)) { $0[1].substring ?? "" }
    }
  }

  @Test func `changes since a revision are backed up and applied to a restored backup`() throws {
    let server = try RunningServer(stores: ["items=memory"])
    let folder = try TemporaryFolder()
    let (full, changes) = (folder.file("full").path, folder.file("changes").path)
    _ = try server.larder("put", "items", "a", "0")
    _ = try server.larder("put", "items", "kept", "0")
    let backup = try server.larder("backup", "items", full)
    #expect(backup.text == "2\n" && backup.error.isEmpty)
    #expect(try server.larder("verify", full).text.contains(#""revision":2,"#))
    try makeChanges(server)
    let increment = try server.larder("backup", "items", changes, "--since", "2")
    let revision = try #require(increment.lines.first)
    #expect(increment.status == 0 && increment.error.isEmpty, "\(increment.error)")
    #expect(try server.larder("restore", "copy", full).status == 0)
    let applied = try server.larder("apply", "copy", changes)
    #expect(applied.text == "\(revision)\n" && applied.error.isEmpty, "\(applied.error)")
    #expect(try contents("copy", server) == contents("items", server))
    #expect(try server.larder("dump", "copy").lines.count == 5)
    // Again, which does no harm, and nothing new.
    #expect(try server.larder("apply", "copy", changes).status == 0)
    #expect(try contents("copy", server) == contents("items", server))
    #expect(try server.larder("backup", "items", "-", "--since", revision).text == "{\"through\":\(revision)}\n")
  }

  @Test func `a backup of changes is refused if some of them are gone`() throws {
    let server = try RunningServer()
    _ = try server.larder("put", "items", "a", "0")
    _ = try server.larder("put", "items", "a", "1")
    let folder = try TemporaryFolder()
    let increment = try server.larder("backup", "items", folder.file("x").path, "--since", "0")
    #expect(increment.status == 3 && increment.error.contains("make a whole backup"), "\(increment)")
    #expect(try server.shell("ls \(folder.path)").text.isEmpty)
  }

  @Test func `apply copies watched changes to another store, each commit in one step`() throws {
    let server = try RunningServer(stores: ["items=memory", "copy=memory"])
    let watching = try server.shell(
      """
      mkfifo "$TMPDIR/changes"
      larder watch items > "$TMPDIR/changes" 2> "$TMPDIR/begun" & watch=$!
      larder apply copy "$TMPDIR/changes" > "$TMPDIR/applied" & apply=$!
      until grep -q "watching 'items' from revision 1" "$TMPDIR/begun"; do sleep 0.01; done
      larder put items x 1; larder put items y 2
      printf '{"put":"m","value":1}\\n{"put":"n","value":2}\\n{"delete":"x"}\\n' | larder apply items -
      for ((i = 0; i < 500; i++)); do larder get copy n > "$TMPDIR/n" 2> "$TMPDIR/none" && break; sleep 0.01; done
      kill $watch; wait $apply; cat "$TMPDIR/applied"
      """)
    #expect(watching.text == "1\n2\n3\n3\n", "\(watching)")
    let entries = try server.larder("dump", "copy").lines
    #expect(entries.count == 3, "\(entries)")
    #expect(entries[0].hasSuffix(#""revision":3}"#) && entries[1].hasSuffix(#""revision":3}"#), "\(entries)")
  }

  @Test(arguments: [
    (
      #"{"key":"a","value":"1","revision":7}|{"key":"b","revision":8}"#, "line 2: the change has no value",
      "up to revision 7"
    ),
    (#"{"key":"a","value":"1","revision":7,"more":true}"#, "the rest of its commit is missing", "no changes were made"),
    (#"{"key":"a","deleted":true}"#, "the change has no 'revision'", "no changes were made"),
    (#"{"deletedAll":true,"key":"a","revision":1}"#, "can't have a key", "no changes were made"),
    (
      #"{"key":"a","value":"1","revision":7}|{"put":"b","value":1}"#, #"a change can't have the member "put""#,
      "up to revision 7"
    ),
    (
      #"{"key":"a","value":"1","revision":7,"more":true}|{"through":7}"#, "the commit before it", "no changes were made"
    ),
    (#"{"key":"a","value":"1","revision":7}|{"through":-1}"#, "'through' is not a whole number", "up to revision 7"),
    (
      #"{"key":"a","value":"1","revision":7}|{"key":"b","value":"#, "expected",
      "up to revision 7 were made; to continue, watch from 8"
    ),
  ]) func `an invalid change ends apply, and the error says how far it got`(
    lines: String, message: String, progress: String
  ) throws {
    let server = try RunningServer()
    let command = try server.larder("apply", "items", "-", input: lines.replacing("|", with: "\n"))
    #expect(command.status == 2 && command.output.isEmpty)
    #expect(command.error.contains(message) && command.error.contains(progress), "\(command.error)")
    #expect(try server.larder("count", "items").text == (progress.hasPrefix("up to") ? "1\n" : "0\n"))
  }
}
