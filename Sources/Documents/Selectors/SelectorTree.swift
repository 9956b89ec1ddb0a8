/// What a selector says, as a tree: what evaluation, translation to SQL and the planner of indexes read.
///
/// The parser and the builders make trees with `all(of:)`, `any(of:)`, `complement(of:)`, `notEqual(_:_:_:)` and
/// `negation(of:at:)`, which keep these invariants:
/// - `and` and `or` have at least two parts, none of which is of the same kind. The exception is `everything`, an `and`
///   without parts, which is only ever the whole tree.
/// - `not` is never the part of a `not`.
/// - The inner tree of `someElementNot` is about that field and about one element at a time.
///
/// For such a tree there is JSON that the parser turns into an equal tree.
package indirect enum SelectorTree: Equatable, Sendable {
  /// Every part matches.
  case and([SelectorTree])
  /// At least one part matches.
  case or([SelectorTree])
  /// The part doesn't match.
  case not(SelectorTree)
  /// Some value of a field satisfies a condition. The path is nil for a condition on an element of an array, or on the
  /// name of a member, itself.
  case field(FieldPath?, Condition)
  /// Some element of the field's values doesn't satisfy the inner tree. A field without elements counts as one element
  /// that satisfies no condition.
  case someElementNot(FieldPath?, SelectorTree)
  /// Some pair of the values of two computed operands compares as asked for.
  case expression(Expression.Comparison, Expression, Expression)
  /// A text index finds the words.
  case text(String)

  /// A condition on the value of a field.
  package indirect enum Condition: Equatable, Sendable {
    case equal(JSONValue, Selector.StringOptions)
    case less(JSONValue)
    case lessOrEqual(JSONValue)
    case greater(JSONValue)
    case greaterOrEqual(JSONValue)
    case `in`([JSONValue], Selector.StringOptions)
    case exists(Bool)
    case type(JSONType)
    case size(Int)
    case remainder(divisor: Int64, remainder: Int64)
    case regex(RegularExpression, Selector.StringOptions)
    case beginsWith(String, Selector.StringOptions)
    case endsWith(String, Selector.StringOptions)
    case contains(String, Selector.StringOptions)
    case like(LikePattern, Selector.StringOptions)
    case all([JSONValue])
    case elemMatch(SelectorTree)
    case allMatch(SelectorTree)
    case keyMapMatch(SelectorTree)
  }

  /// An operand of `$expr`: any number of values, computed from a document.
  package indirect enum Expression: Equatable, Sendable {
    package enum Comparison: String, Sendable {
      case equal = "$eq"
      case less = "$lt"
      case lessOrEqual = "$lte"
      case greater = "$gt"
      case greaterOrEqual = "$gte"
    }

    package enum Operator: String, CaseIterable, Sendable {
      case add = "$add"
      case subtract = "$subtract"
      case multiply = "$multiply"
      case divide = "$divide"
    }

    package enum Aggregate: String, CaseIterable, Sendable {
      case count = "$count"
      case sum = "$sum"
      case average = "$avg"
      case min = "$min"
      case max = "$max"
    }

    case literal(JSONValue)
    case field(FieldPath)
    case operation(Operator, Expression, Expression)
    case aggregate(Aggregate, FieldPath)
    /// The number of elements that match.
    case countWhere(FieldPath, SelectorTree)
  }
}

// MARK: Making trees

extension SelectorTree {
  /// Matches every document.
  package static let everything = SelectorTree.and([])

  /// Matches no document, and no element of an array.
  package static let nothing = SelectorTree.field("_id", .in([], []))

  package var isEverything: Bool { if case .and(let parts) = self { parts.isEmpty } else { false } }

  /// Returns a tree that matches what every part matches.
  package static func all(of parts: [SelectorTree]) -> SelectorTree {
    let parts = parts.flatMap { part in if case .and(let inner) = part { inner } else { [part] } }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  /// Returns a tree that matches what at least one part matches.
  package static func any(of parts: [SelectorTree]) -> SelectorTree {
    if parts.contains(where: \.isEverything) { return everything }
    let parts = parts.flatMap { part in if case .or(let inner) = part { inner } else { [part] } }
    return parts.isEmpty ? nothing : parts.count == 1 ? parts[0] : .or(parts)
  }

  /// Returns a tree that matches what the part doesn't match.
  package static func complement(of part: SelectorTree) -> SelectorTree {
    if case .not(let inner) = part { return inner }
    return part.isEverything ? nothing : .not(part)
  }

  /// Returns the tree of `$ne`: some element is different. Where the operand is null or an array, which can equal a
  /// whole array, the tree is the complement of `$eq`.
  package static func notEqual(
    _ path: FieldPath?, _ value: JSONValue, _ options: Selector.StringOptions
  ) -> SelectorTree {
    let equal = SelectorTree.field(path, .equal(value, options))
    return equal.isAboutEachElement(of: path) ? .someElementNot(path, equal) : .not(equal)
  }

  /// Returns the tree of a `$not` that is under a field: some element doesn't satisfy the inner tree. Where that isn't
  /// about one element at a time, or where there is no field, the tree is its complement.
  package static func negation(of inner: SelectorTree, at path: FieldPath?) -> SelectorTree {
    path != nil && inner.isAboutEachElement(of: path) ? .someElementNot(path, inner) : complement(of: inner)
  }

  /// Returns the tree for the elements of an array: they need at least one condition, which everything is not.
  package var forElements: SelectorTree { isEverything ? .field(nil, .exists(true)) : self }

  /// Returns a Boolean value that indicates whether all conditions are about one field, and each of them about one
  /// element of an array at a time.
  package func isAboutEachElement(of path: FieldPath?) -> Bool {
    switch self {
    case .and(let parts), .or(let parts): parts.allSatisfy { $0.isAboutEachElement(of: path) }
    case .not(let part): part.isAboutEachElement(of: path)
    case .someElementNot: true
    case .text, .expression: false
    case .field(let field, let condition): field == path && condition.isAboutEachElement
    }
  }
}

extension SelectorTree.Condition {
  /// A Boolean value that indicates whether the condition looks at one element of an array at a time, and never at the
  /// whole array.
  fileprivate var isAboutEachElement: Bool {
    switch self {
    case .equal(let value, _), .less(let value), .lessOrEqual(let value), .greater(let value),
      .greaterOrEqual(let value):
      value.type != .array && value.type != .null
    case .in(let operands, _): !operands.contains { $0.type == .array }
    case .remainder, .regex, .beginsWith, .endsWith, .contains, .like: true
    case .exists, .type, .size, .all, .elemMatch, .allMatch, .keyMapMatch: false
    }
  }
}
