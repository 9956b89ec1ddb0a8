/// A condition whose operands are prepared, to be tested on the values of a field.
final class ConditionTest: Sendable {
  private enum Kind: Sendable {
    case equal(Operand)
    case `in`(OperandSet)
    case range(Operand, Range)
    case exists(Bool)
    case type(JSONType)
    case size(Int)
    case remainder(divisor: Int64, remainder: Int64)
    case string(StringTest, Selector.StringOptions)
    case all(OperandSet)
    /// An array that has one operand, which is an array, or is that array.
    case allOfArray(Operand)
    case elemMatch(Program)
    case allMatch(Program)
    case keyMapMatch(Program)
  }

  private enum Range: Sendable {
    case less, lessOrEqual, greater, greaterOrEqual

    @inline(__always)
    func holds(_ order: Int) -> Bool {
      switch self {
      case .less: order < 0
      case .lessOrEqual: order <= 0
      case .greater: order > 0
      case .greaterOrEqual: order >= 0
      }
    }
  }

  private enum StringTest: Sendable {
    case regex(RegularExpression)
    case beginsWith([UInt8])
    case endsWith([UInt8])
    case contains(SubstringPattern)
    case like(LikePattern)

    func holds(_ text: Span<UInt8>) -> Bool {
      switch self {
      case .regex(let regex): regex.matches(text)
      case .beginsWith(let part): text.hasPrefix(part)
      case .endsWith(let part): text.hasSuffix(part)
      case .contains(let part): part.occurs(in: text)
      case .like(let pattern): pattern.matches(text)
      }
    }
  }

  private let kind: Kind

  /// - Throws: `SelectorError` if a selector within needs a text index.
  init(_ condition: SelectorTree.Condition) throws(SelectorError) {
    func text(_ value: String, _ options: Selector.StringOptions) -> [UInt8] { options.folded(Array(value.utf8)) }
    switch condition {
    case .equal(let value, let options): kind = .equal(Operand(value, options))
    case .in(let values, let options): kind = .in(OperandSet(values, options))
    case .less(let value): kind = .range(Operand(value), .less)
    case .lessOrEqual(let value): kind = .range(Operand(value), .lessOrEqual)
    case .greater(let value): kind = .range(Operand(value), .greater)
    case .greaterOrEqual(let value): kind = .range(Operand(value), .greaterOrEqual)
    case .exists(let exists): kind = .exists(exists)
    case .type(let type): kind = .type(type)
    case .size(let size): kind = .size(size)
    case .remainder(let divisor, let remainder): kind = .remainder(divisor: divisor, remainder: remainder)
    case .regex(let expression, let options): kind = .string(.regex(expression), options)
    case .beginsWith(let value, let options): kind = .string(.beginsWith(text(value, options)), options)
    case .endsWith(let value, let options): kind = .string(.endsWith(text(value, options)), options)
    case .contains(let value, let options): kind = .string(.contains(SubstringPattern(text(value, options))), options)
    case .like(let pattern, let options): kind = .string(.like(pattern.folded(options)), options)
    case .all(let values):
      if values.count == 1, case .array = values[0] {
        kind = .allOfArray(Operand(values[0]))
      } else {
        kind = .all(OperandSet(values))
      }
    case .elemMatch(let selector): kind = .elemMatch(try Program(selector))
    case .allMatch(let selector): kind = .allMatch(try Program(selector))
    case .keyMapMatch(let selector): kind = .keyMapMatch(try Program(selector))
    }
  }

  /// Returns whether some value of a path satisfies the condition.
  @inline(__always)
  func holds(for path: Int, of values: borrowing FieldValues) -> Bool {
    if case .exists(let exists) = kind { return values.isEmpty(path) != exists }
    return values.hasValue(of: path) { holds(for: $0) }
  }

  /// Returns whether one value satisfies the condition, itself or by an element.
  func holds(for value: SourceValue) -> Bool {
    switch kind {
    case .equal(let operand):
      return operand.order(of: value) == 0 || value.hasElement { operand.order(of: $0) == 0 }
    case .in(let operands): return operands.contains(value) || value.hasElement { operands.contains($0) }
    case .range(let operand, let range):
      guard value.isArray else { return range.holds(operand.order(of: value)) }
      if operand.isNull || operand.isArray, range.holds(operand.order(of: value)) { return true }
      return value.hasElement { (!operand.isArray || $0.isArray) && range.holds(operand.order(of: $0)) }
    case .exists(let exists): return exists
    case .type(let type): return value.type == type
    case .size(let size):
      var count = 0
      _ = value.hasElement { _ in
        count += 1
        return count > size
      }
      return value.isArray && count == size
    case .remainder(let divisor, let remainder):
      return holdsForSome(of: value) { $0.type == .number && $0.number.remainder(by: divisor) == remainder }
    case .string(let test, let options):
      return holdsForSome(of: value) { element in
        element.type == .string
          && element.withText { text in
            options.isEmpty ? test.holds(text) : test.holds(options.folded(text).span)
          }
      }
    case .all(let operands): return holdsForEach(of: operands, in: value)
    case .allOfArray(let operand):
      return value.isArray && operand.order(of: value) == 0 || value.hasElement { operand.order(of: $0) == 0 }
    case .elemMatch(let program): return value.hasElement { program.holds(for: $0) }
    case .allMatch(let program):
      var isEmpty = true
      let hasMismatch = value.hasElement { element in
        isEmpty = false
        return !program.holds(for: element)
      }
      return !isEmpty && !hasMismatch
    case .keyMapMatch(let program): return value.hasName { program.holds(for: $0) }
    }
  }

  /// Returns whether `body` returns true for a value or, if it is an array, for one of its elements.
  @inline(__always)
  private func holdsForSome(of value: SourceValue, _ body: (SourceValue) -> Bool) -> Bool {
    value.isArray ? value.hasElement(where: body) : body(value)
  }

  /// Returns whether an array has an element for each operand, of which there must be one.
  private func holdsForEach(of operands: OperandSet, in value: SourceValue) -> Bool {
    guard operands.count > 0 else { return false }
    var isFound = [Bool](repeating: false, count: operands.count)
    var missingCount = operands.count
    return value.hasElement { element in
      if let position = operands.position(of: element), !isFound[position] {
        isFound[position] = true
        missingCount -= 1
      }
      return missingCount == 0
    }
  }
}

extension JSONNumber {
  /// Returns the remainder of the number without its fraction, with the number's sign; nil for an infinity.
  func remainder(by divisor: Int64) -> Int64? {
    switch self {
    case .integer(let value): divisor == -1 ? 0 : value % divisor
    case .double(let value):
      value.isFinite ? Int64(value.rounded(.towardZero).truncatingRemainder(dividingBy: Double(divisor))) : nil
    }
  }
}
