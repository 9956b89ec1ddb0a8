/// The words of a console line, by the rules of a shell: white space separates words, single quotes preserve
/// everything, double quotes preserve everything but a backslash before `"`, `\`, `$` and a backtick, and an unquoted
/// backslash preserves the next character. No other character is special.
struct CommandWords: Equatable {
  /// The complete words: those followed by white space.
  private(set) var words: [String] = []
  /// The word at the end of the line, unless white space follows it. Completion extends this word.
  private(set) var last: Word?

  /// A word at the end of a line.
  struct Word: Equatable {
    /// The word without its quotes.
    private(set) var text = ""
    /// The word's position in the line.
    let start: String.Index
    /// The quote that is still open.
    private(set) var quote: Unicode.Scalar?
    /// A Boolean value that indicates whether a backslash precedes the next character.
    fileprivate var isEscaping = false

    /// The characters that a backslash escapes in double quotes.
    fileprivate static let escapable = "\"\\$`".unicodeScalars

    fileprivate init(start: String.Index) { self.start = start }

    fileprivate mutating func append(_ scalar: Unicode.Scalar) {
      if isEscaping {
        isEscaping = false
        if quote == "\"", !Self.escapable.contains(scalar) { text.unicodeScalars.append("\\") }
        text.unicodeScalars.append(scalar)
      } else if scalar == "\\", quote != "'" {
        isEscaping = true
      } else if scalar == quote {
        quote = nil
      } else if quote == nil, scalar == "'" || scalar == "\"" {
        quote = scalar
      } else {
        text.unicodeScalars.append(scalar)
      }
    }
  }

  init(_ line: String) {
    let scalars = line.unicodeScalars
    for index in scalars.indices {
      let scalar = scalars[index]
      if Self.isSpace(scalar), last.map({ $0.quote == nil && !$0.isEscaping }) ?? true {
        if let word = last.take() { words.append(word.text) }
        continue
      }
      var word = last ?? Word(start: index)
      word.append(scalar)
      last = word
    }
  }

  /// Returns all words of a line.
  /// - Throws: `CommandFailure` for an unclosed quote or a backslash at the end.
  static func split(_ line: String) throws(CommandFailure) -> [String] {
    let line = CommandWords(line)
    guard let last = line.last else { return line.words }
    if let quote = last.quote { throw CommandFailure(.usage, "a quote is not closed; add a closing \(quote)") }
    if last.isEscaping {
      throw CommandFailure(.usage, "the line ends in a backslash; type two for the character itself")
    }
    return line.words + [last.text]
  }

  /// Returns a word in the form in which it can be typed.
  /// - Parameters:
  ///   - quote: The quote with which the word already begins; nil to choose one if needed.
  ///   - isComplete: Whether to close the quote.
  static func quoted(_ word: String, with quote: Unicode.Scalar? = nil, isComplete: Bool = true) -> String {
    let plain = word.unicodeScalars.allSatisfy { !isSpace($0) && !"'\"\\".unicodeScalars.contains($0) }
    if quote == nil, plain, !word.isEmpty || !isComplete { return word }
    let quote = quote ?? (word.unicodeScalars.contains("'") ? "\"" : "'")
    var text = String.UnicodeScalarView([quote])
    for scalar in word.unicodeScalars {
      if quote == "'", scalar == "'" {
        text.append(contentsOf: #"'\''"#.unicodeScalars)
        continue
      }
      if quote == "\"", Word.escapable.contains(scalar) { text.append("\\") }
      text.append(scalar)
    }
    if isComplete { text.append(quote) }
    return String(text)
  }

  private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" || scalar == "\n" }
}
