import Foundation
import Testing

@Suite struct `Loading and dumping` {
  private static let odd = [
    #"{"key":"\u0000\u001f\"\\\/ é","value":"nul \u0000, tab \t"}"#,
    #"{"key":"binary","valueBase64":"AP/+gGA="}"#,
    #"{"key":"blank","value":""}"#,
    #"{"key":"container","value":{ "a" : [1.50, -0, 1E+2],"a":"twice","deep":[[[]]] , "s":"\ud83d\ude00\/" }}"#,
    #"{"key":"list","values":["text",{"a": 1},"{not json","", [ ]]}"#,
    #"{"key":"list of bytes","valuesBase64":["","/w==","QQ=="]}"#,
    #"{"key":"no list","values":[]}"#,
    #"{"key":"number","value":12.50}"#,
    #"{"key":"padded","value":" {\"a\":1} "}"#,
    #"{"key":"two lines","value":"{\n}"}"#,
    #"{"key":"😀 emoji","value":"🧺\u2028\ud83e\uddfa"}"#,
  ]

  /// Returns a dump without its revisions.
  private func dump(_ server: RunningServer, _ store: String) throws -> String {
    try server.larder("dump", store).text.replacing(try Regex(#","revision":\d+"#), with: "")
  }

  @Test func `a loaded dump has the same bytes`() throws {
    let server = try RunningServer()
    _ = try server.larder("create", "copy", "memory")
    let loading = try server.larder("load", "items", "-", input: Self.odd.joined(separator: "\r\n"))
    #expect(loading.status == 0 && loading.output.isEmpty && loading.error.isEmpty)
    #expect(try server.shell("larder dump items | larder load copy -").status == 0)
    #expect(try dump(server, "items") == dump(server, "copy"))
    #expect(try server.larder("count", "copy").text == "\(Self.odd.count)\n")
    for store in ["items", "copy"] {
      #expect(try server.larder("get", store, "binary").output == [0x00, 0xFF, 0xFE, 0x80, 0x60])
      #expect(try server.larder("get", store, "padded").text == #" {"a":1} "#)
      #expect(try server.larder("get", store, "two lines").text == "{\n}")
      #expect(try server.larder("get", store, "number").text == "12.50")
      #expect(
        try server.larder("get", store, "container").text
          == #"{ "a" : [1.50, -0, 1E+2],"a":"twice","deep":[[[]]] , "s":"\ud83d\ude00\/" }"#)
      #expect(
        try server.larder("get-many", store, "list").text.hasPrefix(
          #"{"key":"list","values":["text",{"a": 1},"{not json","",[ ]],"#))
      #expect(try server.larder("get", store, "list").status == 2)
    }
  }

  @Test func `dump and load preserve the expiry`() throws {
    let server = try RunningServer()
    _ = try server.larder("create", "copy", "memory")
    _ = try server.larder("put", "items", "a", "1", "--expire", "1h")
    #expect(try server.shell("larder dump items | larder load copy -").status == 0)
    let line = try server.larder("get-many", "copy", "a").text
    let left = try #require(
      line.firstMatch(of: try Regex(#""expiresInMilliseconds":(\d+),"expiresAtMilliseconds":\d+}"#))?[1].substring
        .flatMap { Int($0) })
    #expect((3_500_000...3_600_000).contains(left))
  }

  @Test(arguments: ["json", "csv"])
  func `loading does not prolong a life`(format: String) throws {
    let server = try RunningServer()
    _ = try server.larder("create", "copy", "memory")
    _ = try server.larder("put", "items", "a", "1", "--expire", "1h")
    let text = try server.larder("dump", "items", "--format", format).text
    let time = try #require(text.firstMatch(of: #/[^0-9](\d{13})[^0-9]/#)?.1)
    // As if half an hour had passed, or two hours, since the dump.
    let later = text.replacing(time, with: "\(try #require(Int(time)) - 1_800_000)")
    let gone = text.replacing(time, with: "\(try #require(Int(time)) - 7_200_000)")
    for text in [later, gone] {
      #expect(try server.larder("load", "copy", "-", "--format", format, input: text).status == 0)
    }
    #expect(try server.larder("get", "copy", "a").status == 1)
    #expect(try server.larder("load", "copy", "-", "--format", format, input: later).status == 0)
    let line = try server.larder("get-many", "copy", "a").text
    let left = try #require(line.firstMatch(of: #/"expiresInMilliseconds":(\d+)/#).flatMap { Int($0.1) })
    #expect((1_700_000...1_800_000).contains(left))
  }

  @Test func `load takes any objects, with one of their members as the key`() throws {
    let server = try RunningServer()
    let input = """
      {"id":12,"name":"a"}

       { "id" : "tw\\u0065lve" }
      {"id":-7,"id2":null}

      """
    #expect(try server.larder("load", "items", "-", "--key", "id", input: input).status == 0)
    #expect(try server.larder("get", "items", "12").text == #"{"id":12,"name":"a"}"#)
    #expect(try server.larder("get", "items", "twelve").text == #" { "id" : "tw\u0065lve" }"#)
    #expect(try server.larder("get", "items", "--", "-7").status == 0)
  }

  @Test func `many lines are loaded, and the last one for each key wins`() throws {
    let server = try RunningServer()
    var input = ""
    for index in 0..<30_000 { input += #"{"key":"\#(index % 3_000)","value":"\#(index)"}"# + "\n" }
    #expect(try server.larder("load", "items", "-", input: input).status == 0)
    #expect(try server.larder("count", "items").text == "3000\n")
    let dump = try server.larder("dump", "items").lines
    #expect(dump.count == 3_000)
    #expect(
      dump.allSatisfy { line in
        let parts = line.split(separator: "\"")
        return Int(parts[6]) == Int(parts[2]).map { $0 + 27_000 }
      })
  }

  private static let wrong = [
    ("nonsense", "expected an object, at column 1"),
    (#"{"key":"b","value":1"#, "expected a comma or }, at column 21"),
    (#"{"key":"b","value":1} x"#, "expected the end of the text, at column 23"), (#"{"value":1}"#, "no 'key'"),
    (#"{"key":"b"}"#, "no 'value'"),
    (#"{"key":"b","value":1,"values":[]}"#, "more than one value"), (#"{"key":7,"value":1}"#, "not a string"),
    (#"{"key":"","value":1}"#, "0 bytes"), (#"{"key":"b","value":"\ud800"}"#, "surrogate"),
    (#"{"key":"b","valueBase64":"A"}"#, "Base64"),
    (#"{"key":"b","value":1,"id":2}"#, "--key FIELD"),
    (#"{"key":"b","value":1,"expiresInMilliseconds":0}"#, "whole number"),
    (#"{"key":"b","values":{}}"#, "not an array"), (#"{"key":"b","value":01}"#, "expected a comma or }, at column 21"),
    (#"{"key":"b","missing":true}"#, "missing"), (#"{"key":"b","key":"c","value":1}"#, "twice"),
  ]

  @Test func `load stops at an invalid line and names it`() throws {
    let server = try RunningServer()
    for (line, reason) in Self.wrong {
      let input = #"{"key":"a","value":"1"}"# + "\n\n" + line + "\n" + #"{"key":"z","value":"1"}"#
      let command = try server.larder("load", "items", "-", input: input)
      #expect(command.status == 2)
      #expect(command.error.hasPrefix("larder: line 3: "))
      #expect(command.error.contains(reason) && command.error.contains("(entries: 1)"), "\(command.error)")
    }
    #expect(try server.larder("dump", "items").lines == [#"{"key":"a","value":"1","revision":\#(Self.wrong.count)}"#])
  }

  @Test func `CSV becomes objects, or the entries that were dumped`() throws {
    let server = try RunningServer()
    let input = """
      \u{FEFF}id,name,age,"has, comma",zip\r
      a,"Ada ""L""
      Lovelace",36,true,007\r

      b,,-1.5,"",x
      """
    #expect(try server.larder("load", "items", "-", "--format", "csv", "--key", "id", input: input).status == 0)
    #expect(
      try server.larder("get", "items", "a").text
        == #"{"id":"a","name":"Ada \"L\"\nLovelace","age":36,"has, comma":true,"zip":"007"}"#)
    #expect(try server.larder("get", "items", "b").text == #"{"id":"b","age":-1.5,"zip":"x"}"#)
    let dump = try server.larder("dump", "items", "--format", "csv").text
    #expect(try server.larder("create", "copy", "memory").status == 0)
    #expect(try server.larder("load", "copy", "-", "--format", "csv", input: dump).status == 0)
    #expect(try server.larder("count", "copy").text == "2\n")
    #expect(try server.larder("get", "copy", "a").text == server.larder("get", "items", "a").text)
  }

  @Test(arguments: [
    ("id\na\n", "line 1: the first line has no name 'key'; use --key FIELD to load other fields"),
    ("key,key,value\n", "line 1: the name 'key' occurs twice"),
    ("key,value\na,b,c\n", "line 2: the row has 3 fields, but the first line has 2 names"),
    ("key,value\na,\"b\" c\n", "line 2: a comma is missing after the closing quote of field 2"),
    ("key,value\na,b\"c\"\n", "line 2: field 2 has a quote, but doesn't begin with one; put it in quotes"),
    ("key,value\na,\"b\nc", "line 3: the quotes of a field are not closed"),
    ("key,value\n,b\n", "line 2: the key has 0 bytes"), ("key,value,x\na,b,c\n", "line 2: an entry has no field 'x'"),
    ("key,value,expiresInMilliseconds\na,b,0\n", "line 2: 'expiresInMilliseconds' is not"),
  ])
  func `load names an invalid line of CSV`(input: String, message: String) throws {
    let server = try RunningServer()
    let run = try server.larder("load", "items", "-", "--format", "csv", input: input)
    #expect(run.status == 2 && run.error.hasPrefix("larder: " + message), "\(run.error)")
  }

  @Test func `an interrupted load says how to go on`() throws {
    let server = try RunningServer()
    let run = try server.shell(
      """
      seq 1 100000 | sed 's/.*/{"key":"&","value":&}/' >"$TMPDIR/lines"
      mkfifo "$TMPDIR/pipe"
      larder load items - <"$TMPDIR/pipe" &
      exec 3>"$TMPDIR/pipe"
      head -n 60000 "$TMPDIR/lines" >&3
      until [[ $(larder count items) == 60000 ]]; do sleep 0.02; done
      kill -TERM $!
      wait $!
      echo $?
      larder load items "$TMPDIR/lines" --resume 60000
      larder count items
      larder load items "$TMPDIR/lines" --resume 100001
      echo $?
      """)
    #expect(run.lines == ["4", "100000", "2"])
    let errors = run.error.split(separator: "\n")
    #expect(errors.count == 2)
    #expect(
      errors.first == """
        larder: interrupted; all lines up to 60000 are loaded (entries: 60000); to continue, repeat the command with \
        --resume 60000
        """)
    #expect(errors.last?.hasPrefix("larder: the input has only 100000 lines, fewer than --resume skips") == true)
  }

  @Test func `a load that fails says how to go on`() throws {
    let server = try RunningServer()
    let run = try server.shell(
      """
      (echo '{"key":"a","value":1}'; echo '{"key":"b","value":2}'; echo nonsense) >"$TMPDIR/lines"
      larder load items "$TMPDIR/lines"
      sed -i 's/nonsense/{"key":"c","value":3}/' "$TMPDIR/lines"
      larder load items "$TMPDIR/lines" --resume 2
      larder count items
      """)
    #expect(run.error.hasSuffix("correct the line; to continue, repeat the command with --resume 2\n"), "\(run.error)")
    #expect(run.lines == ["3"])
  }

  @Test func `load names a line whose value is too large`() throws {
    let server = try RunningServer()
    let large = String(repeating: "x", count: 17_000_000)
    let command = try server.larder(
      "load", "items", "-", input: #"{"key":"a","value":1}"# + "\n" + #"{"key":"b","value":"\#(large)"}"#)
    #expect(command.status == 3)
    #expect(command.error.hasPrefix("larder: 1 of the entries are loaded, then line 2 failed"))
    #expect(try server.larder(["put", "items", "b"], input: Array(large.utf8)).status == 3)
  }

  @Test func `large values are dumped and loaded`() throws {
    let server = try RunningServer()
    let value = String(repeating: "\n", count: 8_000_000)
    _ = try server.larder("create", "copy", "memory")
    _ = try server.larder("put", "items", "a", input: value)
    #expect(try server.shell("larder dump items | larder load copy -").status == 0)
    #expect(try server.larder("get", "copy", "a").output == Array(value.utf8))
  }

  @Test func `a dump ends silently when its reader closes the pipe`() throws {
    let server = try RunningServer()
    let command = try server.shell(
      """
      set -o pipefail
      seq 1 50000 | sed 's/.*/{"key":"&","value":"some text"}/' | larder load items -
      larder dump items | head -n 1
      """)
    #expect(command.status == 0)
    #expect(command.error.isEmpty)
    #expect(command.lines.count == 1)
    #expect(command.text.hasPrefix(#"{"key":"1","value":"some text","revision":"#))
  }

  @Test func `lines from a slow pipe are stored one by one`() throws {
    let server = try RunningServer()
    let script = #"(echo '{"key":"a","value":1}'; sleep 0.3; larder get items a >&2) | larder load items -"#
    #expect(try server.shell(script).error == "1")
  }

  @Test func `load and dump end with status 2 if the file can't be read or written`() throws {
    let server = try RunningServer()
    #expect(try server.larder("load", "items", "/nowhere").status == 2)
    #expect(try server.larder("load", "items", "/tmp").status == 2)
    #expect(
      try server.shell("larder dump items > /dev/full; larder put items a b; larder dump items > /dev/full").status == 2
    )
  }
}
