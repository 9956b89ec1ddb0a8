import Documents
import FoundationEssentials

extension Filter where Root: Codable {
  /// Creates a filter from a predicate of Foundation.
  ///
  ///     Filter(#Predicate<Person> { $0.age >= 18 && $0.name.contains("a") })
  ///
  /// Comparisons, `&&`, `||`, `!`, ranges, arithmetic on numbers, and on strings and arrays `contains`, `starts(with:)`,
  /// `contains(where:)` and `allSatisfy` are lowered as the same filters are; `contains` and `starts(with:)` are
  /// case-sensitive. Any other expression is an error where the filter is used. Larger predicates take the compiler
  /// long: write filters with operators on key paths instead.
  public init(_ predicate: Predicate<Root>) {
    self.init {
      let lowering = PredicateLowering(variable: predicate.variable.key, coding: DocumentCoding(of: Root.self))
      return try lowering.tree(predicate.expression)
    }
  }
}

/// Lowers the expressions of a `Predicate`.
struct PredicateLowering {
  /// The document, or the element, that the expressions are about.
  let variable: PredicateExpressions.VariableID
  let coding: DocumentCoding
  /// Whether the expressions are about an element of an array.
  var isAboutElement = false

  /// - Throws: `FilterError` for an expression that filters don't have.
  func tree(_ expression: Any) throws -> SelectorTree {
    if let expression = expression as? any PredicateCondition { return try expression.tree(self) }
    // A field or a value alone is a Boolean value.
    switch try operand(expression) {
    case .value(.bool(let value)): return value ? .everything : .nothing
    case .field(let path): return Lowering.equal(path, true)
    default: throw Self.unsupported(expression)
    }
  }

  func operand(_ expression: Any) throws -> PredicateOperand {
    guard let expression = expression as? any PredicateTerm else { throw Self.unsupported(expression) }
    return try expression.operand(self)
  }

  /// Returns the path of a field; nil for an element itself.
  func path(_ expression: Any) throws -> FieldPath? {
    guard case .field(let path) = try operand(expression) else { throw Self.unsupported(expression) }
    return path
  }

  func text(_ expression: Any) throws -> String {
    guard case .value(.string(let text)) = try operand(expression) else { throw Self.unsupported(expression) }
    return text
  }

  func comparison(
    _ left: Any, _ operation: PredicateComparison.Operator, _ right: Any
  ) throws -> SelectorTree {
    let comparison = PredicateComparison(
      left: try operand(left), operation: operation, options: [], right: try operand(right),
      isAboutElement: isAboutElement)
    do { return try comparison.tree(nil) } catch let error as PredicateComparison.Mismatch {
      throw FilterError(.unsupportedExpression, "a predicate needs \(error.expected)")
    }
  }

  /// Returns the tree of a closure that is called with elements of an array.
  func elementTree(_ variable: PredicateExpressions.VariableID, _ test: Any) throws -> SelectorTree {
    let lowering = PredicateLowering(variable: variable, coding: coding, isAboutElement: true)
    return try coding.forElements { try lowering.tree(test) }
  }

  static func unsupported(_ expression: Any) -> FilterError {
    FilterError(
      .unsupportedExpression,
      "a filter can't be made of a predicate with \(type(of: expression)); write it with key paths")
  }
}

/// An expression that is true or false.
protocol PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree
}

/// An expression with a value.
protocol PredicateTerm {
  func operand(_ lowering: PredicateLowering) throws -> PredicateOperand
}

// MARK: Values

extension PredicateExpressions.Value: PredicateTerm {
  func operand(_ lowering: PredicateLowering) throws -> PredicateOperand {
    guard let value = value as? any Encodable else { throw PredicateLowering.unsupported(self) }
    let json = try lowering.coding.json(of: value)
    if case .array(let elements) = json { return .list(elements) }
    return .value(json)
  }
}

extension PredicateExpressions.NilLiteral: PredicateTerm {
  func operand(_ lowering: PredicateLowering) -> PredicateOperand { .value(.null) }
}

/// An expression that is the variable or a key path from it.
private protocol PredicateField {
  /// The key path from the variable; nil if the expression doesn't begin with it.
  func keyPath(from variable: PredicateExpressions.VariableID) -> AnyKeyPath?
}

extension PredicateExpressions.Variable: PredicateTerm, PredicateField {
  fileprivate func keyPath(from variable: PredicateExpressions.VariableID) -> AnyKeyPath? {
    key == variable ? \Output.self : nil
  }

  func operand(_ lowering: PredicateLowering) throws -> PredicateOperand {
    guard key == lowering.variable else { throw PredicateLowering.unsupported(self) }
    return .field(nil)
  }
}

extension PredicateExpressions.KeyPath: PredicateTerm, PredicateField {
  fileprivate func keyPath(from variable: PredicateExpressions.VariableID) -> AnyKeyPath? {
    (root as? any PredicateField)?.keyPath(from: variable)?.appending(path: keyPath)
  }

  func operand(_ lowering: PredicateLowering) throws -> PredicateOperand {
    guard let keyPath = keyPath(from: lowering.variable),
      let document = type(of: keyPath).rootType as? any Codable.Type
    else { throw PredicateLowering.unsupported(self) }
    // The whole key path is resolved at once: only the document's type knows how its parts are encoded.
    func path<Document: Codable>(_ type: Document.Type) throws -> FieldPath? {
      guard let field = keyPath as? PartialKeyPath<Document> else { throw PredicateLowering.unsupported(self) }
      return try FieldResolver.path(of: field)
    }
    return .field(try path(document))
  }
}

