import Documents

/// A word, a value or a symbol of a raw predicate, and its place.
struct PredicateToken {
  enum Kind: Equatable {
    /// A name: letters, digits, underscores, and what isn't ASCII, except spaces and quotation marks. A backslash makes
    /// the next character part of a name. As a keyword, it is in capitals, or empty if it can't be one.
    case word(String, keyword: String)
    /// `@count` and the like, without the `@`.
    case function(String)
    /// A variable without its `$`.
    case variable(String)
    case string(String)
    case number(JSONValue)
    /// `%@`, `%d` and the like: a value that is bound.
    case value
    /// `%K`: a field that is bound.
    case field
    case symbol(String)
    case end
  }

  let kind: Kind
  let offset: Int

  /// Returns whether the token is a keyword, in any case.
  func isKeyword(_ word: String) -> Bool {
    if case .word(_, let keyword) = kind { keyword == word } else { false }
  }

  /// Whether the token is a keyword that can't be the first name of a field.
  var isReserved: Bool {
    if case .word(_, let keyword) = kind { Self.reserved.contains(keyword) } else { false }
  }

  private static let reserved: Set = [
    "TRUEPREDICATE", "FALSEPREDICATE", "TRUE", "YES", "FALSE", "NO", "NULL", "NIL", "SELF", "SUBQUERY", "AND", "OR",
    "NOT", "IN", "BETWEEN", "CONTAINS", "BEGINSWITH", "ENDSWITH", "LIKE", "MATCHES", "ANY", "SOME", "ALL", "NONE",
  ]
}

/// Splits the text of a raw predicate into tokens.
struct PredicateLexer {
  private let text: [UInt8]
  private var position = 0
  /// Whether a name, an index or a function has just ended, so that a dot leads to a member.
  private var isInPath = false

  /// The largest text, in bytes: that of a selector.
  static let maxByteCount = 1 << 20

  private static let symbols = [
    "==", "!=", "<>", "<=", ">=", "=<", "=>", "&&", "||", "=", "<", ">", "!", "(", ")", "{", "}", "[", "]", ",", ".",
    "+", "-", "*", "/",
  ].map { Array($0.utf8) }

  /// - Throws: `PredicateSyntaxError` for the first byte that is part of no token.
  static func tokens(of text: String) throws(PredicateSyntaxError) -> [PredicateToken] {
    guard text.utf8.count <= maxByteCount else { throw PredicateSyntaxError(at: maxByteCount, "to be at most 1 MiB") }
    var lexer = PredicateLexer(text: Array(text.utf8))
    var tokens: [PredicateToken] = []
    repeat {
      let token = try lexer.next()
      switch token.kind {
      case .word, .function, .variable, .symbol("]"), .symbol("."): lexer.isInPath = true
      default: lexer.isInPath = false
      }
      tokens.append(token)
    } while tokens.last?.kind != .end
    return tokens
  }

  private init(text: [UInt8]) { self.text = text }

  private func byte(_ distance: Int = 0) -> UInt8? {
    position + distance < text.count ? text[position + distance] : nil
  }

