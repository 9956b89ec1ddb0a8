import Testing

@testable import larder

@Suite struct `The place of a member's name in JSON` {
  @Test(arguments: [
    ("{", [], "", "{"), (#"{""#, [], "", "{"), (#"{"ag"#, [], "ag", "{"), (#"{ "a":1, "b"#, [], "b", #"{ "a":1, "#),
    (#"{"a":[1,{"b"#, ["a"], "b", #"{"a":[1,{"#), (#"{"pet":{"species":1,"#, ["pet"], "", #"{"pet":{"species":1,"#),
    (#"{"$or":[{"a":1},{"b":{"$g"#, ["$or", "b"], "$g", #"{"$or":[{"a":1},{"b":{"#),
    (#"{"a":"}{\"","b"#, [], "b", #"{"a":"}{\"","#), (#"{"é漢":{"👩‍👩‍👧"#, ["é漢"], "👩‍👩‍👧", #"{"é漢":{"#),
  ])
  func `an unfinished member name in JSON is found with the path to it`(
    text: String, path: [String], name: String, head: String
  ) {
    let place = MemberPlace(atEndOf: text)
    #expect(place?.path == path && place?.name == name && place?.head == head, "\(String(describing: place))")
  }

  @Test(arguments: [
    "", "a", "[", #"["a"#, #"{"a""#, #"{"a":"#, #"{"a":"b"#, #"{"a":1"#, #"{"a":[""#, #"{"a":1}"#, #"{"a\""#, "}]:,\"",
    #"{"a":["b","#,
  ]) func `unfinished JSON that doesn't end in a member name has none`(text: String) {
    #expect(MemberPlace(atEndOf: text) == nil)
  }

  @Test func `a member name in JSON is completed with a quote and a colon`() {
    #expect(MemberPlace(atEndOf: #"{"pet":{"sp"#)?.text(naming: "species") == #"{"pet":{"species":"#)
  }
}
