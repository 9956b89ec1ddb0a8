import Documents
import Testing

@Suite struct `A JSON error` {
  struct Case: CustomTestStringConvertible, Sendable {
    let text: [UInt8]
    let offset: Int
    let line: Int
    let column: Int
    let expected: JSONError.Expectation

    init(_ text: String, _ offset: Int, _ line: Int, _ column: Int, _ expected: JSONError.Expectation) {
      self.init(Array(text.utf8), offset, line, column, expected)
    }

    init(_ text: [UInt8], _ offset: Int, _ line: Int, _ column: Int, _ expected: JSONError.Expectation) {
      (self.text, self.offset, self.line, self.column, self.expected) = (text, offset, line, column, expected)
    }

    var testDescription: String { String(decoding: text, as: UTF8.self) }
  }

  static let cases = [
    Case("", 0, 1, 1, .value), Case(" \n ", 3, 2, 2, .value), Case("[", 1, 1, 2, .value), Case("[1,]", 3, 1, 4, .value),
    Case("[\n  nul\n]", 4, 2, 3, .value), Case(#"{"a":}"#, 5, 1, 6, .value), Case("tru", 0, 1, 1, .value),
    Case("truE", 0, 1, 1, .value), Case("'a'", 0, 1, 1, .value), Case("]", 0, 1, 1, .value),
    Case("\0", 0, 1, 1, .value),
    Case("{", 1, 1, 2, .name), Case("{\"a\":1,\n}", 8, 2, 1, .name), Case("{a:1}", 1, 1, 2, .name),
    Case("{1:1}", 1, 1, 2, .name), Case(#"{"a":1,,"b":2}"#, 7, 1, 8, .name),
    Case(#"{"a"}"#, 4, 1, 5, .colon), Case(#"{"a" 1}"#, 5, 1, 6, .colon), Case(#"{"a""#, 4, 1, 5, .colon),
    Case(#"{"a":1"#, 6, 1, 7, .commaOrBrace), Case("{\"a\":1\n\n\"b\":2}", 8, 3, 1, .commaOrBrace),
    Case(#"{"a":1]"#, 6, 1, 7, .commaOrBrace), Case("{\"é\":01}", 7, 1, 8, .commaOrBrace),
    Case("[1", 2, 1, 3, .commaOrBracket), Case("[1 2]", 3, 1, 4, .commaOrBracket),
    Case("[[]}", 3, 1, 4, .commaOrBracket),
    Case("[truex]", 5, 1, 6, .commaOrBracket),
    Case("-", 1, 1, 2, .digit), Case("[-a]", 2, 1, 3, .digit), Case("1.", 2, 1, 3, .digit),
    Case("1.e3", 2, 1, 3, .digit),
    Case("1e", 2, 1, 3, .digit), Case("1e+", 3, 1, 4, .digit), Case("[1E-]", 4, 1, 5, .digit),
    Case(#""\x""#, 2, 1, 3, .escape), Case(#""ab\"#, 4, 1, 5, .escape), Case("\"\\\n\"", 2, 1, 3, .escape),
    Case(#""\u12g4""#, 5, 1, 6, .hexadecimalDigit), Case(#""\u12""#, 5, 1, 6, .hexadecimalDigit),
    Case(#""\u"#, 3, 1, 4, .hexadecimalDigit), Case(#""\u00e"#, 6, 1, 7, .hexadecimalDigit),
    Case(#""\ud800\u+123""#, 9, 1, 10, .hexadecimalDigit),
    Case(#""a\ud800""#, 2, 1, 3, .surrogatePair), Case(#""\udc00\ud800""#, 1, 1, 2, .surrogatePair),
    Case(#""\ud800\ud800""#, 1, 1, 2, .surrogatePair), Case(#""\ud800"#, 1, 1, 2, .surrogatePair),
    Case(#""\ud800\n""#, 1, 1, 2, .surrogatePair),
    Case(#""abc"#, 4, 1, 5, .closingQuote), Case(#""abcdefghijk"#, 12, 1, 13, .closingQuote),
    Case("\"", 1, 1, 2, .closingQuote),
    Case("[\"a\nb\"]", 3, 1, 4, .escapedControlCharacter),
    Case("\"abcdefgh\u{1F}\"", 9, 1, 10, .escapedControlCharacter),
    Case("\"\0\"", 1, 1, 2, .escapedControlCharacter),
    Case([0x22, 0x61, 0xFF, 0x22], 2, 1, 3, .utf8), Case([0x22, 0xC3, 0xA9, 0xE2, 0x82, 0x22], 3, 1, 4, .utf8),
    Case([0x22, 0xF0, 0x9F, 0x98], 1, 1, 2, .utf8),
    Case("\u{FEFF}{}", 0, 1, 1, .noByteOrderMark), Case("\u{FEFF}", 0, 1, 1, .noByteOrderMark),
    Case(" \u{FEFF}1", 1, 1, 2, .value),
    Case("1 2", 2, 1, 3, .end), Case("{}\n{}", 3, 2, 1, .end), Case("01", 1, 1, 2, .end), Case("1x", 1, 1, 2, .end),
    Case("[[[[]]]]", 3, 1, 4, .lessNesting), Case("[[\n {\"a\":{}}]]", 9, 2, 7, .lessNesting),
    Case("[\"123456789 123456789 123456789\"]", 32, 1, 33, .lessText),
  ]

  /// Depth and size are limited, so that the table can exceed them.
  private static let limits = JSONLimits(maxByteCount: 32, maxDepth: 3)

  /// Returns the error that reading a text throws.
  private func failure(_ body: () throws(JSONError) -> Void) -> JSONError? {
    do throws(JSONError) { try body() } catch { return error }
    return nil
  }

  @Test(arguments: cases)
  func `a JSON error has the offset of the first wrong byte and what was expected there`(wrong: Case) throws {
    let error = try #require(
      failure { () throws(JSONError) in try JSON.validate(wrong.text.span, limits: Self.limits) })
    #expect(error.offset == wrong.offset)
    #expect((error.line, error.column) == (wrong.line, wrong.column))
    #expect(error.expected == wrong.expected)
    let parsing = failure { () throws(JSONError) in _ = try JSONValue(parsing: wrong.text.span, limits: Self.limits) }
    #expect(parsing == error)
  }

  @Test func `a decoding error names the kind of container that is missing`() {
    let (array, object) = (Array(" []".utf8), Array("\n{}".utf8))
    let noObject = failure { () throws(JSONError) in
      var members = JSONMembers()
      try members.read(array.span)
    }
    #expect(noObject?.offset == 1 && noObject?.expected == .object)
    let noArray = failure { () throws(JSONError) in _ = try JSON.elements(of: object.span) }
    #expect(noArray?.offset == 1 && noArray?.line == 2 && noArray?.expected == .array)
  }

  @Test func `a JSON error is described in one line`() throws {
    func description(_ text: String, _ limits: JSONLimits = JSONLimits()) -> String? {
      do throws(JSONError) { try JSON.validate(Array(text.utf8).span, limits: limits) } catch {
        return error.description
      }
      return nil
    }
    #expect(description("{\n\"a\" 1}") == "expected a colon at line 2, column 5 (byte 6)")
    #expect(description("[1", JSONLimits(maxByteCount: 1)) == "the text is longer than 1 bytes")
    #expect(
      description("[[", JSONLimits(maxDepth: 1))
        == "arrays and objects are nested too deeply at line 1, column 2 (byte 1)")
    #expect(
      description(#""\q""#) == #"expected one of " \ / b f n r t u after the backslash at line 1, column 3 (byte 2)"#)
  }
}
