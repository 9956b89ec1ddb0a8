extension RegularExpression {
  /// A reader of a pattern's tokens. Copy it to look ahead or to return to a position.
  ///
  /// A backslash and the scalar after it are one token everywhere, even in comments and group names, as in
  /// Python.
  struct PatternReader {
    /// A scalar of the pattern, or a backslash with the scalar after it.
    struct Token {
      let scalar: Unicode.Scalar
      let isEscaped: Bool
      /// The position in the pattern, in scalars.
      let offset: Int

      /// Returns a Boolean value that indicates whether the token is a scalar without a backslash.
      func `is`(_ scalar: Unicode.Scalar) -> Bool { !isEscaped && self.scalar == scalar }

      /// A Boolean value that indicates whether the verbose flag lets the parser skip the token.
      var isSpace: Bool { !isEscaped && (scalar == " " || (9...13).contains(scalar.value)) }
    }

    private let tokens: [Token]
    private let length: Int
    private var position = 0

    /// Creates a reader at the start of a pattern.
    ///
    /// - Throws: `RegularExpressionError` if the pattern ends in a backslash.
    init(_ pattern: String) throws(RegularExpressionError) {
      var tokens: [Token] = []
      var offset = 0
      var isEscaped = false
      for scalar in pattern.unicodeScalars {
        if isEscaped {
          tokens.append(Token(scalar: scalar, isEscaped: true, offset: offset - 1))
          isEscaped = false
        } else if scalar == "\\" {
          isEscaped = true
        } else {
          tokens.append(Token(scalar: scalar, isEscaped: false, offset: offset))
        }
        offset += 1
      }
      if isEscaped {
        throw RegularExpressionError(
          offset: offset - 1, reason: "the pattern ends in a backslash; escape it as '\\\\'")
      }
      self.tokens = tokens
      length = offset
    }

    /// The token at the current position, or `nil` at the end.
    var next: Token? { position < tokens.count ? tokens[position] : nil }

    /// The offset of the current position, in scalars.
    var offset: Int { next?.offset ?? length }

    /// Skips the current token, if any.
    mutating func advance() {
      if position < tokens.count { position += 1 }
    }

    /// Returns the current token and skips it.
    mutating func take() -> Token? {
      let token = next
      advance()
      return token
    }

    /// Skips the current token if it is a scalar without a backslash, and returns whether it is.
    mutating func take(_ scalar: Unicode.Scalar) -> Bool {
      guard let next, next.is(scalar) else { return false }
      position += 1
      return true
    }

    /// Returns the value of the digit at the current position and skips it, if there is one.
    mutating func takeDigit(radix: UInt32) -> UInt32? {
      guard let next, !next.isEscaped else { return nil }
      let value: UInt32
      switch next.scalar {
      case "0"..."9": value = next.scalar.value - 48
      case "a"..."f": value = next.scalar.value - 87
      case "A"..."F": value = next.scalar.value - 55
      default: return nil
      }
      guard value < radix else { return nil }
      position += 1
      return value
    }

    /// Returns the decimal number at the current position and skips it, if there is one. Large numbers are
    /// capped at a million.
    mutating func takeNumber() -> Int? {
      var number: Int?
      while let digit = takeDigit(radix: 10) { number = min((number ?? 0) * 10 + Int(digit), 1_000_000) }
      return number
    }

    /// Returns the code point of an escape with a number of hexadecimal digits and skips them.
    mutating func takeHexadecimal(_ count: Int, of escape: Token) throws(RegularExpressionError) -> UInt32 {
      var value: UInt32 = 0
      for _ in 0..<count {
        guard let digit = takeDigit(radix: 16) else {
          throw RegularExpressionError(
            offset: escape.offset,
            reason: "the escape '\\\(escape.scalar)' needs \(count) hexadecimal digits; add them")
        }
        value = value << 4 | digit
      }
      guard value <= 0x10FFFF else {
        throw RegularExpressionError(
          offset: escape.offset, reason: "the escape exceeds U+10FFFF; use a valid code point")
      }
      return value
    }
  }
}
