/// A value that conditions compare with, prepared for comparing it with values in text.
struct Operand: Sendable {
  private let rank: Int
  private let options: Selector.StringOptions
  /// The operand if it is a number.
  private let number: JSONNumber
  /// The UTF-8 of the operand if it is a string, folded as the options say.
  private let text: [UInt8]
  private let hasBackslash: Bool
  /// The operand if it is an array or object; otherwise null.
  private let tree: JSONValue

  init(_ value: JSONValue, _ options: Selector.StringOptions = []) {
    self.options = options
    rank = value.rank
    var (number, text, tree): (JSONNumber, [UInt8], JSONValue) = (.integer(0), [], .null)
    switch value {
    case .null, .bool: break
    case .integer(let value): number = .integer(value)
    case .double(let value): number = .double(value)
    case .string(let value): text = options.folded(Array(value.utf8))
    case .array, .object: tree = value
    }
    (self.number, self.text, self.tree) = (number, text, tree)
    hasBackslash = text.contains(UInt8(ascii: "\\"))
  }

  var isNull: Bool { rank == JSONValue.null.rank }
  var isArray: Bool { if case .array = tree { true } else { false } }

  /// Returns whether a value equals this one.
  /// - Parameter isElement: Whether the value is an element of an array that is compared as a whole, too.
  @inline(__always)
  func isEqual(to value: SourceValue, isElement: Bool = false) -> Bool {
    guard value.isString, rank == SourceValue.stringRank, options.isEmpty else {
      return order(of: value, isElement: isElement) == 0
    }
    // A string of the same size that has escapes is shorter without them.
    if value.text.end == text.count &+ 2 { return value.hasBytes(text) && (!hasBackslash || !value.hasEscapes) }
    // A string of another size can only be equal if it has escapes.
    return value.text.end > text.count + 2 && value.hasEscapes && order(of: value) == 0
  }

  /// Returns how a value compares with this one in the total order: a negative number if it comes before, and zero if
  /// it is equal.
  /// - Parameter isElement: Whether the value is an element of an array that is compared as a whole, too.
  @inline(__always)
  func order(of value: SourceValue, isElement: Bool = false) -> Int {
    if value.isNumber, rank == SourceValue.numberRank { return JSONNumber.order(value.number, number) }
    if value.isString, rank == SourceValue.stringRank {
      return value.withText { source in
        options.isEmpty ? source.order(text.span) : options.folded(source).span.order(text.span)
      }
    }
    let difference = value.rank - rank
    if difference != 0 { return difference }
    if case .null = tree { return 0 }
    return order(of: value.tree, tree, isElement: isElement)
  }

  /// Options apply to the strings of an array that is a field's value, but not to those of arrays within it.
  private func order(of tree: JSONValue, _ operand: JSONValue, isElement: Bool) -> Int {
    guard !options.isEmpty, !isElement, case .array(let elements) = tree else { return JSONValue.order(tree, operand) }
    return JSONValue.order(.array(elements.map { options.folded($0) }), operand)
  }
}

/// Operands in the total order, to find the one that equals a value.
struct OperandSet: Sendable {
  private let operands: [Operand]
  private let options: Selector.StringOptions
  /// The positions of the operands by their order keys, which are equal where values are; empty if there are few.
  private let positions: [[UInt8]: Int]
  private let hasObject: Bool
  /// Whether the set has an array; arrays in documents are compared as wholes only with those.
  let hasArray: Bool
  let hasNull: Bool

  init(_ values: [JSONValue], _ options: Selector.StringOptions = []) {
    var distinct: [JSONValue] = []
    for value in values.map({ options.folded($0) }).sorted() where value != distinct.last { distinct.append(value) }
    operands = distinct.map { Operand($0, options) }
    self.options = options
    positions =
      distinct.count <= Self.maxSearched
      ? [:]
      : Dictionary(distinct.enumerated().map { (OrderKey.key(of: $1), $0) }, uniquingKeysWith: { first, _ in first })
    hasArray = operands.contains(where: \.isArray)
    hasNull = operands.contains(where: \.isNull)
    hasObject = distinct.contains { $0.type == .object }
  }

  /// Up to how many operands are compared with values.
  private static let maxSearched = 16

  var count: Int { operands.count }

  /// Returns the position of the operand that equals a value.
  /// - Complexity: O(*m*) in the size of the value on average, whatever the number of operands is.
  @inline(__always)
  func position(of value: SourceValue, isElement: Bool = false) -> Int? {
    if value.isArray, !hasArray { return nil }
    guard positions.isEmpty else { return hashedPosition(of: value, isElement: isElement) }
    var (low, high) = (0, operands.count)
    while low < high {
      let middle = (low + high) / 2
      let order = operands[middle].order(of: value, isElement: isElement)
      if order == 0 { return middle }
      if order < 0 { high = middle } else { low = middle + 1 }
    }
    return nil
  }

  @inline(never)
  private func hashedPosition(of value: SourceValue, isElement: Bool) -> Int? {
    if value.type == .object, !hasObject { return nil }
    guard !options.isEmpty, value.isString || value.isArray && !isElement else {
      var key: [UInt8] = []
      OrderKey.append(value, to: &key)
      return positions[key]
    }
    // Options apply to the strings of an array that is a field's value, but not to those of arrays within it.
    var tree = options.folded(value.tree)
    if case .array(let elements) = tree { tree = .array(elements.map { options.folded($0) }) }
    return positions[OrderKey.key(of: tree)]
  }

  @inline(__always)
  func contains(_ value: SourceValue, isElement: Bool = false) -> Bool {
    position(of: value, isElement: isElement) != nil
  }
}
