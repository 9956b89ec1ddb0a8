import DataSources
import Documents

extension EntityPredicate {
  /// Parses a condition in the language of `NSPredicate`: comparisons of fields with values, combined with `AND`, `OR`,
  /// `NOT` (or `&&`, `||`, `!`) and parentheses.
  ///
  /// The comparisons are `==`, `!=`, `<`, `<=`, `>`, `>=`, `IN {…}`, `BETWEEN {low, high}` and, for texts, `CONTAINS`,
  /// `BEGINSWITH`, `ENDSWITH` and `LIKE`, which ignore case if `[c]` follows. Values are quoted texts, numbers, `TRUE`,
  /// `FALSE`, `NULL` (or `nil`), and `%@`, which stands for the next argument; `%K` stands for the field that the next
  /// argument names. `SELF` is the entity itself, and every entity satisfies `TRUEPREDICATE`.
  /// - Throws: `DataSourceError.illegalArgument` for text that is not a condition, and for missing or unused arguments.
  public init(_ format: String, _ arguments: any EntityField.Value...) throws {
    try self.init(format, arguments: arguments)
  }

  init(_ format: String, arguments: [any EntityField.Value]) throws {
    var parser = PredicateParser(tokens: try PredicateLexer.tokens(of: format)[...], arguments: arguments[...])
    self.init(try parser.predicate())
  }
}

/// A parser of conditions, with one method per rule of the language.
private struct PredicateParser {
  typealias Condition = EntityPredicate.Condition
  typealias Value = any EntityField.Value

  /// The maximum depth of nested parentheses.
  private static let maxDepth = 100

  private var tokens: ArraySlice<PredicateLexer.Token>
  private var arguments: ArraySlice<Value>
  private var depth = 0

  init(tokens: ArraySlice<PredicateLexer.Token>, arguments: ArraySlice<Value>) {
    self.tokens = tokens
    self.arguments = arguments
  }

  mutating func predicate() throws -> Condition {
    let condition = try disjunction()
    guard tokens.isEmpty else { throw unexpected }
    guard arguments.isEmpty else { throw PredicateLexer.failure("it has \(arguments.count) arguments too many") }
    return condition
  }

  private mutating func disjunction() throws -> Condition {
    var parts = [try conjunction()]
    while take(keyword: "OR") || take(symbol: "||") { parts.append(try conjunction()) }
    return parts.count == 1 ? parts[0] : .any(parts)
  }

  private mutating func conjunction() throws -> Condition {
    var parts = [try negation()]
    while take(keyword: "AND") || take(symbol: "&&") { parts.append(try negation()) }
    return parts.count == 1 ? parts[0] : .all(parts)
  }

  private mutating func negation() throws -> Condition {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.maxDepth else {
      throw PredicateLexer.failure("parentheses are nested more than \(Self.maxDepth) levels deep")
    }
    if take(keyword: "NOT") || take(symbol: "!") { return .not(try negation()) }
    if take(symbol: "(") {
      let condition = try disjunction()
      guard take(symbol: ")") else { throw unexpected }
      return condition
    }
    if take(keyword: "TRUEPREDICATE") { return .always(true) }
    if take(keyword: "FALSEPREDICATE") { return .always(false) }
    return try comparison()
  }

  private mutating func comparison() throws -> Condition {
    let field = try field()
    guard let token = tokens.popFirst() else { throw unexpected }
    switch token {
    case .symbol(let symbol): return try symbolComparison(field, symbol)
    case .word(let word): return try keywordComparison(field, word.uppercased())
    default: throw unexpected
    }
  }

  private mutating func symbolComparison(_ field: EntityField, _ symbol: String) throws -> Condition {
    let isUnequal = symbol == "!=" || symbol == "<>"
    let comparison: EntityPredicate.Comparison
    switch symbol {
    case "=", "==", "!=", "<>": comparison = .equal
    case "<": comparison = .less
    case "<=", "=<": comparison = .lessOrEqual
    case ">": comparison = .greater
    case ">=", "=>": comparison = .greaterOrEqual
    default: throw PredicateLexer.failure(symbol)
    }
    let ignoringCase = try comparison == .equal && takeCaseOption()
    let condition = Condition.comparison(field, comparison, [try value()], ignoringCase: ignoringCase)
    return isUnequal ? .not(condition) : condition
  }

  private mutating func keywordComparison(_ field: EntityField, _ keyword: String) throws -> Condition {
    switch keyword {
    case "IN": return .comparison(field, .oneOf, try values(), ignoringCase: false)
    case "BETWEEN":
      let bounds = try values()
      guard bounds.count == 2 else { throw PredicateLexer.failure("BETWEEN needs two values") }
      return .all([
        .comparison(field, .greaterOrEqual, [bounds[0]], ignoringCase: false),
        .comparison(field, .lessOrEqual, [bounds[1]], ignoringCase: false),
      ])
    case "CONTAINS": return try textComparison(field, .contains)
    case "BEGINSWITH": return try textComparison(field, .beginsWith)
    case "ENDSWITH": return try textComparison(field, .endsWith)
    case "LIKE": return try textComparison(field, .like)
    default: throw PredicateLexer.failure(keyword)
    }
  }

