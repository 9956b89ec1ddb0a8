import Documents
import TestSupport
import Testing

@Suite struct `The members of an object` {
  private func members(_ text: String, limits: JSONLimits = JSONLimits()) throws -> [[String]] {
    let bytes = Array(text.utf8)
    var members = JSONMembers()
    try members.read(bytes.span, limits: limits)
    return members.all.map { member in
      [member.quotedName, member.name, member.value].map { String(decoding: bytes[$0], as: UTF8.self) }
    }
  }

  @Test func `members of an object are read by their position`() throws {
    #expect(
      try members(#" { "a\"" : {"b":1} , "c":[ 2 ],"d":"" , "c" :null} "#) == [
        [#""a\"""#, #"a\""#, #"{"b":1}"#], [#""c""#, "c", "[ 2 ]"], [#""d""#, "d", #""""#], [#""c""#, "c", "null"],
      ])
    #expect(try members("{}").isEmpty)
    #expect(try members("{ }\n").isEmpty)
  }

  @Test func `members of an object say whether their names have escapes`() throws {
    let bytes = Array(#"{"a":1,"\u0061":2,"é":3}"#.utf8)
    var members = JSONMembers()
    try members.read(bytes.span)
    #expect(members.all.map(\.nameHasEscapes) == [false, true, false])
    try members.read(Array("{}".utf8).span)
    #expect(members.all.isEmpty)
  }

  @Test(arguments: ["", "[]", "{", #"{"a"}"#, #"{"a":1"#, #"{"a":1,}"#, #"{"a":1}x"#, "{}{}", "\"\"", #"{"a":[}]}"#])
  func `text other than one valid object has no members`(text: String) {
    #expect(throws: JSONError.self) { try members(text) }
  }

  @Test func `members of an object are nested up to the given depth`() throws {
    let value = JSONValue.nested(512).description
    #expect(try members("{\"a\":\(value)}", limits: .envelope).count == 1)
    #expect(throws: JSONError.self) { try members("{\"a\":\(value)}") }
    let deepest = "{\"a\":[\(value)]}"
    #expect(try members(deepest, limits: .envelope)[0][2] == "[\(value)]")
    #expect(throws: JSONError.self) { try members("{\"a\":[[\(value)]]}", limits: .envelope) }
    #expect(throws: JSONError.self) { try members("{}", limits: JSONLimits(maxDepth: 0)) }
  }

  @Test func `members of an object equal those of the parsed tree`() throws {
    var random = RandomJSON(SeededGenerator.announced())
    for _ in 0..<1_000 {
      guard let object = random.value(depth: 3).object else { continue }
      let text = JSONValue.object(object).encoded()
      var members = JSONMembers()
      try members.read(text.span)
      #expect(members.all.count == object.count)
      for (member, expected) in zip(members.all, object) {
        let (name, value) = (Array(text[member.quotedName]), Array(text[member.value]))
        #expect(JSONString.bytes(of: name.span) == Array(expected.name.utf8))
        #expect(try JSONValue(parsing: value.span) == expected.value)
      }
    }
  }
}

@Suite struct `The elements of an array` {
  private func elements(_ text: String) throws -> [String] {
    let bytes = Array(text.utf8)
    return try JSON.elements(of: bytes.span).map { String(decoding: bytes[$0], as: UTF8.self) }
  }

  @Test func `elements of an array are read by their position`() throws {
    #expect(try elements(#" [ 1 ,[2, 3],{"a":"]"} , "x" ] "#) == ["1", "[2, 3]", #"{"a":"]"}"#, #""x""#])
    #expect(try elements("[ ]").isEmpty)
  }

  @Test(arguments: ["", "{}", "[", "[1", "[1,]", "[1}", "[1]]", "[[]"])
  func `text other than one valid array has no elements`(
    text: String
  ) {
    #expect(throws: JSONError.self) { try elements(text) }
  }

  @Test func `elements of an array are nested up to the given depth`() {
    let text = Array("[1]".utf8)
    #expect(throws: JSONError.self) { try JSON.elements(of: text.span, limits: JSONLimits(maxDepth: 0)) }
  }
}
