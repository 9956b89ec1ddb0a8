import Documents
import Foundation
import TestSupport
import Testing

@Suite struct `JSON validation` {
  private func isJSON(_ text: [UInt8], limits: JSONLimits = JSONLimits()) -> Bool {
    do { try JSON.validate(text.span, limits: limits) } catch { return false }
    return true
  }

  private func isObject(_ text: String, limits: JSONLimits = JSONLimits()) -> Bool {
    JSON.isObject(Array(text.utf8).span, limits: limits)
  }

  @Test(arguments: [
    "{}", "[]", "0", "-0", "1.5e-3", "\"\"", "true", "false", "null", " [ 1 , 2 ] ", #"{"":{"":[]}}"#,
    #""\u00e9\ud83d\ude00\"\\\/\b\f\n\r\t""#, #""\uDBFF\uDFFF\u0000\uFFFF\ud7ff\ue000""#,
    "[[],{}]", #"{"a":1,"a":2}"#, "\t\r\n1\n", "\"\u{7F}\u{2028}😀\u{FFFF}\u{10FFFF}\"", "1e400", "-1E-400",
    "123456789012345678901234567890", #"[[[],[]],{"a":{"b":[{}]}},[]]"#,
  ]) func `validation accepts JSON`(text: String) {
    #expect(isJSON(Array(text.utf8)))
    #expect((try? JSONValue(parsing: text)) != nil)
  }

  @Test(arguments: [
    "", " ", "{", "[", "]", "}", "[1,]", "{,}", #"{"a"}"#, #"{"a":}"#, #"{"a":1,}"#, "{a:1}", "[1 2]", "[1}",
    #"{"a":1]"#, "01", "+1", "1.", ".5", "1e", "1e+", "-", "-a", "0x1", "NaN", "Infinity", "tru", "truex", "nul", "'a'",
    #"""#, #""\""#, #""\x""#, #""\u12g4""#, #""\u123"#, "\"\n\"", "\"\u{1}\"", "\"\u{0}\"", #""\ud800""#, #""\udc00""#,
    #""\ud800\n""#, #""\ud800\ud800""#, #""\ud800\udbff""#, "1 2", "[] []", "\u{FEFF}1", "\u{C}1", "\u{A0}1",
    #"{"a" 1}"#,
    "[,1]", "-01", "1_000", "// a\n1", "[1,,2]", #"{"a":1,,"b":2}"#, #"{"a":1"b":2}"#, "[1]]", "{}}", "TRUE", "\0",
    "1\0",
  ]) func `validation refuses text that isn't JSON`(text: String) {
    #expect(!isJSON(Array(text.utf8)))
    #expect((try? JSONValue(parsing: text)) == nil)
  }