extension PredicateExpressions.Arithmetic: PredicateTerm {
  func operand(_ lowering: PredicateLowering) throws -> PredicateOperand {
    let operation: SelectorTree.Expression.Operator
    switch op {
    case .add: operation = .add
    case .subtract: operation = .subtract
    case .multiply: operation = .multiply
    @unknown default: throw PredicateLowering.unsupported(self)
    }
    do {
      let left = try lowering.operand(lhs).expression(lowering.isAboutElement)
      return .computed(.operation(operation, left, try lowering.operand(rhs).expression(lowering.isAboutElement)))
    } catch is PredicateComparison.Mismatch { throw PredicateLowering.unsupported(self) }
  }
}

// MARK: Conditions

extension PredicateExpressions.Conjunction: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    .all(of: [try lowering.tree(lhs), try lowering.tree(rhs)])
  }
}

extension PredicateExpressions.Disjunction: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    .any(of: [try lowering.tree(lhs), try lowering.tree(rhs)])
  }
}

extension PredicateExpressions.Negation: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree { .complement(of: try lowering.tree(wrapped)) }
}

extension PredicateExpressions.Equal: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree { try lowering.comparison(lhs, .equal, rhs) }
}

extension PredicateExpressions.NotEqual: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree { try lowering.comparison(lhs, .notEqual, rhs) }
}

extension PredicateExpressions.Comparison: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    let order: Lowering.Order
    switch op {
    case .lessThan: order = .less
    case .lessThanOrEqual: order = .lessOrEqual
    case .greaterThan: order = .greater
    case .greaterThanOrEqual: order = .greaterOrEqual
    @unknown default: throw PredicateLowering.unsupported(self)
    }
    return try lowering.comparison(lhs, .ordered(order), rhs)
  }
}

/// A range whose bounds are expressions.
private protocol PredicateRange {
  func bounds(_ lowering: PredicateLowering) throws -> [(order: Lowering.Order, value: JSONValue)]
}

extension PredicateLowering {
  fileprivate func bounds(
    _ lower: Any, _ upper: Any, _ order: Lowering.Order
  ) throws -> [(order: Lowering.Order, value: JSONValue)] {
    guard case .value(let lower) = try operand(lower), case .value(let upper) = try operand(upper) else {
      throw Self.unsupported(upper)
    }
    return [(.greaterOrEqual, lower), (order, upper)]
  }
}

extension PredicateExpressions.ClosedRange: PredicateRange {
  fileprivate func bounds(_ lowering: PredicateLowering) throws -> [(order: Lowering.Order, value: JSONValue)] {
    try lowering.bounds(lower, upper, .lessOrEqual)
  }
}

extension PredicateExpressions.Range: PredicateRange {
  fileprivate func bounds(_ lowering: PredicateLowering) throws -> [(order: Lowering.Order, value: JSONValue)] {
    try lowering.bounds(lower, upper, .less)
  }
}

extension PredicateExpressions.RangeExpressionContains: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    let path = try lowering.path(element)
    if let range = range as? any PredicateRange { return try Lowering.isBetween(path, range.bounds(lowering)) }
    guard let value = (range as? any PredicateRangeValue)?.rangeValue as? any FilterRange else {
      throw PredicateLowering.unsupported(self)
    }
    return try lowering.isBetween(path, value)
  }
}

/// A range that is a value, such as a captured one.
private protocol PredicateRangeValue {
  var rangeValue: Any { get }
}

extension PredicateExpressions.Value: PredicateRangeValue {
  fileprivate var rangeValue: Any { value }
}

extension PredicateLowering {
  fileprivate func isBetween(_ path: FieldPath?, _ range: some FilterRange) throws -> SelectorTree {
    func json(_ value: Any) throws -> JSONValue {
      guard let value = value as? any Encodable else { throw Self.unsupported(value) }
      return try coding.json(of: value)
    }
    let limits = range.filterBounds
    var bounds: [(order: Lowering.Order, value: JSONValue)] = []
    if let lower = limits.lower { bounds.append((.greaterOrEqual, try json(lower))) }
    if let upper = limits.upper { bounds.append((limits.includesUpper ? .lessOrEqual : .less, try json(upper))) }
    return try Lowering.isBetween(path, bounds)
  }
}

// MARK: Strings and arrays

extension PredicateExpressions.SequenceContains: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    try lowering.comparison(element, .in, sequence)
  }
}

extension PredicateExpressions.CollectionContainsCollection: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    .field(try lowering.path(base), .contains(try lowering.text(other), []))
  }
}

extension PredicateExpressions.SequenceStartsWith: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    .field(try lowering.path(base), .beginsWith(try lowering.text(prefix), []))
  }
}

extension PredicateExpressions.SequenceContainsWhere: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    Lowering.any(try lowering.path(sequence), try lowering.elementTree(variable.key, test))
  }
}

extension PredicateExpressions.SequenceAllSatisfy: PredicateCondition {
  func tree(_ lowering: PredicateLowering) throws -> SelectorTree {
    Lowering.all(try lowering.path(sequence), try lowering.elementTree(variable.key, test))
  }
}