  private mutating func textComparison(
    _ field: EntityField, _ comparison: EntityPredicate.Comparison
  ) throws -> Condition {
    let ignoringCase = try takeCaseOption()
    return .comparison(field, comparison, [try value()], ignoringCase: ignoringCase)
  }

  private mutating func field() throws -> EntityField {
    switch tokens.popFirst() {
    case .word(let name): return try EntityField(path: name)
    case .fieldArgument:
      guard let name = arguments.popFirst() as? String else {
        throw PredicateLexer.failure("%K needs an argument with the name of a field")
      }
      return try EntityField(path: name)
    default: throw unexpected
    }
  }

  private mutating func value() throws -> Value {
    switch tokens.popFirst() {
    case .text(let text): return text
    case .integer(let number): return number
    case .number(let number): return number
    case .argument:
      guard let argument = arguments.popFirst() else { throw PredicateLexer.failure("an argument is missing") }
      return argument
    case .word(let word):
      switch word.uppercased() {
      case "TRUE", "YES": return true
      case "FALSE", "NO": return false
      case "NULL", "NIL": return String?.none
      default: throw PredicateLexer.failure(word)
      }
    default: throw unexpected
    }
  }

  /// Parses values in braces, or takes an argument that is an array of values.
  private mutating func values() throws -> [Value] {
    if tokens.first == .argument {
      tokens.removeFirst()
      guard let list = arguments.popFirst() else { throw PredicateLexer.failure("an argument is missing") }
      return try JSONValue.list(encoding: list)
    }
    guard take(symbol: "{") else { throw unexpected }
    var values: [Value] = []
    while !take(symbol: "}") {
      if !values.isEmpty, !take(symbol: ",") { throw unexpected }
      values.append(try value())
    }
    return values
  }

  private mutating func takeCaseOption() throws -> Bool {
    guard take(symbol: "[") else { return false }
    guard take(keyword: "C"), take(symbol: "]") else { throw PredicateLexer.failure("the only option is [c]") }
    return true
  }

  private mutating func take(keyword: String) -> Bool {
    guard case .word(let next)? = tokens.first, next.uppercased() == keyword else { return false }
    tokens.removeFirst()
    return true
  }

  private mutating func take(symbol: String) -> Bool {
    guard tokens.first == .symbol(symbol) else { return false }
    tokens.removeFirst()
    return true
  }

  private var unexpected: DataSourceError {
    PredicateLexer.failure(tokens.first.map { "\($0)" } ?? "the end is missing")
  }
}

/// Splits the text of a condition into tokens.
private enum PredicateLexer {
  enum Token: Equatable {
    /// A name or a keyword: `price`, `AND`, `author.name`.
    case word(String)
    case text(String)
    case integer(Int64)
    case number(Double)
    /// `%@` and the like: the next argument.
    case argument
    /// `%K`: a field that the next argument names.
    case fieldArgument
    /// An operator, a parenthesis, a bracket, a brace or a comma.
    case symbol(String)
  }

  private static let symbols = [
    "==", "!=", "<>", "<=", ">=", "=<", "=>", "&&", "||", "=", "<", ">", "!", "(", ")", "{", "}", ",", "[", "]",
  ]

  static func tokens(of text: String) throws -> [Token] {
    var (rest, tokens) = (text[...], [Token]())
    while let next = rest.first {
      if next.isWhitespace {
        rest.removeFirst()
      } else if next == "\"" || next == "'" {
        tokens.append(.text(try takeQuotedText(&rest)))
      } else if next == "%" {
        tokens.append(try takeArgument(&rest))
      } else if next.isNumber || next == "-" || next == "." {
        tokens.append(try takeNumber(&rest))
      } else if next.isLetter || next == "_" {
        let word = rest.prefix { $0.isLetter || $0.isNumber || $0 == "_" || $0 == "." }
        tokens.append(.word(String(word)))
        rest = rest.dropFirst(word.count)
      } else if let symbol = symbols.first(where: { rest.hasPrefix($0) }) {
        tokens.append(.symbol(symbol))
        rest = rest.dropFirst(symbol.count)
      } else {
        throw failure("\(next)")
      }
    }
    return tokens
  }

  private static func takeQuotedText(_ rest: inout Substring) throws -> String {
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
    throw failure("the closing quote is missing")
  }

  private static func takeArgument(_ rest: inout Substring) throws -> Token {
    if rest.hasPrefix("%K") {
      rest = rest.dropFirst(2)
      return .fieldArgument
    }
    for format in ["%@", "%lld", "%llu", "%lu", "%ld", "%lf", "%d", "%i", "%u", "%f"] where rest.hasPrefix(format) {
      rest = rest.dropFirst(format.count)
      return .argument
    }
    throw failure(String(rest.prefix(2)))
  }

  private static func takeNumber(_ rest: inout Substring) throws -> Token {
    let text = rest.prefix { $0.isLetter || $0.isNumber || $0 == "." || $0 == "-" || $0 == "+" }
    rest = rest.dropFirst(text.count)
    if let integer = Int64(text) { return .integer(integer) }
    guard let number = Double(text), number.isFinite else { throw failure(String(text)) }
    return .number(number)
  }

  static func failure(_ what: String) -> DataSourceError {
    DataSourceError(.illegalArgument, "the predicate can't be parsed: \(what.debugDescription)")
  }
}
