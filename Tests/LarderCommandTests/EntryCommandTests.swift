import Foundation
import Testing

@Suite struct `Commands on stores and entries` {
  @Test func `stores are created, listed and dropped`() throws {
    let server = try RunningServer()
    #expect(try server.larder("create", "more", "memory").status == 0)
    #expect(
      try server.larder("stores").text
        == #"{"name":"items","engine":"memory","entries":0}"# + "\n" + #"{"name":"more","engine":"memory","entries":0}"#
        + "\n")
    let again = try server.larder("create", "more", "memory")
    #expect(again.status == 3)
    #expect(again.error.contains("already"))
    #expect(try server.larder("create", "other", "paper").status == 3)
    // Without a terminal there is nobody to ask.
    #expect(try server.larder("drop", "more").status == 2)
    #expect(try server.larder("drop", "more", "--yes").status == 0)
    #expect(try server.larder("drop", "more", "--yes").status == 3)
  }

  @Test func `ping and stats succeed`() throws {
    let server = try RunningServer()
    #expect(try server.larder("ping").text.hasSuffix(" ms\n"))
    let statistics = try JSONDecoder().decode([String: UInt64].self, from: Data(server.larder("stats").output))
    #expect(statistics["stores"] == 1)
    #expect(try server.larder("stats", "items").text.contains(#""entries":0,"#))
    #expect(try server.larder("stats", "nothing").status == 3)
  }

  @Test func `statistics are repeated until the command is interrupted`() throws {
    let server = try RunningServer()
    let watch = try server.shell(
      """
      : > "$TMPDIR/out"
      larder stats --watch --interval 50ms >> "$TMPDIR/out" & watch=$!
      until [ $(wc -l < "$TMPDIR/out") -ge 3 ]; do sleep 0.02; done
      kill -INT $watch; wait $watch; echo status $?
      cat "$TMPDIR/out"
      """)
    #expect(watch.lines[0] == "status 0" && watch.error.isEmpty)
    for line in watch.lines.dropFirst() {
      #expect(try JSONDecoder().decode([String: UInt64].self, from: Data(line.utf8))["stores"] == 1)
    }
    #expect(try server.larder("stats", "--interval", "1s").status == 2)
    #expect(try server.larder("slowlog").status == 0)
  }

  @Test func `the busiest connections are shown with their processes`() throws {
    let server = try RunningServer()
    let line = try server.larder("top")
    let found = try #require(JSONSerialization.jsonObject(with: Data(line.text.utf8)) as? [String: Any])
    #expect(found["command"] as? String == "larder" && found["client"] as? String == "larder")
    #expect(found["process"] is Int && found["user"] as? UInt32 == getuid() && found["address"] == nil)
    #expect(found["connection"] as? Int ?? 0 > 0 && found["waitingBytes"] as? Int == 0)
    #expect(try server.larder("top", "--limit", "0").status == 2)
    #expect(try server.larder("top", "--interval", "1s").status == 2)
  }

  @Test func `a value is written, read and deleted byte for byte`() throws {
    let server = try RunningServer()
    #expect(try server.larder("put", "items", "apple", "red").text == "1\n")
    #expect(try server.larder("get", "items", "apple").text == "red")
    let bytes = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
    #expect(try server.larder(["put", "items", "🍐 pear"], input: bytes).text == "2\n")
    #expect(try server.larder("get", "items", "🍐 pear").output == bytes)
    #expect(try server.larder("put", "items", "--", "-5", "-x").status == 0)
    #expect(try server.larder("get", "items", "--", "-5").text == "-x")
    #expect(try server.larder("put", "items", "empty", "").status == 0)
    #expect(try server.larder("get", "items", "empty").output.isEmpty)
    #expect(try server.larder("count", "items").text == "4\n")
    #expect(try server.larder("delete", "items", "apple", "🍐 pear", "nobody").text == "2\n")
    #expect(try server.larder("delete", "items", "apple").text == "0\n")
    let missing = try server.larder("get", "items", "apple")
    #expect(missing.status == 1)
    #expect(missing.output.isEmpty)
    #expect(missing.error.hasPrefix("larder: 'items' has no entry 'apple'"))
  }

  @Test func `a range of a value is printed`() throws {
    let server = try RunningServer()
    #expect(try server.larder("put", "items", "digits", "0123456789").status == 0)
    let ranges = [
      "0-3": "0123", "4-4": "4", "7-": "789", "8-99": "89", "-3": "789", "-99": "0123456789", "10-": "", "10-20": "",
      "0-9223372036854775807": "0123456789",
    ]
    for (range, bytes) in ranges {
      let command = try server.larder("get", "items", "digits", "--range", range)
      #expect(command.status == 0 && command.text == bytes, "\(range): \(command)")
    }
    for range in ["", "-", "5", "5-4", "-0", "a-b", "1--2", "+1-2", "9223372036854775808-"] {
      let command = try server.larder("get", "items", "digits", "--range", range)
      #expect(command.status == 2 && command.error.contains("is not a range"), "\(range): \(command)")
    }
    let beyond = try server.larder("get", "items", "digits", "--range", "11-")
    #expect(beyond.status == 2 && beyond.output.isEmpty && beyond.error.contains("has only 10 bytes"))
    #expect(try server.larder("get", "items", "nothing", "--range", "0-1").status == 1)
    let large = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 ^ $0 >> 8) }
    #expect(try server.larder(["put", "items", "large"], input: large).status == 0)
    #expect(try server.larder("get", "items", "large").output == large)
    let middle = try server.larder("get", "items", "large", "--range", "1000-2500000")
    #expect(middle.output == Array(large[1_000...2_500_000]))
  }

  @Test func `a value is written from a file or a pipe`() throws {
    let server = try RunningServer()
    let copied = try server.shell(
      """
      head -c 5000000 /dev/urandom > "$TMPDIR/file" && : > "$TMPDIR/empty"
      larder put items file --file "$TMPDIR/file" && larder get items file | cmp - "$TMPDIR/file" && echo file
      cat "$TMPDIR/file" | larder put items pipe --if-absent && larder get items pipe | cmp - "$TMPDIR/file" && echo pipe
      larder put items - --file - < "$TMPDIR/file" --expire 1h && larder get items - | cmp - "$TMPDIR/file" && echo dash
      larder put items empty --file "$TMPDIR/empty" && larder get items empty | cmp - "$TMPDIR/empty" && echo empty
      cat "$TMPDIR/file" | larder put items pipe --if-absent; echo $?
      larder put items pipe --if-revision 2 --file "$TMPDIR/file"; larder count items
      """)
    #expect(copied.lines == ["1", "file", "2", "pipe", "3", "dash", "4", "empty", "3", "5", "4"], "\(copied)")
    #expect(copied.error.contains("the key has an entry"))
    let both = try server.larder("put", "items", "a", "b", "--file", "c")
    #expect(both.status == 2 && both.error.contains("not both"))
    #expect(try server.larder("put", "items", "a", "--file", "/nowhere/at-all").status == 2)
    let tooLarge = try server.shell("head -c 20000000 /dev/zero | larder put items large")
    #expect(tooLarge.status == 3 && tooLarge.error.contains("the value has more than the 16"), "\(tooLarge)")
    #expect(try server.larder("get", "items", "large").status == 1)
  }

  @Test func `changes are printed as they happen until the command is interrupted`() throws {
    let server = try RunningServer()
    #expect(try server.larder("put", "items", "old", "1").status == 0)
    let watch = try server.shell(
      """
      larder watch items --prefix a > "$TMPDIR/out" & watch=$!
      until larder stats items | grep -q '"watches":1'; do sleep 0.02; done
      larder put items apple '{"a":1}' && larder put items bear 1 && larder put items au 1 --expire 1h && larder \
      delete items apple
      until [ $(wc -l < "$TMPDIR/out") = 3 ]; do sleep 0.02; done
      kill -INT $watch; wait $watch; echo status $?
      cat "$TMPDIR/out"
      """)
    #expect(watch.error == "larder: watching 'items' from revision 2\n")
    #expect(
      watch.lines.suffix(4).map { $0.prefix(60) }
        == [
          "status 0", #"{"key":"apple","value":{"a":1},"revision":2}"#,
          #"{"key":"au","value":"1","revision":4,"expiresInMilliseconds":"#,
          #"{"key":"apple","deleted":true,"revision":5}"#,
        ].map { $0.prefix(60) })
    let lost = try server.larder("watch", "items", "--from", "1")
    #expect(lost.status == 3 && lost.error.contains("larder dump"))
    #expect(try server.larder("watch", "items", "--from", "0").status == 2)
    #expect(try server.larder("watch", "nothing").status == 3)
  }

  @Test func `put accepts a condition and an expiry`() throws {
    let server = try RunningServer()
    #expect(try server.larder("put", "items", "a", "1", "--if-absent").text == "1\n")
    #expect(try server.larder("put", "items", "a", "2", "--if-absent").status == 3)
    #expect(try server.larder("put", "items", "a", "2", "--if-revision", "9").status == 3)
    #expect(try server.larder("put", "items", "a", "2", "--if-revision", "1").text == "2\n")
    #expect(try server.larder("put", "items", "a", "3", "--expire", "90m").text == "3\n")
    #expect(try server.larder("get-many", "items", "a").text.contains(#","expiresInMilliseconds":53"#))
    #expect(try server.larder("put", "items", "a", "3", "--expire", "150ms").text == "4\n")
    usleep(160_000)
    #expect(try server.larder("get", "items", "a").status == 1)
  }

  @Test func `several keys are printed in the order given`() throws {
    let server = try RunningServer()
    _ = try server.larder("put", "items", "a", #"{"b": [1, 2]}"#)
    _ = try server.larder("put", "items", "line\n\"", "two\nlines")
    let many = try server.larder("get-many", "items", "line\n\"", "zz", "a", "a")
    #expect(many.status == 0)
    #expect(
      many.lines == [
        #"{"key":"line\n\"","value":"two\nlines","revision":2}"#, #"{"key":"zz","missing":true}"#,
        #"{"key":"a","value":{"b": [1, 2]},"revision":1}"#, #"{"key":"a","value":{"b": [1, 2]},"revision":1}"#,
      ])
  }

  @Test func `page prints the requested range`() throws {
    let server = try RunningServer()
    let lines = (0..<300).map { #"{"key":"k\#($0 + 100)","value":"\#($0)"}"# }
    #expect(try server.larder("load", "items", "-", input: lines.joined(separator: "\n")).status == 0)
    func keys(_ arguments: String...) throws -> [String] {
      try server.larder(["page", "items", "--keys-only"] + arguments, input: []).lines.map {
        String($0.dropFirst(8).prefix(4))
      }
    }
    #expect(try keys().count == 100)
    #expect(try keys("--offset", "290").count == 10)
    #expect(try keys("--limit", "2") == ["k100", "k101"])
    #expect(try keys("--limit", "2", "--after", "k150") == ["k151", "k152"])
    #expect(try keys("--limit", "2", "--after", "k150", "--reverse") == ["k149", "k148"])
    #expect(try keys("--prefix", "k39", "--reverse", "--limit", "1", "--offset", "1") == ["k398"])
    #expect(
      try server.larder("page", "items", "--limit", "1").text.hasPrefix(#"{"key":"k100","value":"0","revision":"#))
    #expect(try !server.larder("page", "items", "--limit", "1", "--keys-only").text.contains("value"))
  }

  @Test(arguments: [
    ["get", "none", "a"], ["count", "none"], ["page", "none"], ["dump", "none"], ["delete", "none", "a"],
  ])
  func `a command on a missing store ends with status 3`(arguments: [String]) throws {
    let command = try RunningServer().larder(arguments, input: [])
    #expect(command.status == 3)
    #expect(command.error.contains("larder create"))
    #expect(command.output.isEmpty)
  }
}
