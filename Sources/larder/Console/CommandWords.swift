/// The words of a command in the console, on one or more lines, by the rules of a shell: white space separates words,
/// single quotes preserve everything, double quotes preserve everything but a backslash before `"`, `\`, `$` and a
/// backtick, and an unquoted backslash preserves the next character. No other character is special.
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
    /// A Boolean value that indicates whether the word has anything but a backslash at the end of a line.
    fileprivate var hasContent = false

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
      if !isEscaping { hasContent = true }
    }
  }

  init(_ line: String) { append(line) }

  /// A Boolean value that indicates whether the words continue on the next line: a quote is open, or the line ends in a
  /// backslash.
  var isUnfinished: Bool { last.map { $0.quote != nil || $0.isEscaping } ?? false }

  /// Adds the next line of unfinished words. A backslash at the end of a line joins the lines; in a quote, the line
  /// break is part of the word.
  mutating func continueLine(_ line: String) {
    if last?.isEscaping == true {
      last?.isEscaping = false
      if last?.hasContent == false { last = nil }
    } else {
      last?.append("\n")
    }
    append(line)
  }

  private mutating func append(_ line: String) {
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
    try CommandWords(line).all()
  }

  /// Returns all words.
  /// - Throws: `CommandFailure` if they are unfinished.
  func all() throws(CommandFailure) -> [String] {
    guard let last else { return words }
    if let quote = last.quote { throw CommandFailure(.usage, "a quote is not closed; add a closing \(quote)") }
    if last.isEscaping {
      throw CommandFailure(.usage, "the line ends in a backslash; type two for the character itself")
    }
    return words + [last.text]
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

  /// Returns a word in the form in which it can be typed in a shell and in the console.
  static func quotedForShell(_ word: String) -> String {
    let isPlain = word.utf8.allSatisfy { byte in
      switch UnicodeScalar(byte) {
      case "a"..."z", "A"..."Z", "0"..."9", "-", "_", ".", "/", ":", ",", "+", "@", "%": true
      default: false
      }
    }
    return isPlain && !word.isEmpty ? word : quoted(word, with: "'")
  }

  private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" || scalar == "\n" }
}
