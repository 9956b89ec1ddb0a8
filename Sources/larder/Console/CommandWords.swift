/// A line of the console as words, by a shell's rules: spaces part words, single quotes keep everything, double quotes keep all but a
/// backslash before `"`, `\`, `$` and the backtick, and a backslash elsewhere keeps what follows it. Nothing else has a meaning.
struct CommandWords: Equatable {
  /// The words that are whole: something stands behind them.
  private(set) var words: [String] = []
  /// The last word, if nothing stands behind it; what is typed now when a line is completed.
  private(set) var last: Word?

  /// A word at the end of a line.
  struct Word: Equatable {
    /// Without its quotes.
    var text = ""
    /// Where it begins in the line.
    let start: String.Index
    /// The quote that is not closed yet.
    var quote: Unicode.Scalar?
    /// Whether a backslash stands at the end.
    var isEscaping = false
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
      word.take(scalar)
      last = word
    }
  }

  /// All words.
  /// - Throws: for a quote without its end.
  static func split(_ line: String) throws(CommandFailure) -> [String] {
    let line = CommandWords(line)
    guard let last = line.last else { return line.words }
    if let quote = last.quote { throw CommandFailure(.usage, "a quote is not closed: put another \(quote) at its end") }
    if last.isEscaping {
      throw CommandFailure(.usage, "a backslash stands at the end; write two for the character itself")
    }
    return line.words + [last.text]
  }

  /// How a word is typed.
  /// - Parameters:
  ///   - quote: the one that it begins with already; nil for any or none.
  ///   - isWhole: whether the quote is closed.
  static func quoted(_ word: String, with quote: Unicode.Scalar? = nil, isWhole: Bool = true) -> String {
    let plain = word.unicodeScalars.allSatisfy { !isSpace($0) && !"'\"\\".unicodeScalars.contains($0) }
    if quote == nil, plain, !word.isEmpty || !isWhole { return word }
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
    if isWhole { text.append(quote) }
    return String(text)
  }

  private static func isSpace(_ scalar: Unicode.Scalar) -> Bool { scalar == " " || scalar == "\t" || scalar == "\n" }
}

extension CommandWords.Word {
  /// What a backslash in double quotes takes its meaning from.
  fileprivate static let escapable = "\"\\$`".unicodeScalars

  init(start: String.Index) { self.start = start }

  fileprivate mutating func take(_ scalar: Unicode.Scalar) {
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
