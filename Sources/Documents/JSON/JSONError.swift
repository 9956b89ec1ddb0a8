/// Why text is not JSON, and where.
public struct JSONError: Error, Equatable, Sendable {
  /// What would have been valid at the error's position. The raw values are parts of messages.
  public enum Expectation: String, Sendable {
    case value = "a value"
    case object = "an object"
    case array = "an array"
    case name = "a member name in double quotes"
    /// At a name that the object has already, in text in which that is an error.
    case newName = "each member name only once"
    case colon = "a colon"
    case commaOrBrace = "a comma or }"
    case commaOrBracket = "a comma or ]"
    case digit = "a digit"
    /// After a backslash.
    case escape = "one of \" \\ / b f n r t u after the backslash"
    case hexadecimalDigit = "a hexadecimal digit"
    /// At the escape for half of a pair.
    case surrogatePair = "both halves of a surrogate pair"
    case closingQuote = "a closing double quote"
    case escapedControlCharacter = "an escape in place of a control character"
    /// At the first byte of a sequence that is not a character in UTF-8.
    case utf8 = "valid UTF-8"
    case noByteOrderMark = "no byte order mark"
    case end = "the end of the text"
    /// At the bracket or brace that is too deep.
    case lessNesting = "less nesting"
    /// At the first byte that is too many.
    case lessText = "a shorter text"
  }

  /// The position in the text, in bytes from 0. It is the end of the text if the text ends too early.
  public let offset: Int
  /// The line, from 1. Line feeds end lines.
  public let line: Int
  /// The position in the line, in bytes from 1.
  public let column: Int
  /// What would have been valid at the position.
  public let expected: Expectation

  /// Finds the line and the column of an offset.
  /// - Complexity: O(`offset`).
  init(at offset: Int, of text: Span<UInt8>, expected: Expectation) {
    var (line, lineStart) = (1, 0)
    for position in 0..<min(offset, text.count) where text[position] == UInt8(ascii: "\n") {
      (line, lineStart) = (line + 1, position + 1)
    }
    self.offset = offset
    self.line = line
    column = offset - lineStart + 1
    let beginsWithMark = text.count >= 3 && text[0] == 0xEF && text[1] == 0xBB && text[2] == 0xBF
    self.expected = offset == 0 && beginsWithMark ? .noByteOrderMark : expected
  }
}

extension JSONError: CustomStringConvertible {
  /// What is wrong, without the position: "expected a comma or }".
  public var reason: String {
    switch expected {
    case .lessNesting: "arrays and objects are nested too deeply"
    case .lessText: "the text is longer than \(offset) bytes"
    default: "expected \(expected.rawValue)"
    }
  }

  /// The reason and the position: "expected a comma or } at line 1, column 11 (byte 10)".
  public var description: String {
    expected == .lessText ? reason : "\(reason) at line \(line), column \(column) (byte \(offset))"
  }
}
