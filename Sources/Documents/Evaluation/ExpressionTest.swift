/// A comparison of two computed operands, `$expr`.
final class ExpressionTest: SelectorTest, @unchecked Sendable {
  private let comparison: SelectorTree.Expression.Comparison
  private let left: Term
  private let right: Term

  /// The maximum number of pairs of values that an operation combines. With more, it has no result.
  private static let maxPairCount = 1 << 16
  /// What combining a pair takes.
  private static let pairUnits = 4
  /// The number of pairs of values up to which each pair is compared.
  private static let maxComparedPairCount = 64

  private indirect enum Term: Sendable {
    case literal(JSONValue)
    case field(path: Int)
    case operation(SelectorTree.Expression.Operator, Term, Term)
    case aggregate(SelectorTree.Expression.Aggregate, path: Int)
    case countWhere(path: Int, Program)
  }

  init(
    _ comparison: SelectorTree.Expression.Comparison, _ left: SelectorTree.Expression, _ right: SelectorTree.Expression,
    _ paths: inout PathTrie
  ) throws(SelectorError) {
    self.comparison = comparison
    self.left = try Self.term(left, &paths)
    self.right = try Self.term(right, &paths)
  }

  private static func term(_ expression: SelectorTree.Expression, _ paths: inout PathTrie) throws(SelectorError) -> Term
  {
    switch expression {
    case .literal(let value): return .literal(value)
    case .field(let path): return .field(path: paths.add(path))
    case .operation(let operation, let left, let right):
      return .operation(operation, try term(left, &paths), try term(right, &paths))
    case .aggregate(let aggregate, let path): return .aggregate(aggregate, path: paths.add(path))
    case .countWhere(let path, let selector): return .countWhere(path: paths.add(path), try Program(selector))
    }
  }

  /// Returns whether some pair of candidate values compares as asked for. Only values of the same type compare, and only
  /// numbers and strings have an order.
  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    let lefts = candidates(left, values, &budget)
    let rights = candidates(right, values, &budget)
    guard lefts.count > Self.maxComparedPairCount / max(rights.count, 1) else {
      return lefts.contains { left in rights.contains { holds(left, $0) } }
    }
    switch comparison {
    case .equal: return Self.haveEqual(lefts, rights, &budget)
    case .less, .lessOrEqual: return holdsForExtremes({ $0.min() }, of: lefts, { $0.max() }, of: rights)
    case .greater, .greaterOrEqual: return holdsForExtremes({ $0.max() }, of: lefts, { $0.min() }, of: rights)
    }
  }

  private static func haveEqual(_ lefts: [JSONValue], _ rights: [JSONValue], _ budget: inout WorkBudget) -> Bool {
    guard let lefts = sorted(lefts, &budget), let rights = sorted(rights, &budget) else { return false }
    var (left, right) = (0, 0)
    while left < lefts.count, right < rights.count {
      let order = JSONValue.order(lefts[left], rights[right])
      if order == 0 { return true }
      if order < 0 { left += 1 } else { right += 1 }
    }
    return false
  }

  /// Returns values in their order; nil if the budget is exhausted.
  private static func sorted(_ values: [JSONValue], _ budget: inout WorkBudget) -> [JSONValue]? {
    try? values.sorted { left, right in
      try budget.require()
      return left < right
    }
  }

  /// Returns whether the pair of values compares as asked for that does if any pair does, for numbers or strings.
  private func holdsForExtremes(
    _ leftExtreme: ([JSONValue]) -> JSONValue?, of lefts: [JSONValue],
    _ rightExtreme: ([JSONValue]) -> JSONValue?, of rights: [JSONValue]
  ) -> Bool {
    [JSONType.number, .string].contains { type in
      guard let left = leftExtreme(lefts.filter { $0.type == type }),
        let right = rightExtreme(rights.filter { $0.type == type })
      else { return false }
      return holds(left, right)
    }
  }

  override func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool {
    preconditionFailure("an expression is not about one element")
  }

  private func holds(_ left: JSONValue, _ right: JSONValue) -> Bool {
    guard left.type == right.type else { return false }
    if comparison != .equal, left.type != .number, left.type != .string { return false }
    let order = JSONValue.order(left, right)
    return switch comparison {
    case .equal: order == 0
    case .less: order < 0
    case .lessOrEqual: order <= 0
    case .greater: order > 0
    case .greaterOrEqual: order >= 0
    }
  }

  private func candidates(
    _ term: Term, _ values: borrowing FieldValues, _ budget: inout WorkBudget
  ) -> [JSONValue] {
    budget.spend()
    switch term {
    case .literal(let value): return [value]
    case .field(let path):
      var trees: [JSONValue] = []
      values.forEachElement(of: path, &budget) { element, budget in
        // A tree takes some nanoseconds for each byte.
        if budget.spend(element.text.end / 2) { trees.append(element.tree) }
      }
      return trees
    case .operation(let operation, let left, let right):
      let lefts = candidates(left, values, &budget).compactMap(\.number)
      let rights = candidates(right, values, &budget).compactMap(\.number)
      guard lefts.count <= Self.maxPairCount / max(rights.count, 1),
        budget.spend(Self.pairUnits * lefts.count * rights.count)
      else { return [] }
      return lefts.flatMap { left in
        rights.compactMap { operation.result(left, $0).flatMap(JSONValue.init(result:)) }
      }
    case .aggregate(.count, let path): return [.integer(count(of: path, values, &budget) { _, _ in true })]
    case .aggregate(let aggregate, let path):
      var numbers = NumberSummary()
      values.forEachElement(of: path, &budget) { element, _ in
        if element.type == .number { numbers.add(element.number) }
      }
      return aggregate.result(numbers).flatMap(JSONValue.init(result:)).map { [$0] } ?? []
    case .countWhere(let path, let program):
      return [.integer(count(of: path, values, &budget) { program.holds(for: $0, &$1) })]
    }
  }

  /// Returns the number of elements that aren't null and for which `body` returns true.
  private func count(
    of path: Int, _ values: borrowing FieldValues, _ budget: inout WorkBudget,
    _ body: (SourceValue, inout WorkBudget) -> Bool
  ) -> Int64 {
    var count: Int64 = 0
    values.forEachElement(of: path, &budget) { element, budget in
      if element.type != .null, body(element, &budget) { count += 1 }
    }
    return count
  }
}

