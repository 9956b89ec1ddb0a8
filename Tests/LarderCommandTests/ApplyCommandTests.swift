import Testing

@Suite struct `Applying operations` {
  @Test func `apply executes all lines in one step and prints the revision`() throws {
    let server = try RunningServer()
    #expect(try server.larder("put", "items", "mike12", #"{"age":12,"pet":"cat"}"#).text == "1\n")
    #expect(try server.larder("put", "items", "old", "x").text == "2\n")
    let lines = [
      #"{"check":"mike12","ifRevision":1}"#, #"{"check":"apple","ifAbsent":true}"#, "",
      #"{"put":"apple","value":"red","ifAbsent":true,"expiresInMilliseconds":60000}"#,
      #"{"put":"list","values":["a",{"b":1}]}"#, #"{"put":"bytes","valueBase64":"AP8="}"#, "  ",
      #"{"update":"mike12","set":{"$inc":{"age":1}},"ifRevision":1}"#, #"{"update":"mike12","set":{"pet":null}}"#,
      #"{"set":{"$inc":{"n":1}},"create":true,"update":"visits"}"#, #"{"delete":"old","ifRevision":2}"#,
      #"{"delete":"nobody"}"#,
    ]
    let input = lines.joined(separator: "\r\n")
    let command = try server.larder("apply", "items", "-", input: input)
    #expect(command.status == 0 && command.text == "3\n" && command.error.isEmpty, "\(command.error)")
    #expect(try server.larder("get", "items", "mike12").text == #"{"age":13}"#)
    #expect(try server.larder("get", "items", "visits").text == #"{"n":1}"#)
    #expect(try server.larder("get", "items", "bytes").output == [0, 255])
    let dump = try server.larder("dump", "items").text
    #expect(dump.contains(#"{"key":"list","values":["a",{"b":1}],"revision":3}"#), "\(dump)")
    #expect(dump.contains(#""expiresInMilliseconds""#) && !dump.contains(#""old""#))
    #expect(try server.larder("apply", "items", "-", input: #"{"delete":"nobody"}"#).text == "0\n")
    #expect(try server.larder("apply", "items", "-").text == "0\n")
  }

  @Test func `apply changes nothing if a condition fails or an operation is impossible`() throws {
    let server = try RunningServer()
    _ = try server.larder("put", "items", "a", "1")
    let failures = [
      (#"{"check":"a","ifRevision":7}"#, #"operation 2 on "a": the entry has revision 1, not 7"#),
      (#"{"put":"a","value":"2","ifAbsent":true}"#, #"operation 2 on "a": the key has an entry"#),
      (#"{"update":"none","set":{"a":1}}"#, #"operation 2 on "none": there is no entry to update"#),
      (#"{"update":"a","set":{"a":1}}"#, #"operation 2 on "a": "#),
    ]
    for (line, message) in failures {
      let command = try server.larder("apply", "items", "-", input: "{\"put\":\"b\",\"value\":\"1\"}\n\(line)\n")
      #expect((command.status == 3 || command.status == 1) && command.output.isEmpty, "\(command.error)")
      #expect(command.error.hasPrefix("larder: \(message)"), "\(command.error)")
      #expect(command.error.split(separator: "\n").count == 1)
    }
    #expect(try server.larder("count", "items").text == "1\n")
  }

  @Test(arguments: [
    ("[]", "an object"), ("{}", "the line has no operation"),
    (#"{"key":"a","value":"b"}"#, "an operation can't have the member \"key\""),
    (#"{"put":"a"}"#, "the put has no 'value'"), (#"{"put":1,"value":"b"}"#, "the key is not a string"),
    (#"{"put":"","value":"b"}"#, "the key has 0 bytes"),
    (#"{"put":"a","value":"b","values":[]}"#, "more than one value"),
    (#"{"put":"a","delete":"b"}"#, "more than one operation"),
    (#"{"delete":"a","value":"b"}"#, "the operation 'delete' can't have a value"),
    (#"{"delete":"a","ifAbsent":true}"#, "the operation 'delete' can't have the member 'ifAbsent'"),
    (#"{"update":"a"}"#, "the update has no 'set'"),
    (#"{"update":"a","set":{"$inc":{"n":"x"}}}"#, "bad update at $.$inc.n: "),
    (#"{"update":"a","set":{},"expiresInMilliseconds":1}"#, "can't have the member 'expiresInMilliseconds'"),
    (#"{"check":"a"}"#, "the check needs 'ifRevision'"),
    (#"{"check":"a","ifAbsent":false}"#, "the check needs 'ifRevision'"),
    (#"{"check":"a","ifAbsent":true,"ifRevision":1}"#, "can't be combined"),
    (#"{"check":"a","ifRevision":-1}"#, "'ifRevision' is not a whole number"),
    (#"{"check":"a","ifRevision":1,"ifRevision":2}"#, "the member 'ifRevision' occurs twice"),
    (#"{"update":"a","set":{},"create":1}"#, "'create' is neither true nor false"),
  ]) func `apply refuses an invalid line, with its number, before sending anything`(
    line: String, message: String
  ) throws {
    let input = "{\"put\":\"a\",\"value\":\"b\"}\n\n\(line)\n{\"put\":\"c\",\"value\":\"d\"}\n"
    let command = try Command.larder(
      ["--server", "unix:/tmp/larder-nobody.sock", "apply", "items", "-"], input: Array(input.utf8))
    #expect(command.status == 2 && command.output.isEmpty)
    #expect(command.error.hasPrefix("larder: line 3: ") && command.error.contains(message), "\(command.error)")
    #expect(command.error.hasSuffix("; nothing was sent; correct the line and try again\n"), "\(command.error)")
  }

  @Test func `apply requires a store and a file`() throws {
    let server = try RunningServer()
    let noStore = try server.larder("apply", "none", "-", input: #"{"delete":"a"}"#)
    #expect(noStore.status == 3 && noStore.error.contains("larder create"))
    let noFile = try server.larder("apply", "items", "/none/file.jsonl")
    #expect(noFile.status == 2 && noFile.error.contains("/none/file.jsonl"))
  }
}
