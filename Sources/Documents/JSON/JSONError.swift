/// Why text is not JSON, and where.
public struct JSONError: Error, Equatable, Sendable {
  /// What would have been valid at the error's position.
  public enum Expectation: String, Sendable {
    case value = "a value"
    case object = "an object"
    case array = "an array"
    case name = "a member name in double quotes"
    case colon = "a colon"
    case commaOrBrace = "a comma or }"
    case commaOrBracket = "a comma or ]"
    case digit = "a digit"
    case escape = "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u"
    case hexadecimalDigits = "four hexadecimal digits"
    case surrogatePair = "both halves of a surrogate pair"
    case closingQuote = "a closing double quote"
    case escapedControlCharacter = "an escape in place of a control character"
    case utf8 = "valid UTF-8"
    case end = "the end of the text"
    case lessNesting = "less nesting"
    case lessText = "a shorter text"
  }

  /// The position in the text, in bytes from its start.
  public let offset: Int
  /// The line, from 1. Line feeds end lines.
  public let line: Int
  /// The position in the line, in bytes from 1.
  public let column: Int
  public let expected: Expectation

  /// Computes line and column. Complexity: O(`offset`).
  init(at offset: Int, of text: Span<UInt8>, expected: Expectation) {
    var (line, lineStart) = (1, 0)
    for position in 0..<min(offset, text.count) where text[position] == UInt8(ascii: "\n") {
      (line, lineStart) = (line + 1, position + 1)
    }
    self.offset = offset
    self.line = line
    column = offset - lineStart + 1
    self.expected = expected
  }
}

extension JSONError: CustomStringConvertible {
  public var description: String {
    switch expected {
    case .lessNesting: "too deeply nested at line \(line), column \(column) (byte \(offset))"
    case .lessText: "the text is longer than \(offset) bytes"
    default: "expected \(expected.rawValue) at line \(line), column \(column) (byte \(offset))"
    }
  }
}
