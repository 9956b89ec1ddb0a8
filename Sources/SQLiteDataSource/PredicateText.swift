import DataSources

/// Takes a condition in words apart into its words, numbers, texts and marks.
struct PredicateText {
  enum Token: Equatable {
    /// A name or a word of the language: `price`, `AND`, `author.name`.
    case word(String)
    case text(String)
    case integer(Int64)
    case number(Double)
    /// `%@` and the like: the next argument; `%K`: a field that the next argument names.
    case argument
    case fieldArgument
    /// Operators, brackets, commas.
    case mark(String)
  }

  private static let marks = [
    "==", "!=", "<>", "<=", ">=", "=<", "=>", "&&", "||", "=", "<", ">", "!", "(", ")", "{", "}", ",", "[", "]",
  ]

  let tokens: [Token]

  init(_ text: String) throws {
    var (rest, tokens) = (text[...], [Token]())
    while let next = rest.first {
      if next.isWhitespace {
        rest.removeFirst()
      } else if next == "\"" || next == "'" {
        tokens.append(.text(try Self.quoted(&rest)))
      } else if next == "%" {
        tokens.append(try Self.argument(&rest))
      } else if next.isNumber || next == "-" || next == "." {
        tokens.append(try Self.number(&rest))
      } else if next.isLetter || next == "_" {
        let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
        tokens.append(.word(String(word)))
        rest = rest.dropFirst(word.count)
      } else if let mark = Self.marks.first(where: { rest.hasPrefix($0) }) {
        tokens.append(.mark(mark))
        rest = rest.dropFirst(mark.count)
      } else {
        throw Self.failure("\(next)")
      }
    }
    self.tokens = tokens
  }

  private static func quoted(_ rest: inout Substring) throws -> String {
    let quote = rest.removeFirst()
    var text = ""
    while let next = rest.popFirst() {
      if next == quote { return text }
      if next == "\\" {
        guard let escaped = rest.popFirst() else { break }
        text.append(escaped == "n" ? "\n" : escaped == "t" ? "\t" : escaped)
      } else {
        text.append(next)
      }
    }
    throw failure("a text without its end")
  }

  private static func argument(_ rest: inout Substring) throws -> Token {
    if rest.hasPrefix("%K") {
      rest = rest.dropFirst(2)
      return .fieldArgument
    }
    for mark in ["%@", "%lld", "%llu", "%lu", "%ld", "%lf", "%d", "%i", "%u", "%f"] where rest.hasPrefix(mark) {
      rest = rest.dropFirst(mark.count)
      return .argument
    }
    throw failure(String(rest.prefix(2)))
  }

  private static func number(_ rest: inout Substring) throws -> Token {
    let text = rest.prefix { $0.isLetter || $0.isNumber || $0 == "." || $0 == "-" || $0 == "+" }
    rest = rest.dropFirst(text.count)
    if let integer = Int64(text) { return .integer(integer) }
    guard let number = Double(text), number.isFinite else { throw failure(String(text)) }
    return .number(number)
  }

  static func failure(_ what: String) -> DataSourceError {
    DataSourceError(.illegalArgument, "a predicate can't be read: \(what.debugDescription)")
  }
}
