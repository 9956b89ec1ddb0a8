import Documents

/// Parses raw predicates, with one method for each rule of the language, and lowers them to trees.
///
/// A parenthesis can hold a predicate or an operand. Both are parsed by the same rules, which return either, so that
/// nothing is ever read twice.
struct PredicateParser {
  /// What a rule returns.
  private enum Node {
    case predicate(SelectorTree)
    case operand(PredicateOperand)
  }

  /// What is bound to a place in the text.
  enum Argument: Sendable {
    case value(JSONValue)
    case field(FieldPath?)
  }

  /// The deepest nesting of parentheses, negations and signs.
  private static let maxDepth = 64

  private let tokens: [PredicateToken]
  private var position = 0
  private var depth = 0
  private var conditionCount = 0
  private var arguments: ArraySlice<Argument>
  /// The offsets of interpolated values; nil if arguments are bound in their order.
  private let interpolations: Set<Int>?
  /// Whether the predicate is about documents, and never about an element of an array itself.
  private let isAboutDocuments: Bool
  /// The variable of the SUBQUERY that is being parsed.
  private var variable: String?

  /// Returns the tree of a predicate.
  /// - Parameters:
  ///   - arguments: What is bound to `%@` and `%K`, in their order.
  ///   - interpolations: The offsets of the `%@` that stand for interpolated values; nil if the text has all of them.
  ///   - isAboutDocuments: Whether the predicate is about documents, and never about an element of an array itself.
  /// - Throws: `PredicateSyntaxError`, or `FilterError` for a malformed pattern or a value without an order.
  static func tree(
    of text: String, arguments: [Argument], interpolations: Set<Int>? = nil, isAboutDocuments: Bool
  ) throws -> SelectorTree {
    var parser = PredicateParser(try PredicateLexer.tokens(of: text), arguments, interpolations, isAboutDocuments)
    let node = try parser.disjunction()
    guard parser.next.kind == .end else { throw parser.expected("an operator or the end") }
    let tree = try parser.predicate(node)
    guard parser.arguments.isEmpty else {
      throw parser.expected("\(parser.arguments.count) more %@ for the arguments")
    }
    return tree
  }

  private init(
    _ tokens: [PredicateToken], _ arguments: [Argument], _ interpolations: Set<Int>?, _ isAboutDocuments: Bool
  ) {
    self.tokens = tokens
    self.arguments = arguments[...]
    self.interpolations = interpolations
    self.isAboutDocuments = isAboutDocuments
  }

  // MARK: Tokens

  private var next: PredicateToken { tokens[position] }

  private func expected(_ what: String) -> PredicateSyntaxError { PredicateSyntaxError(at: next.offset, what) }

  private mutating func take(_ symbols: String...) -> Bool {
    guard case .symbol(let symbol) = next.kind, symbols.contains(symbol) else { return false }
    position += 1
    return true
  }

  private mutating func take(keyword words: String...) -> Bool {
    guard words.contains(where: next.isKeyword) else { return false }
    position += 1
    return true
  }

  private mutating func expect(_ symbol: String, _ what: String) throws(PredicateSyntaxError) {
    guard take(symbol) else { throw expected(what) }
  }

  private mutating func nested<Result>(_ body: (inout PredicateParser) throws -> Result) throws -> Result {
    guard depth < Self.maxDepth else { throw expected("less nesting: up to \(Self.maxDepth) levels") }
    depth += 1
    defer { depth -= 1 }
    return try body(&self)
  }

  // MARK: Predicates

  private mutating func disjunction() throws -> Node {
    let first = try conjunction()
    guard next.isKeyword("OR") || next.kind == .symbol("||") else { return first }
    var parts = [try predicate(first)]
    while take(keyword: "OR") || take("||") {
      let part = try conjunction()
      parts.append(try predicate(part))
    }
    return .predicate(.any(of: parts))
  }

  private mutating func conjunction() throws -> Node {
    let first = try negation()
    guard next.isKeyword("AND") || next.kind == .symbol("&&") else { return first }
    var parts = [try predicate(first)]
    while take(keyword: "AND") || take("&&") {
      let part = try negation()
      parts.append(try predicate(part))
    }
    return .predicate(.all(of: parts))
  }

  private mutating func negation() throws -> Node {
    guard take(keyword: "NOT") || take("!") else { return try comparison() }
    let part = try nested { parser in try parser.negation() }
    return .predicate(.complement(of: try predicate(part)))
  }

  /// Returns a predicate, which an operand alone is if it is a Boolean value or a field with one.
  private mutating func predicate(_ node: Node) throws(PredicateSyntaxError) -> SelectorTree {
    switch node {
    case .predicate(let tree): return tree
    case .operand(.field(let path)):
      try countCondition()
      return Lowering.equal(path, true)
    case .operand(.value(.bool(let value))): return value ? .everything : .nothing
    case .operand: throw expected("a comparison operator")
    }
  }

  private mutating func countCondition() throws(PredicateSyntaxError) {
    conditionCount += 1
    guard conditionCount <= Selector.maxNodeCount else {
      throw expected("fewer conditions: up to \(Selector.maxNodeCount)")
    }
  }

