import Foundation
import Testing

@testable import larder

/// Returns whether the bytes are one JSON value, with optional white space around it.
private func isJSON(_ bytes: [UInt8], maxDepth: Int = JSONScanner.maxDepth) -> Bool {
  guard bytes.span.isUTF8 else { return false }
  var scanner = JSONScanner()
  do { try scanner.skipValue(in: bytes.span, maxDepth: maxDepth) } catch { return false }
  scanner.skipSpace(in: bytes.span)
  return scanner.position == bytes.count
}

@Suite struct `The JSON scanner` {
  @Test(arguments: [
    "{}", "[]", "0", "-0", "1.5e-3", "\"\"", "true", "false", "null", " [ 1 , 2 ] ", #"{"":{"":[]}}"#,
    #""\u00e9\ud800\"\\\/\b\f\n\r\t""#,
    "[[],{}]", #"{"a":1,"a":2}"#, "\t\r\n1\n", "\"\u{7F}\u{2028}😀\"",
  ]) func `accepts JSON`(text: String) {
    #expect(isJSON(Array(text.utf8)))
  }

  @Test(arguments: [
    "", " ", "{", "[", "]", "}", "[1,]", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, "{a:1}", "[1 2]", "[1}",
    #"{"a":1]"#, "01", "+1", "1.",
    ".5", "1e", "1e+", "-", "0x1", "NaN", "tru", "truex", "nul", "'a'", #"""#, #""\""#, #""\x""#, #""\u12g4""#,
    #""\u123"#, "\"\n\"", "\"\u{1}\"",
    "1 2", "[] []", "\u{FEFF}1", "\u{C}1", "\u{A0}1", #"{"a" 1}"#, "[,1]", "-01", "1_000",
  ]) func `rejects anything else`(text: String) {
    #expect(!isJSON(Array(text.utf8)))
  }

  @Test func `limits the nesting depth`() {
    func nested(_ depth: Int) -> [UInt8] {
      [UInt8](repeating: 0x5B, count: depth) + [UInt8](repeating: 0x5D, count: depth)
    }
    #expect(isJSON(nested(512)))
    #expect(!isJSON(nested(513)))
    #expect(isJSON(nested(3), maxDepth: 3))
    #expect(!isJSON(nested(4), maxDepth: 3))
    #expect(!isJSON([UInt8](repeating: 0x5B, count: 1_000_000)))
    let mixed = String(repeating: #"{"a":["#, count: 256) + String(repeating: "]}", count: 256)
    #expect(isJSON(Array(mixed.utf8)))
    #expect(
      !isJSON(Array(String(repeating: #"{"a":["#, count: 256).utf8) + Array(String(repeating: "}]", count: 256).utf8)))
  }

  @Test func `finds the members of an object`() throws {
    let text = Array(#" { "a\"" : {"b":1} , "c":[ 2 ],"d":"" } "#.utf8)
    var members: [JSONScanner.Member] = []
    try JSONScanner.members(of: text.span, into: &members)
    let found = members.map { [$0.name, $0.value].map { String(decoding: text[$0], as: UTF8.self) } }
    #expect(found == [[#""a\"""#, #"{"b":1}"#], [#""c""#, "[ 2 ]"], [#""d""#, #""""#]])
    let array = Array(" []".utf8)
    #expect(throws: JSONError(1, "an object is expected")) { try JSONScanner.members(of: array.span, into: &members) }
  }

  @Test func `agrees with JSONTestSuite`() throws {
    let project = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let folder = project.deletingLastPathComponent().appending(path: "shared/conformance/JSONTestSuite/test_parsing")
    for file in (try? FileManager.default.contentsOfDirectory(at: folder, includingPropertiesForKeys: nil)) ?? [] {
      let name = file.lastPathComponent
      guard name.hasPrefix("y_") || name.hasPrefix("n_") else { continue }
      #expect(isJSON([UInt8](try Data(contentsOf: file))) == name.hasPrefix("y_"), "\(name)")
    }
  }
}