extension SelectorTree.Expression.Operator {
  /// Integers are computed exactly, and rounded to the nearest double where they don't fit into 64 bits; nil for a division by zero.
  func result(_ left: JSONNumber, _ right: JSONNumber) -> JSONNumber? {
    if case .integer(let left) = left, case .integer(let right) = right, self != .divide {
      let (left, right) = (Int128(left), Int128(right))
      return switch self {
      case .add: JSONNumber(left + right)
      case .subtract: JSONNumber(left - right)
      default: JSONNumber(left * right)
      }
    }
    let (left, right) = (left.double, right.double)
    switch self {
    case .add: return .double(left + right)
    case .subtract: return .double(left - right)
    case .multiply: return .double(left * right)
    case .divide: return right == 0 ? nil : .double(left / right)
    }
  }
}

extension SelectorTree.Expression.Aggregate {
  /// Returns nil for the least, greatest or average of no numbers.
  func result(_ numbers: NumberSummary) -> JSONNumber? {
    switch self {
    case .count: .integer(Int64(numbers.count))
    case .sum: numbers.sum
    case .average: numbers.average
    case .min: numbers.min
    case .max: numbers.max
    }
  }
}

extension JSONNumber {
  /// The integer, or the nearest double if it doesn't fit into 64 bits.
  init(_ value: Int128) { self = Int64(exactly: value).map(JSONNumber.integer) ?? .double(Double(value)) }
}

extension JSONValue {
  /// nil for what is not a number, such as the difference of two infinities: it compares with nothing.
  init?(result: JSONNumber) {
    switch result {
    case .integer(let value): self = .integer(value)
    case .double(let value):
      guard !value.isNaN else { return nil }
      self = .double(value)
    }
  }

  package var type: JSONType {
    switch self {
    case .null: .null
    case .bool: .boolean
    case .integer, .double: .number
    case .string: .string
    case .array: .array
    case .object: .object
    }
  }
}