  private mutating func comparison() throws -> Node {
    var quantifier: PredicateComparison.Quantifier?
    if take(keyword: "ANY", "SOME") {
      quantifier = .any
    } else if take(keyword: "ALL") {
      quantifier = .all
    } else if take(keyword: "NONE") {
      quantifier = PredicateComparison.Quantifier.none
    }
    let start = next.offset
    let left = try sum()
    guard let operation = PredicateComparison.Operator(next.kind) else {
      guard quantifier == nil else { throw expected("a comparison operator") }
      return left
    }
    position += 1
    try countCondition()
    let optionsOffset = next.offset
    let options = try options()
    let rightOffset = next.offset
    let rightNode = try sum()
    let comparison = PredicateComparison(
      left: try operand(left, at: start), operation: operation, options: options,
      right: try operand(rightNode, at: rightOffset), isAboutElement: variable != nil)
    do { return .predicate(try comparison.tree(quantifier)) } catch let error as PredicateComparison.Mismatch {
      let offset =
        switch error.part {
        case .left: start
        case .options: optionsOffset
        case .right: rightOffset
        }
      throw PredicateSyntaxError(at: offset, error.expected)
    }
  }

  private mutating func options() throws(PredicateSyntaxError) -> Selector.StringOptions {
    guard take("[") else { return [] }
    guard case .word(_, let letters) = next.kind, !letters.isEmpty, letters.allSatisfy({ "CD".contains($0) }) else {
      throw expected("c, d or cd")
    }
    position += 1
    try expect("]", "a closing bracket")
    return Selector.StringOptions(letters.contains("C"), letters.contains("D"))
  }

  // MARK: Operands

  private func operand(_ node: Node, at offset: Int) throws(PredicateSyntaxError) -> PredicateOperand {
    guard case .operand(let operand) = node else { throw PredicateSyntaxError(at: offset, "a value or a field") }
    return operand
  }

  private mutating func sum() throws -> Node {
    let start = next.offset
    var left = try product()
    while true {
      let operation: SelectorTree.Expression.Operator
      if take("+") { operation = .add } else if take("-") { operation = .subtract } else { return left }
      left = try combined(left, operation, at: start) { parser in try parser.product() }
    }
  }

  private mutating func product() throws -> Node {
    let start = next.offset
    var left = try primary()
    while true {
      let operation: SelectorTree.Expression.Operator
      if take("*") { operation = .multiply } else if take("/") { operation = .divide } else { return left }
      left = try combined(left, operation, at: start) { parser in try parser.primary() }
    }
  }

  private mutating func combined(
    _ left: Node, _ operation: SelectorTree.Expression.Operator, at start: Int,
    _ right: (inout PredicateParser) throws -> Node
  ) throws -> Node {
    let isAboutElement = variable != nil
    let left = try operand(left, at: start)
    let leftExpression = try matched(at: start) { try left.expression(isAboutElement) }
    let offset = next.offset
    let rightNode = try right(&self)
    let right = try operand(rightNode, at: offset)
    return .operand(
      try matched(at: offset) { try .operation(operation, leftExpression, right.expression(isAboutElement)) })
  }

  private func matched<Result>(at offset: Int, _ body: () throws -> Result) throws -> Result {
    do { return try body() } catch let error as PredicateComparison.Mismatch {
      throw PredicateSyntaxError(at: offset, error.expected)
    }
  }

  private mutating func primary() throws -> Node {
    let token = next
    switch token.kind {
    case .string(let text):
      position += 1
      return .operand(.value(.string(text)))
    case .number(let number):
      position += 1
      return .operand(.value(number))
    case .value, .field: return .operand(try argument())
    case .variable(let name):
      guard name == variable else {
        throw expected(variable.map { "$\($0), the variable of the SUBQUERY" } ?? "no variable outside of a SUBQUERY")
      }
      position += 1
      return .operand(try path([]))
    case .word: return try word()
    case .symbol("("):
      position += 1
      let node = try nested { parser in try parser.disjunction() }
      try expect(")", "an operator or a closing parenthesis")
      return node
    case .symbol("{"): return .operand(.list(try list()))
    case .symbol("-"):
      position += 1
      let offset = next.offset
      let node = try nested { parser in try parser.primary() }
      let operand = try operand(node, at: offset)
      return .operand(try matched(at: offset) { try operand.negated(variable != nil) })
    default: throw expected("a field or a value")
    }
  }