  @Test(
    arguments: [
      [0x80], [0xBF], [0xC0, 0x80], [0xC1, 0xBF], [0xC2], [0xC2, 0x41], [0xE0, 0x80, 0x80], [0xE0, 0x9F, 0xBF],
      [0xE2, 0x82], [0xED, 0xA0, 0x80], [0xED, 0xBF, 0xBF], [0xF0, 0x80, 0x80, 0x80], [0xF0, 0x8F, 0xBF, 0xBF],
      [0xF0, 0x9F, 0x98], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xF8, 0x88, 0x80, 0x80, 0x80], [0xFE],
      [0xFF],
    ] as [[UInt8]]) func `validation refuses strings that aren't UTF-8`(character: [UInt8])
  {
    // At every position relative to the words that the scanner reads.
    for count in 0..<17 {
      let padding = [UInt8](repeating: 0x61, count: count)
      #expect(!isJSON([0x22] + padding + character + [0x22]))
      #expect(!isJSON([0x22] + padding + character + padding + [0x22]))
      #expect(!isJSON([0x22] + padding + character))
    }
  }

  @Test func `validation accepts characters of all sizes, literal and escaped`() {
    // The first and last characters of each size, and a part of the others.
    let ranges: [ClosedRange<UInt32>] = [0...0x900, 0xD700...0xE100, 0xFF00...0x10100, 0x10FF00...0x10FFFF]
    for value in ranges.flatMap(Array.init) + Array(stride(from: 0x900, to: 0x10FF00, by: 251)) {
      guard let scalar = Unicode.Scalar(value) else { continue }
      let isPlain = value >= 0x20 && scalar != "\"" && scalar != "\\"
      #expect(isJSON(Array("\"\(scalar)\"".utf8)) == isPlain, "U+\(String(value, radix: 16))")
      let escapes = scalar.utf16.map { "\\u" + String(String(UInt32($0) + 0x10000, radix: 16).dropFirst()) }
      let source = Array("\"\(escapes.joined())\"".utf8)
      let text = JSONString.bytes(of: source.span)
      #expect(text == Array(String(scalar).utf8), "U+\(String(value, radix: 16)) as an escape")
    }
  }

  @Test func `validation limits the nesting depth`() {
    func nested(_ depth: Int) -> [UInt8] {
      [UInt8](repeating: 0x5B, count: depth) + [UInt8](repeating: 0x5D, count: depth)
    }
    func agree(_ text: [UInt8], _ limits: JSONLimits = JSONLimits()) -> Bool? {
      let isValid = isJSON(text, limits: limits)
      return isValid == ((try? JSONValue(parsing: text.span, limits: limits)) != nil) ? isValid : nil
    }
    for depth in [0, 1, 3, 63, 64, 65, 511, 512] {
      let limits = JSONLimits(maxDepth: depth)
      #expect(agree(depth == 0 ? [0x31] : nested(depth), limits) == true)
      #expect(agree(nested(depth + 1), limits) == false)
      #expect(agree(Array("{\"a\":".utf8) + nested(depth) + [0x7D], limits) == false)
    }
    #expect(agree([UInt8](repeating: 0x5B, count: 1_000_000)) == false)
    let opening = String(repeating: #"{"a":["#, count: 256)
    #expect(agree(Array((opening + String(repeating: "]}", count: 256)).utf8)) == true)
    #expect(agree(Array((opening + String(repeating: "}]", count: 256)).utf8)) == false)
  }

  @Test func `validation limits the size of the text`() {
    let text = Array("[1,2]".utf8)
    #expect(isJSON(text, limits: JSONLimits(maxByteCount: 5)))
    #expect(!isJSON(text, limits: JSONLimits(maxByteCount: 4)))
    #expect(isObject("{}") && !isObject("{} ", limits: JSONLimits(maxByteCount: 2)))
  }

  @Test func `validation recognizes objects`() {
    #expect(isObject(" {\"a\":[]}\n"))
    for text in ["[]", "1", "", "{", "{}{}", "{} x", "\"{}\""] {
      #expect(!isObject(text), "\(text)")
    }
  }

  private static let document = Array(
    #"{"_id":"mike","n":[1,-2.5e-3,0,1E+2],"é😀":{"t":true,"f":false,"z":null},"s":"\u00e9\ud83d\ude00\\\"","e":[{},[]]}"#
      .utf8)

  @Test func `validation refuses every proper prefix of an object`() {
    #expect(isJSON(Self.document))
    for count in 0..<Self.document.count {
      let prefix = Array(Self.document[..<count])
      let isObject = JSON.isObject(prefix.span)
      #expect(!isJSON(prefix) && !isObject && (try? JSONValue(parsing: prefix.span)) == nil)
    }
  }

  /// The error of each way to read a text; nil if it is valid.
  private func errors(_ text: [UInt8], _ limits: JSONLimits) -> (validation: JSONError?, parsing: JSONError?) {
    var errors: (JSONError?, JSONError?)
    do throws(JSONError) { try JSON.validate(text.span, limits: limits) } catch { errors.0 = error }
    do throws(JSONError) { _ = try JSONValue(parsing: text.span, limits: limits) } catch { errors.1 = error }
    return errors
  }

  @Test func `validation and parser agree about every damaged byte`() throws {
    for position in Self.document.indices {
      for byte in UInt8.min ... .max {
        var text = Self.document
        text[position] = byte
        let (validation, parsing) = errors(text, JSONLimits())
        if validation != parsing {
          Issue.record("byte \(byte) at \(position): \(String(describing: (validation, parsing)))")
        }
        if JSON.isObject(text.span) != (validation == nil) { Issue.record("byte \(byte) at \(position) in an object") }
      }
    }
  }

  @Test func `validation and parser agree about random text`() {
    var random = RandomJSON(SeededGenerator.announced())
    for round in 0..<20_000 {
      let text = round % 2 == 0 ? random.tokens() : random.damaged(random.value(depth: 3).encoded())
      let limits = JSONLimits(maxByteCount: round % 5 == 0 ? 40 : .max, maxDepth: round % 4)
      let (validation, parsing) = errors(text, limits)
      #expect(validation == parsing, "\(String(decoding: text, as: UTF8.self))")
      let isObject = validation == nil && text.first { ![0x20, 0x0A, 0x0D, 0x09].contains($0) } == UInt8(ascii: "{")
      let isRecognized = JSON.isObject(text.span, limits: limits)
      #expect(isRecognized == isObject, "\(String(decoding: text, as: UTF8.self))")
    }
  }

  @Test func `validation accepts the JSON that Foundation writes`() throws {
    var random = RandomJSON(SeededGenerator.announced())
    for _ in 0..<500 {
      let value = random.value(depth: 3)
      guard let text = try? JSONEncoder().encode(value) else { continue }
      #expect(isJSON(Array(text)))
    }
  }
}
