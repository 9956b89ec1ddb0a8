import Documents

/// A comparison of a raw predicate, lowered to the tree of the typed filter that means the same.
struct PredicateComparison {
  enum Operator: Equatable {
    case equal, notEqual
    case ordered(Lowering.Order)
    case `in`, between, contains, beginsWith, endsWith, like, matches

    /// Returns nil for a token that is no operator.
    init?(_ token: PredicateToken.Kind) {
      switch token {
      case .symbol("="), .symbol("=="): self = .equal
      case .symbol("!="), .symbol("<>"): self = .notEqual
      case .symbol("<"): self = .ordered(.less)
      case .symbol("<="), .symbol("=<"): self = .ordered(.lessOrEqual)
      case .symbol(">"): self = .ordered(.greater)
      case .symbol(">="), .symbol("=>"): self = .ordered(.greaterOrEqual)
      case .word(_, keyword: "IN"): self = .in
      case .word(_, keyword: "BETWEEN"): self = .between
      case .word(_, keyword: "CONTAINS"): self = .contains
      case .word(_, keyword: "BEGINSWITH"): self = .beginsWith
      case .word(_, keyword: "ENDSWITH"): self = .endsWith
      case .word(_, keyword: "LIKE"): self = .like
      case .word(_, keyword: "MATCHES"): self = .matches
      default: return nil
      }
    }
  }

  enum Quantifier {
    case any, all, none
  }

  let left: PredicateOperand
  let operation: Operator
  let options: Selector.StringOptions
  let right: PredicateOperand
  /// Whether the comparison is about an element of an array, from which nothing can be computed.
  let isAboutElement: Bool

  /// What can't be compared: a part of the comparison, and what it should be, for people.
  struct Mismatch: Error {
    enum Part {
      case left, options, right
    }

    let part: Part
    let expected: String

    init(_ part: Part, _ expected: String) {
      self.part = part
      self.expected = expected
    }

    /// The same if the operands are exchanged.
    fileprivate var flipped: Mismatch {
      switch part {
      case .left: Mismatch(.right, expected)
      case .right: Mismatch(.left, expected)
      case .options: self
      }
    }
  }

  /// - Throws: `Mismatch` if the operands can't be compared in this way; `FilterError` for a value without an order, or
  ///   a malformed pattern.
  func tree(_ quantifier: Quantifier?) throws -> SelectorTree {
    guard let quantifier else { return try plainTree() }
    guard case .field(let path?) = left else { throw Mismatch(.left, "a field on the left") }
    let element = try with(left: .field(nil)).plainTree()
    switch quantifier {
    case .any: return try anyTree(path, element)
    case .none: return .complement(of: try anyTree(path, element))
    case .all: return allTree(path, element)
    }
  }

  private func with(left: PredicateOperand) -> PredicateComparison {
    PredicateComparison(
      left: left, operation: operation, options: options, right: right, isAboutElement: isAboutElement)
  }

  // MARK: Quantifiers

  private func anyTree(_ path: FieldPath, _ element: SelectorTree) throws -> SelectorTree {
    if isAboutElement { return Lowering.any(path, element) }
    // Where a condition on a field is about its elements, indexes can serve it.
    if case .field(nil, let condition) = element {
      switch condition {
      case .equal, .in, .beginsWith, .endsWith, .like, .regex: return .field(path, condition)
      case .type(.null): return .field(path, .equal(.null, []))
      default: break
      }
    }
    let some = SelectorTree.expression(.greater, .countWhere(path, element.forElements), .literal(0))
    // Elements that are null don't count.
    return acceptsNull ? .any(of: [some, .field(path, .equal(.null, []))]) : some
  }

  private func allTree(_ path: FieldPath, _ element: SelectorTree) -> SelectorTree {
    if isAboutElement { return Lowering.all(path, element) }
    let complement = SelectorTree.complement(of: element).forElements
    let all = SelectorTree.expression(.equal, .countWhere(path, complement), .literal(0))
    return acceptsNull ? all : .all(of: [all, .complement(of: .field(path, .equal(.null, [])))])
  }

  /// Whether the comparison holds for an element that is null.
  private var acceptsNull: Bool {
    func isNull(_ value: JSONValue) -> Bool { if case .null = value { true } else { false } }
    switch (operation, right) {
    case (.equal, .value(let value)): return isNull(value)
    case (.notEqual, .value(let value)): return !isNull(value)
    case (.notEqual, .list): return true
    case (.in, .list(let values)): return values.contains(where: isNull)
    default: return false
    }
  }

  // MARK: Operands

  private func plainTree() throws -> SelectorTree {
    switch (left, right) {
    case (.field(let path), .value(let value)): try tree(path, value)
    case (.field(let path), .list(let values)): try tree(path, values)
    case (.value, .field), (.list, .field): try flipped()
    case (.field(let left), .field(let right)): try tree(left, right)
    default: try computedTree()
    }
  }

