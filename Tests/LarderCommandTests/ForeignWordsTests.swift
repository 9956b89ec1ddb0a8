import Testing

/// What people type who know other databases, and what they connect to.
@Suite struct `Words and servers of other databases` {
  @Test(arguments: [
    (["set", "a", "b"], "did you mean 'put'?"), (["keys"], "did you mean 'page STORE --keys-only'?"),
    (["ls"], "did you mean 'stores'?"), (["del", "items", "a"], "did you mean 'delete'?"),
    (["scan"], "did you mean 'page'?"), (["version"], "did you mean 'larder --version'?"),
    (["put", "items", "a", "b", "--ttl", "5s"], "Unknown option '--ttl'; did you mean '--expire'?"),
    (["put", "items", "a", "b", "--ttl=5s"], "Unknown option '--ttl'; did you mean '--expire'?"),
    (["find", "items", "--filter", "a = 1"], "did you mean '--where'?"),
    (["index", "ls"], "there is no command 'ls'; see"),
  ])
  func `a command of another database gets the equivalent of larder as a hint`(arguments: [String], message: String)
    throws
  {
    let command = try Command.larder(["--server", "unix:/tmp/larder-nobody.sock"] + arguments)
    #expect(command.status == 2 && command.error.contains(message), "\(command.error)")
    let script = arguments.joined(separator: " ").replacing("a = 1", with: "'a = 1'")
    let line = try Command.larder(["--server", "unix:/tmp/larder-nobody.sock"], input: Array(script.utf8))
    #expect(line.status == 2 && line.error.contains(message), "\(line.error)")
  }

  @Test func `a server that isn't larderd is recognized before the timeout`() throws {
    let server = try RunningServer()
    let run = try server.shell(
      """
      larderd --listen "unix:$TMPDIR/other" --metrics "unix:$TMPDIR/metrics" 2> "$TMPDIR/log" & other=$!
      until larder --server "unix:$TMPDIR/other" ping > /dev/null 2>&1; do sleep 0.01; done
      larder --server "unix:$TMPDIR/metrics" --timeout 1h ping
      echo $?
      kill $other
      """)
    #expect(run.text == "4\n" && run.error.contains("/metrics is an HTTP server, and not larderd; "), "\(run)")
  }

  @Test(arguments: ["[{\"a\":1},{\"a\":2}]", " [\n{\"a\":1}]"])
  func `load refuses a JSON array and suggests JSON lines`(text: String)
    throws
  {
    let load = try RunningServer().larder("load", "items", "-", "--key", "a", input: text)
    #expect(load.status == 2 && load.error.contains("it begins a JSON array"), "\(load.error)")
    #expect(load.error.contains("jq -c '.[]' FILE"))
  }

  @Test func `larderd refuses a folder with files of another program`() throws {
    let run = try Command.shell(
      """
      cd "$(mktemp -d)"; mkdir foreign empty; touch foreign/notes; chmod 755 empty
      larderd --data "$PWD/foreign" --listen "unix:$PWD/s" 2> error; echo $?; ls foreign
      larderd --data "$PWD/empty" --store a=log --listen "unix:$PWD/s" 2> log & server=$!
      until larder --server "unix:$PWD/s" ping > /dev/null 2>&1; do sleep 0.01; done
      stat -c %a empty; kill $server; wait $server; cat error; rm -r "$PWD"
      """)
    #expect(run.text.hasPrefix("78\nnotes\n700\nlarderd: data: "), "\(run)")
    #expect(run.text.contains(#"is not a data directory of larderd, but has "notes" in it"#))
  }
}
