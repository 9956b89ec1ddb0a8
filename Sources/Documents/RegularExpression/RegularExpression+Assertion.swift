extension RegularExpression {
  /// A condition on the place between two scalars.
  enum Assertion: Hashable, Sendable {
    /// The start of the text: `\A`, and `^` unless multi-line.
    case textStart
    /// The start of a line: `^` if multi-line.
    case lineStart
    /// The end of the text: `\Z`.
    case textEnd
    /// The end of the text, or the place before its final newline: `$` unless multi-line.
    case lastLineEnd
    /// The end of a line: `$` if multi-line.
    case lineEnd
    /// The start or end of a word: `\b`.
    case wordBoundary(ascii: Bool)
    /// A place that isn't a word boundary: `\B`. As in Python 3.11, an empty text has none.
    case notWordBoundary(ascii: Bool)

    /// A Boolean value that indicates whether the assertion depends on the words around the place.
    var dependsOnWords: Bool {
      switch self {
      case .wordBoundary, .notWordBoundary: true
      case .textStart, .lineStart, .textEnd, .lastLineEnd, .lineEnd: false
      }
    }

    /// The contexts before the place that the assertion depends on.
    var precedingContexts: Context {
      switch self {
      case .textStart: .textStart
      case .lineStart: [.textStart, .newline]
      case .wordBoundary(let ascii): ascii ? .asciiWord : .word
      case .notWordBoundary(let ascii): [.textStart, ascii ? .asciiWord : .word]
      case .textEnd, .lastLineEnd, .lineEnd: []
      }
    }

    /// Returns a Boolean value that indicates whether the assertion holds between two contexts.
    func holds(between previous: Context, and next: Context) -> Bool {
      switch self {
      case .textStart: previous.contains(.textStart)
      case .lineStart: !previous.isDisjoint(with: [.textStart, .newline])
      case .textEnd: next.contains(.textEnd)
      case .lastLineEnd: !next.isDisjoint(with: [.textEnd, .finalNewline])
      case .lineEnd: !next.isDisjoint(with: [.textEnd, .newline])
      case .wordBoundary(let ascii):
        previous.contains(ascii ? .asciiWord : .word) != next.contains(ascii ? .asciiWord : .word)
      case .notWordBoundary(let ascii):
        previous.contains(ascii ? .asciiWord : .word) == next.contains(ascii ? .asciiWord : .word)
          && !(previous.contains(.textStart) && next.contains(.textEnd))
      }
    }
  }

  /// What a scalar, or the end of the text, means to the assertions beside it.
  struct Context: OptionSet, Hashable, Sendable {
    let rawValue: UInt8
    /// Nothing precedes.
    static let textStart = Context(rawValue: 1)
    /// Nothing follows.
    static let textEnd = Context(rawValue: 2)
    static let newline = Context(rawValue: 4)
    /// The newline that ends the text.
    static let finalNewline = Context(rawValue: 8)
    static let word = Context(rawValue: 16)
    static let asciiWord = Context(rawValue: 32)
  }
}
