import Testing

/// `larder copy-store` makes a store equal to another one while that one is in use.
@Suite struct `Copies of stores` {
  /// The shell function `entries STORE` prints entries without revisions and the time left, which the copy has of its own.
  private static let entries = #"""
    entries() { larder dump "$1" | sed -E 's/,"revision":[0-9]+//; s/(,"expires(In|At)Milliseconds":)[0-9]+/\1/g'; }

    """#

  @Test func `a store is copied with its indexes, values of both kinds and expiry`() throws {
    let server = try RunningServer()
    let lines = [
      #"{"put":"a","value":{"n":1}}"#, #"{"put":"list","values":["a",{"b":1}]}"#,
      #"{"put":"bytes","valueBase64":"AP8="}"#, #"{"put":"empty","value":""}"#,
    ]
    #expect(try server.larder("apply", "items", "-", input: lines.joined(separator: "\n")).status == 0)
    #expect(try server.larder("put", "items", "expiring", "x", "--expire", "1h").text == "2\n")
    #expect(try server.larder("index", "create", "items", "by-n", "n").status == 0)
    let copied = try server.shell(
      "head -c 3000000 /dev/urandom | larder put items large; larder copy-store items other")
    #expect(copied.text == "3\n3\n" && copied.error.isEmpty, "\(copied)")
    let same = try server.shell(
      Self.entries
        + "diff <(entries items) <(entries other) && diff <(larder index list items) <(larder index list other)")
    #expect(same.status == 0 && same.text.isEmpty, "\(same.text.prefix(500))")
    #expect(try server.larder("dump", "other").lines.count == 6)
  }

  @Test func `a store that has entries is only replaced on request, and only where it is different`() throws {
    let server = try RunningServer(stores: ["items=memory", "other=memory"])
    let lines = (1...10_000).map { #"{"key":"key\#($0)","value":\#($0)}"# }
    #expect(try server.larder("load", "items", "-", input: lines.joined(separator: "\n")).status == 0)
    #expect(try server.larder("put", "other", "surplus", "x").status == 0)
    let refused = try server.larder("copy-store", "items", "other")
    #expect(refused.status == 3 && refused.error.contains("add --overwrite"), "\(refused)")
    #expect(try server.larder("count", "other").text == "1\n")
    #expect(try server.larder("copy-store", "items", "other", "--overwrite").status == 0)
    #expect(try server.larder("get", "other", "surplus").status == 1)
    #expect(try server.larder("count", "other").text == "10000\n")
    let revision = try server.larder("put", "other", "key7", "wrong").text
    #expect(try server.larder("copy-store", "items", "other", "--overwrite").status == 0)
    #expect(try server.larder("get", "other", "key7").text == "7")
    // One write repaired it.
    #expect(try server.larder("put", "other", "last", "x").text == "\((Int(revision.dropLast()) ?? 0) + 2)\n")
  }

  @Test func `a store is not copied to itself, nor from nowhere`() throws {
    let server = try RunningServer()
    let itself = try server.larder("copy-store", "items", "items", "--overwrite")
    #expect(itself.status == 2 && itself.error.contains("can't be copied to itself"), "\(itself)")
    let other = try server.larder("copy-store", "items", "items", "--target", server.address, "--overwrite")
    #expect(other.status == 2 && other.error.contains("can't be copied to itself"), "\(other)")
    #expect(try server.larder("copy-store", "none", "other").status == 3)
    #expect(try server.larder("copy-store", "items", "other", "--engine", "nonsense").status == 3)
    #expect(try server.larder("copy-store", "items", "other", "--target", "unix:/nowhere/s").status == 4)
    #expect(try server.larder("stores", "--format", "csv").lines.count == 2)
  }

  @Test func `a copy is killed again and again while clients write, and is complete in the end`() throws {
    let (server, target) = (try RunningServer(), try RunningServer(stores: []))
    let lines = (1...30_000).map { #"{"key":"key\#($0)","value":"\#($0)"}"# }
    #expect(try server.larder("load", "items", "-", input: lines.joined(separator: "\n")).status == 0)
    let copied = try server.shell(
      Self.entries + #"""
        write() { while [ ! -e $TMPDIR/stop ]; do
          for ((n = 0; n < 50; n++)); do
            echo "{\"put\":\"key$RANDOM\",\"value\":$RANDOM}"; echo "{\"delete\":\"key$RANDOM\"}"
          done | larder apply items - > $TMPDIR/written
        done; }
        write & writer=$!
        for pause in 0.1 0.2 0.3 0.4; do
          larder copy-store items copy --target \#(target.address) --overwrite > $TMPDIR/ignored & copy=$!
          sleep $pause; kill -9 $copy; wait $copy 2> $TMPDIR/ignored
        done
        larder copy-store items copy --target \#(target.address) --overwrite --follow > $TMPDIR/revision 2> $TMPDIR/begun &
        copy=$!
        until grep -q follows $TMPDIR/begun; do sleep 0.05; kill -0 $copy || cat $TMPDIR/begun; done
        sleep 0.5; touch $TMPDIR/stop; wait $writer
        kill $copy; wait $copy
        cat $TMPDIR/revision; larder stats items | sed -E 's/.*"revision":([0-9]+).*/\1/'
        entries items > $TMPDIR/items; LARDER_SERVER=\#(target.address) entries copy > $TMPDIR/copy
        cmp $TMPDIR/items $TMPDIR/copy && wc -l < $TMPDIR/copy
        """#)
    let numbers = copied.lines.compactMap { Int($0) }
    try #require(numbers.count == 3, "\(copied)")
    #expect(numbers[0] == numbers[1] && numbers[0] > 40 && numbers[2] > 20_000, "\(numbers)")
  }

  @Test func `a commit of the largest size is copied after smaller ones`() throws {
    let server = try RunningServer()
    let copied = try server.shell(
      """
      larder copy-store items copy --follow 2> $TMPDIR/begun > $TMPDIR/revision & copy=$!
      until grep -q follows $TMPDIR/begun; do sleep 0.02; done
      kill -STOP $copy
      for key in a b c; do larder put items $key 1; done > $TMPDIR/written
      seq 65536 | sed 's/.*/{"put":"key&","value":1}/' | larder apply items -
      kill -CONT $copy; kill $copy; wait $copy; echo $?
      cat $TMPDIR/revision; larder count copy; cat $TMPDIR/begun
      """)
    #expect(copied.lines.prefix(4) == ["4", "0", "4", "65539"], "\(copied)")
  }

  @Test func `a copy ends if its store is another one`() throws {
    let server = try RunningServer()
    let copied = try server.shell(
      """
      larder copy-store items copy --follow 2> $TMPDIR/begun > $TMPDIR/revision & copy=$!
      until grep -q follows $TMPDIR/begun; do sleep 0.02; done
      printf 'drop items --yes\ncreate items memory\n' | larder
      wait $copy; echo $?; cat $TMPDIR/begun
      """)
    #expect(copied.lines.first == "3", "\(copied)")
    #expect(copied.text.contains("another store by now") || copied.text.contains("no store"), "\(copied)")
  }

  @Test func `a copy follows the deletion of everything, and goes on when its server comes back`() throws {
    let folder = try TemporaryFolder()
    let (server, target) = (try RunningServer(), "unix:\(folder.path)/target.sock")
    let copied = try server.shell(
      Self.entries + """
        start() { larderd --listen \(target) --data \(folder.path)/data 2> $TMPDIR/log & server=$!
          until larder --server \(target) ping &> $TMPDIR/ignored; do sleep 0.02; done; }
        start
        larder put items first 1 > $TMPDIR/ignored
        larder copy-store items copy --target \(target) --engine log --follow 2> $TMPDIR/begun > $TMPDIR/revision & copy=$!
        until grep -q follows $TMPDIR/begun; do sleep 0.02; done
        larder delete items --all --yes > $TMPDIR/ignored
        larder put items second 2 > $TMPDIR/ignored
        kill -9 $server; wait $server 2> $TMPDIR/ignored
        larder put items third 3 > $TMPDIR/ignored
        until grep -q 'trying again' $TMPDIR/begun; do sleep 0.02; done
        start
        larder put items fourth 4 > $TMPDIR/ignored
        until larder --server \(target) get copy fourth > $TMPDIR/ignored 2>&1; do sleep 0.05; done
        kill $copy; wait $copy; cat $TMPDIR/revision
        LARDER_SERVER=\(target) entries copy
        kill $server; wait $server
        """)
    #expect(
      copied.text == """
        5
        {"key":"fourth","value":"4"}
        {"key":"second","value":"2"}
        {"key":"third","value":"3"}

        """, "\(copied)")
  }
}