  private mutating func next() throws(PredicateSyntaxError) -> PredicateToken {
    while let byte = byte(), byte == UInt8(ascii: " ") || (9...13).contains(byte) {
      position += 1
      isInPath = false
    }
    let start = position
    func token(_ kind: PredicateToken.Kind) -> PredicateToken { PredicateToken(kind: kind, offset: start) }
    guard let first = byte() else { return token(.end) }
    switch first {
    case UInt8(ascii: "\""), UInt8(ascii: "'"): return token(.string(try string(endingWith: first)))
    case UInt8(ascii: "%"): return token(try argument())
    case UInt8(ascii: "@"):
      position += 1
      guard case (let name, isEscaped: false)? = word() else { throw PredicateSyntaxError(at: position, "a function") }
      return token(.function(name))
    case UInt8(ascii: "$"):
      position += 1
      guard case (let name, isEscaped: false)? = word() else { throw PredicateSyntaxError(at: position, "a variable") }
      return token(.variable(name))
    case UInt8(ascii: "0")...UInt8(ascii: "9") where !isInPath: return token(.number(try number()))
    case UInt8(ascii: ".") where !isInPath && byte(1).map(Self.isDigit) == true:
      return token(.number(try number()))
    default: break
    }
    if let word = word() {
      let isKeyword = !word.isEscaped && word.text.utf8.allSatisfy { $0 < 0x80 }
      return token(.word(word.text, keyword: isKeyword ? word.text.uppercased() : ""))
    }
    guard let symbol = Self.symbols.first(where: { text[position...].starts(with: $0) }) else {
      throw PredicateSyntaxError(at: position, "a field, a value or an operator")
    }
    position += symbol.count
    return token(.symbol(String(decoding: symbol, as: UTF8.self)))
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

  private static func isLetter(_ byte: UInt8) -> Bool {
    (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || byte == UInt8(ascii: "_")
  }

  /// Returns the number of bytes of the character at the position that is part of a name; nil if it is none.
  private func nameByteCount() -> Int? {
    guard let byte = byte() else { return nil }
    if byte < 0x80 { return Self.isLetter(byte) || Self.isDigit(byte) ? 1 : nil }
    let scalar = scalar()
    return scalar.properties.isWhitespace || scalar.properties.isQuotationMark ? nil : UTF8.width(scalar)
  }

  /// Returns the character at the position, which must not be the end.
  private func scalar() -> Unicode.Scalar {
    String(decoding: text[position...].prefix(4), as: UTF8.self).unicodeScalars.first ?? "\u{FFFD}"
  }

  /// Passes a word, or returns nil if there is none.
  private mutating func word() -> (text: String, isEscaped: Bool)? {
    var (name, isEscaped) = ([UInt8](), false)
    while true {
      let count: Int
      if byte() == UInt8(ascii: "\\"), byte(1) != nil {
        isEscaped = true
        position += 1
        count = UTF8.width(scalar())
      } else if let nameByteCount = nameByteCount() {
        count = nameByteCount
      } else {
        break
      }
      name += text[position..<(position + count)]
      position += count
    }
    return name.isEmpty ? nil : (String(decoding: name, as: UTF8.self), isEscaped)
  }

  private mutating func string(endingWith quote: UInt8) throws(PredicateSyntaxError) -> String {
    var string: [UInt8] = []
    position += 1
    while let byte = byte() {
      position += 1
      if byte == quote { return String(decoding: string, as: UTF8.self) }
      guard byte == UInt8(ascii: "\\") else {
        string.append(byte)
        continue
      }
      guard let escaped = self.byte() else { break }
      position += 1
      switch escaped {
      case UInt8(ascii: "n"): string.append(UInt8(ascii: "\n"))
      case UInt8(ascii: "r"): string.append(UInt8(ascii: "\r"))
      case UInt8(ascii: "t"): string.append(UInt8(ascii: "\t"))
      case UInt8(ascii: "\\"), UInt8(ascii: "\""), UInt8(ascii: "'"): string.append(escaped)
      default:
        // Dropping the backslash would change what a pattern matches without a word.
        throw PredicateSyntaxError(
          at: position - 2, #"one of the escapes \n, \r, \t, \", \' and \\, which is a backslash,"#)
      }
    }
    throw PredicateSyntaxError(at: position, "a closing quote")
  }

  private mutating func number() throws(PredicateSyntaxError) -> JSONValue {
    let start = position
    func skipDigits(_ lexer: inout PredicateLexer) {
      while lexer.byte().map(Self.isDigit) == true { lexer.position += 1 }
    }
    skipDigits(&self)
    // An index or a member follows the dot of `a.0.b`.
    if byte() == UInt8(ascii: "."), byte(1).map(Self.isDigit) == true {
      position += 1
      skipDigits(&self)
    }
    if let exponent = byte(), exponent | 0x20 == UInt8(ascii: "e") {
      let hasSign = byte(1) == UInt8(ascii: "-") || byte(1) == UInt8(ascii: "+")
      if byte(hasSign ? 2 : 1).map(Self.isDigit) == true {
        position += hasSign ? 2 : 1
        skipDigits(&self)
      }
    }
    if nameByteCount() != nil { throw PredicateSyntaxError(at: position, "the end of the number") }
    let digits = String(decoding: text[start..<position], as: UTF8.self)
    if let integer = Int64(digits) { return .integer(integer) }
    guard let double = Double(digits) else { throw PredicateSyntaxError(at: start, "a number") }
    return .double(double)
  }

  private mutating func argument() throws(PredicateSyntaxError) -> PredicateToken.Kind {
    for format in ["@", "K", "lld", "llu", "ld", "lu", "lf", "d", "i", "u", "f"]
    where text[(position + 1)...].starts(with: format.utf8) {
      position += 1 + format.utf8.count
      return format == "K" ? .field : .value
    }
    throw PredicateSyntaxError(at: position, "%@ or %K")
  }
}