  private func tree(_ path: FieldPath?, _ value: JSONValue) throws -> SelectorTree {
    switch operation {
    case .equal: return Lowering.equal(path, value, options)
    case .notEqual: return .complement(of: Lowering.equal(path, value, options))
    case .ordered(let order):
      try checkOrder(of: [value])
      return oneValue(of: path, try Lowering.ordered(path, order, value), try Lowering.ordered(nil, order, value))
    case .contains: return containsTree(path, value)
    case .in: throw Mismatch(.right, "a list such as {1, 2}")
    case .between: throw Mismatch(.right, "a list of two values")
    case .beginsWith, .endsWith, .like, .matches: break
    }
    guard let text = value.string else { throw Mismatch(.right, "a string") }
    switch operation {
    case .beginsWith: return .field(path, .beginsWith(text, options))
    case .endsWith: return .field(path, .endsWith(text, options))
    case .like: return try Lowering.like(path, text, options)
    default:
      return try Lowering.matches(
        path, text, ignoresCase: options.contains(.ignoringCase), options.intersection(.ignoringDiacritics))
    }
  }

  /// Returns a tree that one value of the field satisfies as a whole. A path of several names can lead to several values,
  /// through an array, of which different ones could satisfy the tree's conditions.
  /// - Parameters:
  ///   - tree: Conditions on the field, which indexes can serve.
  ///   - value: The same conditions on one value.
  private func oneValue(of path: FieldPath?, _ tree: SelectorTree, _ value: SelectorTree) -> SelectorTree {
    guard let path, path.names.count > 1, !isAboutElement else { return tree }
    return .all(of: [tree, .expression(.greater, .countWhere(path, value.forElements), .literal(0))])
  }

  /// - Throws: `Mismatch` for options with strings: these are in one order only.
  private func checkOrder(of values: [JSONValue]) throws(Mismatch) {
    guard options.isEmpty || !values.contains(where: { $0.type == .string }) else {
      throw Mismatch(.options, "no options: strings have one order only")
    }
  }

  /// The field is a string with a part, or an array with an element.
  private func containsTree(_ path: FieldPath?, _ value: JSONValue) -> SelectorTree {
    let element = Lowering.any(path, Lowering.equal(nil, value, options))
    guard let text = value.string else { return element }
    return .any(of: [
      .all(of: [.field(path, .contains(text, options)), .field(path, .type(.string))]), element,
    ])
  }

  private func tree(_ path: FieldPath?, _ values: [JSONValue]) throws -> SelectorTree {
    switch operation {
    case .equal: return Lowering.equal(path, .array(values), options)
    case .notEqual: return .complement(of: Lowering.equal(path, .array(values), options))
    case .in: return Lowering.isIn(path, values, options)
    case .between:
      guard values.count == 2 else { throw Mismatch(.right, "a list of two values") }
      try checkOrder(of: values)
      let bounds = [(order: Lowering.Order.greaterOrEqual, value: values[0]), (.lessOrEqual, values[1])]
      return oneValue(of: path, try Lowering.isBetween(path, bounds), try Lowering.isBetween(nil, bounds))
    case .contains: return containsTree(path, .array(values))
    case .ordered, .beginsWith, .endsWith, .like, .matches: throw Mismatch(.right, "a single value")
    }
  }

  private func tree(_ left: FieldPath?, _ right: FieldPath?) throws -> SelectorTree {
    guard !isAboutElement, let left, let right else { return try computedTree() }
    try checkNoOptions()
    switch operation {
    case .equal: return Lowering.equal(left, right)
    case .notEqual: return .complement(of: Lowering.equal(left, right))
    case .ordered(let order): return Lowering.ordered(left, order, right)
    case .in: return Self.hasElement(right, equalTo: left)
    case .contains: return Self.hasElement(left, equalTo: right)
    case .between, .beginsWith, .endsWith, .like, .matches: throw Mismatch(.right, "a value on the right")
    }
  }

  private static func hasElement(_ array: FieldPath, equalTo field: FieldPath) -> SelectorTree {
    .all(of: [.field(array, .type(.array)), .expression(.equal, .field(array), .field(field))])
  }

  private func checkNoOptions() throws(Mismatch) {
    guard options.isEmpty else { throw Mismatch(.options, "no options: they are for a field and a value") }
  }

  /// Exchanges the operands, so that the field is on the left.
  private func flipped() throws -> SelectorTree {
    let operation: Operator
    switch self.operation {
    case .equal, .notEqual: operation = self.operation
    case .ordered(let order): operation = .ordered(order.flipped)
    case .in: operation = .contains
    case .between, .contains, .beginsWith, .endsWith, .like, .matches: throw Mismatch(.left, "a field on the left")
    }
    let flipped = PredicateComparison(
      left: right, operation: operation, options: options, right: left, isAboutElement: isAboutElement)
    do { return try flipped.plainTree() } catch let error as Mismatch { throw error.flipped }
  }

  // MARK: Computed operands

  private func computedTree() throws -> SelectorTree {
    try checkNoOptions()
    let left = try left.expression(isAboutElement, as: .left)
    if case .list(let values) = right {
      switch operation {
      case .in: return .any(of: values.map { .expression(.equal, left, .literal($0)) })
      case .between where values.count == 2:
        return .all(of: [
          .expression(.greaterOrEqual, left, .literal(values[0])), .expression(.lessOrEqual, left, .literal(values[1])),
        ])
      default: throw Mismatch(.right, "a single value")
      }
    }
    let right = try right.expression(isAboutElement, as: .right)
    switch operation {
    case .equal: return .expression(.equal, left, right)
    case .notEqual: return .complement(of: .expression(.equal, left, right))
    case .ordered(let order): return .expression(order.comparison, left, right)
    default: throw Mismatch(.right, "a comparison of a field with a value")
    }
  }
}
