import Documents
import Foundation
import TestSupport
import Testing

@Suite struct `A JSON string` {
  private func text(_ source: String) -> String? {
    JSONString.bytes(of: Array(source.utf8).span).map { String(decoding: $0, as: UTF8.self) }
  }

  private func quoted(_ text: String) -> String {
    var output: [UInt8] = []
    JSONString.append(quoting: text, to: &output)
    return String(decoding: output, as: UTF8.self)
  }

  @Test(arguments: [
    (#""""#, ""), (#""a""#, "a"), (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u0041\u00e9\u20AC""#, "Aé€"),
    (#""\ud83d\uDE00\uD834\udd1e""#, "😀𝄞"), (#""a\u0000b""#, "a\u{0}b"), (#""\\u0041""#, #"\u0041"#),
    (#""\\\\""#, #"\\"#),
    (#""x\ny\tz""#, "x\ny\tz"), (#""é😀\né""#, "é😀\né"), (#""\uFFFF\uDBFF\uDFFF""#, "\u{FFFF}\u{10FFFF}"),
  ]) func `a JSON string is read with all its escapes`(source: String, expected: String) throws {
    #expect(text(source) == expected)
    #expect(try JSONValue(parsing: source) == .string(expected))
    #expect(try JSONDecoder().decode(String.self, from: Data(source.utf8)) == expected)
  }

  @Test(arguments: [
    "", "\"", "a", #""a"#, #""a"b"#, #" "a""#, #""a" "#, "1", "null", #"["a"]"#, #""\x""#, #""\ud800""#, #""a"""#,
  ])
  func `text other than a JSON string isn't read as one`(source: String) {
    #expect(text(source) == nil)
  }

  @Test func `a string is written with escapes only where JSON requires them`() {
    #expect(quoted("") == #""""#)
    #expect(quoted("a/é😀\u{7F}\u{2028}") == "\"a/é😀\u{7F}\u{2028}\"")
    #expect(quoted("\"\\\u{8}\u{C}\n\r\t") == #""\"\\\b\f\n\r\t""#)
    #expect(quoted("\u{0}\u{1}\u{1F}x\u{B}") == #""\u0000\u0001\u001fx\u000b""#)
  }

  @Test func `a string is the same after writing and reading`() {
    var random = SeededGenerator.announced()
    for _ in 0..<2_000 {
      let scalars = (0..<Int.random(in: 0...20, using: &random)).map { _ in
        let value = UInt32.random(in: 0...(Bool.random(using: &random) ? 0x7F : 0x10FFFF), using: &random)
        return Unicode.Scalar(value) ?? "\u{FFFD}"
      }
      let text = String(String.UnicodeScalarView(scalars))
      #expect(Array(self.text(quoted(text))!.utf8) == Array(text.utf8))
    }
  }
}
