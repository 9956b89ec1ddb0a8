import Documents

/// An operand of a comparison in a raw predicate.
enum PredicateOperand {
  case value(JSONValue)
  case list([JSONValue])
  /// A field; nil for an element itself.
  case field(FieldPath?)
  /// What is computed from fields, in a document only.
  case computed(SelectorTree.Expression)

  /// The longest chain of operations, each on the result of another: each is a level of the selector.
  private static let maxOperationDepth = Selector.maxDepth - 2

  /// Returns the operand as one of an operation.
  /// - Parameters:
  ///   - isAboutElement: Whether the predicate is about an element of an array, from which nothing can be computed.
  ///   - part: The part of a comparison that the operand is.
  /// - Throws: `Mismatch` for a list, and in conditions on elements.
  func expression(_ isAboutElement: Bool, as part: PredicateComparison.Mismatch.Part = .right)
    throws(PredicateComparison.Mismatch) -> SelectorTree.Expression
  {
    guard !isAboutElement else {
      throw PredicateComparison.Mismatch(part, "a comparison of a field with a value, as always in a SUBQUERY")
    }
    switch self {
    case .value(let value): return .literal(value)
    case .field(let path?): return .field(path)
    case .computed(let expression): return expression
    case .list: throw PredicateComparison.Mismatch(part, "a single value")
    case .field(nil): throw PredicateComparison.Mismatch(part, "the name of a field")
    }
  }

  /// Returns what an operation computes from two operands.
  /// - Throws: `Mismatch` if the chain of operations is too long.
  static func operation(
    _ operation: SelectorTree.Expression.Operator, _ left: SelectorTree.Expression, _ right: SelectorTree.Expression
  ) throws(PredicateComparison.Mismatch) -> PredicateOperand {
    let expression = SelectorTree.Expression.operation(operation, left, right)
    guard expression.operationDepth <= maxOperationDepth else {
      throw PredicateComparison.Mismatch(.right, "fewer operations: up to \(maxOperationDepth) in a chain")
    }
    return .computed(expression)
  }

  /// Returns a number with the opposite sign, or what computes it.
  /// - Throws: `Mismatch` for another value, and as `expression(_:as:)`.
  func negated(_ isAboutElement: Bool) throws(PredicateComparison.Mismatch) -> PredicateOperand {
    switch self {
    case .value(.integer(let value)):
      let (negated, isTooLarge) = Int64(0).subtractingReportingOverflow(value)
      return .value(isTooLarge ? .double(-Double(value)) : .integer(negated))
    case .value(.double(let value)): return .value(.double(-value))
    case .value, .list: throw PredicateComparison.Mismatch(.right, "a number")
    case .field, .computed: return try .operation(.subtract, .literal(0), expression(isAboutElement))
    }
  }
}

extension SelectorTree.Expression {
  /// The length of the longest chain of operations, each on the result of another.
  fileprivate var operationDepth: Int {
    guard case .operation(_, let left, let right) = self else { return 0 }
    return max(left.operationDepth, right.operationDepth) + 1
  }
}
