import DataSources

extension EntityPredicate {
  /// A condition in words, as `NSPredicate` has them: comparisons of fields with values, joined by `AND`, `OR`, `NOT` (or `&&`, `||`, `!`)
  /// and brackets.
  ///
  /// Comparisons are `==`, `!=`, `<`, `<=`, `>`, `>=`, `IN {…}`, `BETWEEN {low, high}` and, for texts, `CONTAINS`, `BEGINSWITH`, `ENDSWITH`
  /// and `LIKE`, behind which `[c]` ignores case. Values are texts in quotes, numbers, `TRUE`, `FALSE`, `NULL` (or `nil`), and `%@`, which
  /// stands for the next argument; `%K` stands for a field that the next argument names. `SELF` is the entity itself, `TRUEPREDICATE` true
  /// of all.
  /// - Throws: `DataSourceError.illegalArgument` for text that is no such condition, or when arguments are missing or left.
  public init(_ format: String, _ arguments: any EntityField.Value...) throws {
    try self.init(format, arguments: arguments)
  }

  init(_ format: String, arguments: [any EntityField.Value]) throws {
    var parser = PredicateParser(tokens: try PredicateText(format).tokens[...], arguments: arguments[...])
    self.init(try parser.whole())
  }
}

/// Reads a condition out of tokens. One method a rule of the language.
private struct PredicateParser {
  typealias Condition = EntityPredicate.Condition
  typealias Value = any EntityField.Value

  /// How deep brackets may be inside each other.
  private static let maxDepth = 100

  var tokens: ArraySlice<PredicateText.Token>
  var arguments: ArraySlice<Value>
  private var depth = 0

  init(tokens: ArraySlice<PredicateText.Token>, arguments: ArraySlice<Value>) {
    self.tokens = tokens
    self.arguments = arguments
  }

  mutating func whole() throws -> Condition {
    let condition = try alternatives()
    guard tokens.isEmpty else { throw unexpected }
    guard arguments.isEmpty else { throw PredicateText.failure("\(arguments.count) arguments are left") }
    return condition
  }

  private mutating func alternatives() throws -> Condition {
    var parts = [try conjunction()]
    while take(word: "OR") || take(mark: "||") { parts.append(try conjunction()) }
    return parts.count == 1 ? parts[0] : .any(parts)
  }

  private mutating func conjunction() throws -> Condition {
    var parts = [try negation()]
    while take(word: "AND") || take(mark: "&&") { parts.append(try negation()) }
    return parts.count == 1 ? parts[0] : .all(parts)
  }

  private mutating func negation() throws -> Condition {
    depth += 1
    defer { depth -= 1 }
    guard depth <= Self.maxDepth else { throw PredicateText.failure("brackets more than \(Self.maxDepth) deep") }
    if take(word: "NOT") || take(mark: "!") { return .not(try negation()) }
    if take(mark: "(") {
      let condition = try alternatives()
      guard take(mark: ")") else { throw unexpected }
      return condition
    }
    if take(word: "TRUEPREDICATE") { return .always(true) }
    if take(word: "FALSEPREDICATE") { return .always(false) }
    return try comparison()
  }

  private mutating func comparison() throws -> Condition {
    let field = try field()
    guard let token = tokens.popFirst() else { throw unexpected }
    switch token {
    case .mark(let mark): return try comparison(field, mark)
    case .word(let word): return try comparison(field, word: word.uppercased())
    default: throw unexpected
    }
  }

  private mutating func comparison(_ field: EntityField, _ mark: String) throws -> Condition {
    let isUnequal = mark == "!=" || mark == "<>"
    let comparison: EntityPredicate.Comparison
    switch mark {
    case "=", "==", "!=", "<>": comparison = .equal
    case "<": comparison = .less
    case "<=", "=<": comparison = .lessOrEqual
    case ">": comparison = .greater
    case ">=", "=>": comparison = .greaterOrEqual
    default: throw PredicateText.failure(mark)
    }
    let ignoringCase = try comparison == .equal && takeCaseOption()
    let condition = Condition.comparison(field, comparison, [try value()], ignoringCase: ignoringCase)
    return isUnequal ? .not(condition) : condition
  }

  private mutating func comparison(_ field: EntityField, word: String) throws -> Condition {
    switch word {
    case "IN": return .comparison(field, .oneOf, try values(), ignoringCase: false)
    case "BETWEEN":
      let bounds = try values()
      guard bounds.count == 2 else { throw PredicateText.failure("BETWEEN takes two values") }
      return .all([
        .comparison(field, .greaterOrEqual, [bounds[0]], ignoringCase: false),
        .comparison(field, .lessOrEqual, [bounds[1]], ignoringCase: false),
      ])
    case "CONTAINS": return try comparison(ofTexts: field, .contains)
    case "BEGINSWITH": return try comparison(ofTexts: field, .beginsWith)
    case "ENDSWITH": return try comparison(ofTexts: field, .endsWith)
    case "LIKE": return try comparison(ofTexts: field, .like)
    default: throw PredicateText.failure(word)
    }
  }

  private mutating func comparison(
    ofTexts field: EntityField, _ comparison: EntityPredicate.Comparison
  ) throws -> Condition {
    let ignoringCase = try takeCaseOption()
    return .comparison(field, comparison, [try value()], ignoringCase: ignoringCase)
  }

  private mutating func field() throws -> EntityField {
    switch tokens.popFirst() {
    case .word(let name): return try EntityField(path: name)
    case .fieldArgument:
      guard let name = arguments.popFirst() as? String else { throw PredicateText.failure("%K without a field's name") }
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
      guard let argument = arguments.popFirst() else { throw PredicateText.failure("an argument is missing") }
      return argument
    case .word(let word):
      switch word.uppercased() {
      case "TRUE", "YES": return true
      case "FALSE", "NO": return false
      case "NULL", "NIL": return String?.none
      default: throw PredicateText.failure(word)
      }
    default: throw unexpected
    }
  }

  /// Values in braces, or an argument that is an array of them.
  private mutating func values() throws -> [Value] {
    if tokens.first == .argument {
      tokens.removeFirst()
      guard let list = arguments.popFirst() else { throw PredicateText.failure("an argument is missing") }
      return try JSONScalar.list(list)
    }
    guard take(mark: "{") else { throw unexpected }
    var values: [Value] = []
    while !take(mark: "}") {
      if !values.isEmpty, !take(mark: ",") { throw unexpected }
      values.append(try value())
    }
    return values
  }

  private mutating func takeCaseOption() throws -> Bool {
    guard take(mark: "[") else { return false }
    guard take(word: "C"), take(mark: "]") else { throw PredicateText.failure("options other than [c]") }
    return true
  }

  private mutating func take(word: String) -> Bool {
    guard case .word(let next)? = tokens.first, next.uppercased() == word else { return false }
    tokens.removeFirst()
    return true
  }

  private mutating func take(mark: String) -> Bool {
    guard tokens.first == .mark(mark) else { return false }
    tokens.removeFirst()
    return true
  }

  private var unexpected: DataSourceError {
    PredicateText.failure(tokens.first.map { "\($0)" } ?? "something is missing at its end")
  }
}