  private mutating func word() throws -> Node {
    if take(keyword: "TRUEPREDICATE") { return .predicate(.everything) }
    if take(keyword: "FALSEPREDICATE") { return .predicate(.nothing) }
    if take(keyword: "TRUE", "YES") { return .operand(.value(true)) }
    if take(keyword: "FALSE", "NO") { return .operand(.value(false)) }
    if take(keyword: "NULL", "NIL") { return .operand(.value(nil)) }
    if next.isKeyword("SUBQUERY") { return .operand(try subquery()) }
    guard case .word(let name, let keyword) = next.kind else { throw expected("a field or a value") }
    if next.isReserved, keyword != "SELF" {
      throw expected("a field or a value; a field of this name is written \\\(keyword.lowercased())")
    }
    if tokens[position + 1].kind == .symbol("(") {
      throw expected("no function: only SUBQUERY and @count, @sum, @avg, @min and @max are known")
    }
    guard variable == nil else { throw expected("a field of $\(variable ?? "")") }
    position += 1
    return .operand(try path(keyword == "SELF" ? [] : [name]))
  }

  /// Parses values in braces.
  private mutating func list() throws -> [JSONValue] {
    try expect("{", "a list")
    var values: [JSONValue] = []
    if take("}") { return values }
    repeat {
      let offset = next.offset
      guard case .operand(.value(let value)) = try primary() else {
        throw PredicateSyntaxError(at: offset, "a value")
      }
      values.append(value)
    } while take(",")
    try expect("}", "a comma or a closing brace")
    return values
  }

  private mutating func argument() throws(PredicateSyntaxError) -> PredicateOperand {
    let token = next
    if let interpolations, !interpolations.contains(token.offset) { throw expected("an interpolated value") }
    guard let argument = arguments.popFirst() else { throw expected("an argument for this place") }
    if isAboutDocuments, case .field(nil) = argument { throw expected("a field, and not a whole document") }
    position += 1
    if token.kind == .field {
      switch argument {
      case .field(let path): return .field(path)
      case .value(.string(let text)):
        guard let path = FieldPath(text) else {
          throw PredicateSyntaxError(at: token.offset, "the path of a field, without empty names, as its argument")
        }
        return .field(path)
      case .value: throw PredicateSyntaxError(at: token.offset, "the path of a field as its argument")
      }
    }
    switch argument {
    case .field(let path): return .field(path)
    case .value(.array(let values)): return .list(values)
    case .value(let value): return .value(value)
    }
  }

  // MARK: Fields

  private static let aggregates: [String: SelectorTree.Expression.Aggregate] = [
    "count": .count, "sum": .sum, "avg": .average, "min": .min, "max": .max,
  ]

  /// Parses what follows the first name of a path, with up to one function: `items.@sum.price`, `tags[0]`. Nothing
  /// follows a number of elements.
  private mutating func path(_ names: [String]) throws(PredicateSyntaxError) -> PredicateOperand {
    var (names, aggregate) = (names, SelectorTree.Expression.Aggregate?.none)
    var isAfterFunction = false
    let start = next.offset
    while aggregate != .count {
      if !isAfterFunction, take("[") {
        switch next.kind {
        case .number(.integer(let index)) where index >= 0: names.append(String(index))
        case .word where next.isKeyword("FIRST"): names.append("0")
        case .word where next.isKeyword("SIZE") && aggregate == nil: aggregate = .count
        default: throw expected("an index, FIRST or SIZE")
        }
        position += 1
        try expect("]", "a closing bracket")
      } else if take(".") {
        switch next.kind {
        case .word(let name, _):
          names.append(name)
          isAfterFunction = false
        case .function(let name):
          guard aggregate == nil, let function = Self.aggregates[name] else {
            throw expected("a field or one of @count, @sum, @avg, @min and @max")
          }
          aggregate = function
          isAfterFunction = true
        default: throw expected("a field or a function")
        }
        position += 1
      } else {
        break
      }
    }
    guard let aggregate else {
      guard names.isEmpty else { return .field(FieldPath(names: names)) }
      guard variable != nil || !isAboutDocuments else {
        throw expected("a dot and a field: by itself, SELF is an element of an array")
      }
      return .field(nil)
    }
    guard variable == nil, !names.isEmpty else {
      throw PredicateSyntaxError(at: start, "a field: functions are for fields of documents")
    }
    return .computed(.aggregate(aggregate, FieldPath(names: names)))
  }

  /// Parses `SUBQUERY(items, $item, $item.price > 5).@count`.
  private mutating func subquery() throws -> PredicateOperand {
    guard variable == nil else { throw expected("no SUBQUERY in a SUBQUERY") }
    position += 1
    try expect("(", "an opening parenthesis")
    guard case .word(let name, _) = next.kind, !next.isReserved else { throw expected("a field") }
    let offset = next.offset
    position += 1
    guard case .field(let path?) = try self.path([name]) else {
      throw PredicateSyntaxError(at: offset, "a field without a function")
    }
    try expect(",", "a comma")
    guard case .variable(let variable) = next.kind else { throw expected("a variable") }
    position += 1
    try expect(",", "a comma")
    self.variable = variable
    let node = try nested { parser in try parser.disjunction() }
    let tree = try predicate(node)
    self.variable = nil
    try expect(")", "an operator or a closing parenthesis")
    if take(".") {
      guard next.kind == .function("count") else { throw expected("@count") }
      position += 1
    }
    return .computed(tree.isEverything ? .aggregate(.count, path) : .countWhere(path, tree))
  }
}
