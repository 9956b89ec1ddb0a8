/// A value that conditions compare with, prepared for comparing it with values in text.
struct Operand: Sendable {
  private enum Kind: Sendable {
    case null
    case bool(Bool)
    case number(JSONNumber)
    /// UTF-8, folded as the options say.
    case string([UInt8])
    case tree(JSONValue)
  }

  private let kind: Kind
  private let rank: Int
  private let options: Selector.StringOptions

  init(_ value: JSONValue, _ options: Selector.StringOptions = []) {
    self.options = options
    rank = value.rank
    switch value {
    case .null: kind = .null
    case .bool(let value): kind = .bool(value)
    case .integer(let value): kind = .number(.integer(value))
    case .double(let value): kind = .number(.double(value))
    case .string(let value): kind = .string(options.folded(Array(value.utf8)))
    case .array, .object: kind = .tree(value)
    }
  }

  var isNull: Bool { if case .null = kind { true } else { false } }
  var isArray: Bool { if case .tree(.array) = kind { true } else { false } }

  /// Returns how a value compares with this one in the total order: a negative number if it comes before, and zero if it
  /// is equal.
  @inline(__always)
  func order(of value: SourceValue) -> Int {
    let difference = value.rank - rank
    if difference != 0 { return difference }
    switch kind {
    case .null, .bool: return 0
    case .number(let number): return JSONNumber.order(value.number, number)
    case .string(let operand):
      return value.withText { text in
        options.isEmpty ? text.order(operand.span) : options.folded(text).span.order(operand.span)
      }
    case .tree(let operand): return order(of: value.tree, operand)
    }
  }

  /// Options apply to the strings of an array that is compared as a whole.
  private func order(of tree: JSONValue, _ operand: JSONValue) -> Int {
    guard !options.isEmpty, case .array(let elements) = tree else { return JSONValue.order(tree, operand) }
    return JSONValue.order(.array(elements.map { options.folded($0) }), operand)
  }
}

/// Operands in the total order, to find the one that equals a value.
struct OperandSet: Sendable {
  private let operands: [Operand]
  /// Whether the set has an array; arrays in documents are compared as wholes only with those.
  let hasArray: Bool
  let hasNull: Bool

  init(_ values: [JSONValue], _ options: Selector.StringOptions = []) {
    var distinct: [JSONValue] = []
    for value in values.map({ options.folded($0) }).sorted() where value != distinct.last { distinct.append(value) }
    operands = distinct.map { Operand($0, options) }
    hasArray = operands.contains(where: \.isArray)
    hasNull = operands.contains(where: \.isNull)
  }

  var count: Int { operands.count }

  /// Returns the position of the operand that equals a value.
  /// - Complexity: O(log *n*) comparisons.
  @inline(__always)
  func position(of value: SourceValue) -> Int? {
    var (low, high) = (0, operands.count)
    while low < high {
      let middle = (low + high) / 2
      let order = operands[middle].order(of: value)
      if order == 0 { return middle }
      if order < 0 { high = middle } else { low = middle + 1 }
    }
    return nil
  }

  @inline(__always)
  func contains(_ value: SourceValue) -> Bool { position(of: value) != nil }
}
