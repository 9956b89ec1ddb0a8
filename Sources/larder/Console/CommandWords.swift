/// The words of a command in the console, on one or more lines, by the rules of a shell: white space separates words,
/// single quotes preserve everything, double quotes preserve everything but a backslash before `"`, `\`, `$` and a
/// backtick, and an unquoted backslash preserves the next character. No other character is special.
///
/// JSON arrives as typed, unlike in a shell: a word that begins like an object, or like an array of strings or objects,
/// has everything up to the closing bracket, with its quotes and spaces.
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
    /// The JSON whose closing bracket is still missing.
    fileprivate var json: OpenJSON?

    /// The characters that a backslash escapes in double quotes.
    fileprivate static let escapable = "\"\\$`".unicodeScalars

    fileprivate init(start: String.Index) { self.start = start }

    /// A Boolean value that indicates whether a value can come next: at the start, and after `--option=`.
    fileprivate var expectsValue: Bool {
      !isEscaping && (!hasContent || (quote == nil && text.hasPrefix("--") && text.hasSuffix("=")))
    }

    /// - Parameter beginsJSON: Whether JSON begins with the character.
    fileprivate mutating func append(_ scalar: Unicode.Scalar, beginsJSON: Bool = false) {
      if var open = json ?? (beginsJSON ? OpenJSON() : nil) {
        text.unicodeScalars.append(scalar)
        hasContent = true
        open.advance(past: scalar)
        json = open.depth > 0 ? open : nil
        return
      }
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

  /// JSON up to a character inside of it.
  fileprivate struct OpenJSON: Equatable {
    /// The number of open brackets.
    private(set) var depth = 0
    private var isInString = false
    /// A Boolean value that indicates whether a backslash precedes the next character of a string.
    private var isEscaping = false

    mutating func advance(past scalar: Unicode.Scalar) {
      if isEscaping {
        isEscaping = false
      } else if isInString {
        isEscaping = scalar == "\\"
        isInString = scalar != "\""
      } else {
        switch scalar {
        case "\"": isInString = true
        case "{", "[": depth += 1
        case "}", "]": depth -= 1
        default: break
        }
      }
    }

    /// Returns whether a text begins like an object, or like an array of strings or objects: other words with brackets,
    /// such as the pattern `[a-z]*`, are no JSON. The rest of an object can be on the next line.
    static func begins(_ text: Substring.UnicodeScalarView) -> Bool {
      let rest = text.dropFirst().drop(while: CommandWords.isSpace)
      switch text.first {
      case "{": return rest.first.map { $0 == "\"" || $0 == "}" } ?? true
      case "[": return rest.first == "\"" || (!rest.isEmpty && begins(rest))
      default: return false
      }
    }
  }

  init(_ line: String) { append(line) }

  /// A Boolean value that indicates whether the words continue on the next line: a quote or the bracket of JSON is open,
  /// or the line ends in a backslash.
  var isUnfinished: Bool { last.map { $0.quote != nil || $0.isEscaping || $0.json != nil } ?? false }

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
      if Self.isSpace(scalar), !isUnfinished {
        if let word = last.take() { words.append(word.text) }
        continue
      }
      var word = last ?? Word(start: index)
      word.append(scalar, beginsJSON: word.expectsValue && OpenJSON.begins(scalars[index...]))
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
    if last.json != nil { throw CommandFailure(.usage, "a bracket of a JSON argument is not closed") }
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
    let hasBracket = word.hasPrefix("{") || word.hasPrefix("[")
    let plain = !hasBracket && word.unicodeScalars.allSatisfy { !isSpace($0) && !"'\"\\".unicodeScalars.contains($0) }
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
