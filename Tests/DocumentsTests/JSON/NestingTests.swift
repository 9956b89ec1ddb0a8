import Testing

@testable import Documents

/// Values are passed by recursion up to some depth, and without it below.
@Suite struct `Nesting` {
  private static let texts = [
    "1", #""a""#, "[]", "{}", "[1, [2], {}]", #"{"a": [{}], "b": {"c": null}}"#, " [ 1 , 2 ] ", #"{ "a" : { } }"#,
    "", " ", "[", "[1", "[1,", "[1,]", "[1 2]", "[}", "[1}", "{", "{]", #"{"a"}"#, #"{"a":}"#, #"{"a":1"#, #"{"a":1,"#,
    #"{"a":1,}"#, #"{"a":1]"#, #"{"a":1 "b":2}"#, "{1:2}", "[tru]", "[01]", #"["\x"]"#, "[[[[1]]]", "[[[[1]]]]]",
  ]

  private func failure(_ text: String) -> JSONError? {
    do throws(JSONError) {
      try JSON.validate(Array(text.utf8).span)
      return nil
    } catch { return error }
  }

  @Test(arguments: texts) func `invalid JSON has the same error at every depth`(text: String) {
    // In an array, the text is followed by a bracket.
    let expected = failure("[\(text)]")
    for depth in [1, 14, 15, 16, 17, 18, 40, 300] {
      let found = failure(String(repeating: "[", count: depth) + text + String(repeating: "]", count: depth))
      #expect(found?.expected == expected?.expected, "\(depth) levels")
      guard let found, let expected else { continue }
      // An error in the text moves with its start, and one behind it with the end of the brackets.
      let distance = found.offset - expected.offset
      #expect(distance == depth - 1 || distance == 2 * (depth - 1), "\(depth) levels")
    }
  }

  @Test(arguments: [("[", "]"), (#"{"a":"#, "}"), (#"[{"a":"#, "}]")])
  func `JSON is nested up to 512 levels`(opening: String, closing: String) {
    let levels = 512 / opening.filter { "[{".contains($0) }.count
    func text(_ count: Int) -> String {
      String(repeating: opening, count: count) + "1" + String(repeating: closing, count: count)
    }
    #expect(failure(text(levels)) == nil)
    #expect(failure(text(levels + 1))?.expected == .lessNesting)
    #expect(failure(text(levels + 1))?.offset == opening.utf8.count * levels)
  }
}
