/// A condition whose operands are prepared, to be tested on a value.
class ConditionTest: @unchecked Sendable {
  /// Returns whether a value satisfies the condition, itself or by an element.
  /// - Parameter budget: Once it is exhausted, the result means nothing.
  func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool { preconditionFailure("abstract") }

  /// Returns whether a value satisfies the condition, or the budget is exhausted, so that no other value is looked at.
  @inline(__always)
  final func holdsOrEnds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    !budget.spend(bytes: value.text.end) || holds(for: value, &budget)
  }

  /// Returns whether the condition holds for one element; false for nothing, and for an array.
  func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool {
    guard let element, !element.isArray else { return false }
    return holdsOrEnds(for: element, &budget)
  }

  /// - Throws: `SelectorError` if a selector within needs a text index.
  static func make(_ condition: SelectorTree.Condition) throws(SelectorError) -> ConditionTest {
    func text(_ value: String, _ options: Selector.StringOptions) -> [UInt8] { options.folded(Array(value.utf8)) }
    switch condition {
    case .equal(let value, let options): return EqualityTest(Operand(value, options))
    case .in(let values, let options): return MembershipTest(OperandSet(values, options))
    case .less(let value): return RangeTest(Operand(value), from: .min, through: -1)
    case .lessOrEqual(let value): return RangeTest(Operand(value), from: .min, through: 0)
    case .greater(let value): return RangeTest(Operand(value), from: 1, through: .max)
    case .greaterOrEqual(let value): return RangeTest(Operand(value), from: 0, through: .max)
    case .exists(let exists): return AnyValueTest(exists)
    case .type(let type): return TypeTest(type)
    case .size(let size): return SizeTest(size)
    case .remainder(let divisor, let remainder): return RemainderTest(divisor, remainder)
    case .regex(let expression, let options): return StringTest(options) { expression.matches($0, &$1) }
    case .beginsWith(let value, let options):
      let part = text(value, options)
      return StringTest(options) { text, _ in text.hasPrefix(part) }
    case .endsWith(let value, let options):
      let part = text(value, options)
      return StringTest(options) { text, _ in text.hasSuffix(part) }
    case .contains(let value, let options):
      let part = SubstringPattern(text(value, options))
      return StringTest(options) { part.occurs(in: $0, &$1) }
    case .like(let pattern, let options):
      let pattern = pattern.folded(options)
      return StringTest(options) { pattern.matches($0, &$1) }
    case .all(let values):
      if values.count == 1, case .array = values[0] { return AllOfArrayTest(Operand(values[0])) }
      return AllOperandsTest(OperandSet(values))
    case .elemMatch(let selector): return SomeElementTest(try Program(selector))
    case .allMatch(let selector): return EachElementTest(try Program(selector))
    case .keyMapMatch(let selector): return SomeNameTest(try Program(selector))
    }
  }
}

/// `$eq`.
private final class EqualityTest: ConditionTest, @unchecked Sendable {
  private let operand: Operand

  init(_ operand: Operand) { self.operand = operand }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    operand.isEqual(to: value)
      || value.hasElement(&budget) { element, _ in operand.isEqual(to: element, isElement: true) }
  }
}

/// `$in`.
private final class MembershipTest: ConditionTest, @unchecked Sendable {
  private let operands: OperandSet

  init(_ operands: OperandSet) { self.operands = operands }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    operands.contains(value) || value.hasElement(&budget) { element, _ in operands.contains(element, isElement: true) }
  }
}

/// `$lt`, `$lte`, `$gt` and `$gte`.
private final class RangeTest: ConditionTest, @unchecked Sendable {
  private let operand: Operand
  /// The least and greatest order of a value and the operand that satisfy the condition.
  private let least: Int
  private let greatest: Int

  init(_ operand: Operand, from least: Int, through greatest: Int) {
    self.operand = operand
    self.least = least
    self.greatest = greatest
  }

  @inline(__always)
  private func isInRange(_ value: SourceValue) -> Bool {
    let order = operand.order(of: value)
    return order >= least && order <= greatest
  }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    guard value.isArray else { return isInRange(value) }
    if operand.isNull || operand.isArray, isInRange(value) { return true }
    return value.hasElement(&budget) { element, _ in (!operand.isArray || element.isArray) && isInRange(element) }
  }
}

/// `$exists` for an element, which exists.
private final class AnyValueTest: ConditionTest, @unchecked Sendable {
  private let exists: Bool

  init(_ exists: Bool) { self.exists = exists }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool { exists }
}

/// `$type`.
private final class TypeTest: ConditionTest, @unchecked Sendable {
  private let type: JSONType

  init(_ type: JSONType) { self.type = type }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool { value.type == type }
}

/// `$size`.
private final class SizeTest: ConditionTest, @unchecked Sendable {
  private let size: Int

  init(_ size: Int) { self.size = size }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    var count = 0
    _ = value.hasElement(&budget) { _, _ in
      count += 1
      return count > size
    }
    return value.isArray && count == size
  }
}

/// `$mod`.
private final class RemainderTest: ConditionTest, @unchecked Sendable {
  private let divisor: Int64
  private let remainder: Int64

  init(_ divisor: Int64, _ remainder: Int64) {
    self.divisor = divisor
    self.remainder = remainder
  }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    value.isOrHasElement(&budget) { element, _ in
      element.isNumber && element.number.remainder(by: divisor) == remainder
    }
  }
}

/// The operators on strings: `$regex`, `$beginsWith`, `$endsWith`, `$contains` and `$like`.
private final class StringTest: ConditionTest, @unchecked Sendable {
  private let options: Selector.StringOptions
  private let test: @Sendable (Span<UInt8>, inout WorkBudget) -> Bool

  /// - Parameter test: Returns whether UTF-8, folded as the options say, satisfies the condition.
  init(_ options: Selector.StringOptions, _ test: @escaping @Sendable (Span<UInt8>, inout WorkBudget) -> Bool) {
    self.options = options
    self.test = test
  }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    value.isOrHasElement(&budget) { element, budget in
      guard element.isString else { return false }
      return element.withText { text in
        guard !options.isEmpty else { return test(text, &budget) }
        // A character that isn't ASCII takes about a hundred nanoseconds to fold.
        return budget.spend(text.count) && test(options.folded(text).span, &budget)
      }
    }
  }
}

/// `$all`.
private final class AllOperandsTest: ConditionTest, @unchecked Sendable {
  private let operands: OperandSet

  init(_ operands: OperandSet) { self.operands = operands }

  /// Returns whether an array has an element for each operand. There must be at least one operand.
  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    guard operands.count > 0 else { return false }
    var isFound = [Bool](repeating: false, count: operands.count)
    var missingCount = operands.count
    return value.hasElement(&budget) { element, _ in
      if let position = operands.position(of: element), !isFound[position] {
        isFound[position] = true
        missingCount -= 1
      }
      return missingCount == 0
    }
  }
}

/// `$all` with one operand, which is an array: an array that has it as an element, or is that array.
private final class AllOfArrayTest: ConditionTest, @unchecked Sendable {
  private let operand: Operand

  init(_ operand: Operand) { self.operand = operand }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    value.isArray && operand.order(of: value) == 0
      || value.hasElement(&budget) { element, _ in operand.order(of: element) == 0 }
  }
}

/// `$elemMatch`.
private final class SomeElementTest: ConditionTest, @unchecked Sendable {
  private let program: Program

  init(_ program: Program) { self.program = program }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    value.hasElement(&budget) { element, budget in program.holds(for: element, &budget) }
  }
}

/// `$allMatch`.
private final class EachElementTest: ConditionTest, @unchecked Sendable {
  private let program: Program

  init(_ program: Program) { self.program = program }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    var isEmpty = true
    let hasMismatch = value.hasElement(&budget) { element, budget in
      isEmpty = false
      return !program.holds(for: element, &budget)
    }
    return !isEmpty && !hasMismatch
  }
}

/// `$keyMapMatch`.
private final class SomeNameTest: ConditionTest, @unchecked Sendable {
  private let program: Program

  init(_ program: Program) { self.program = program }

  override func holds(for value: SourceValue, _ budget: inout WorkBudget) -> Bool {
    value.hasName { name in !budget.spend(bytes: name.text.end) || program.holds(for: name, &budget) }
  }
}

extension SourceValue {
  /// Returns whether `body` returns true for the value or, if it is an array, for one of its elements.
  @inline(__always)
  fileprivate func isOrHasElement(
    _ budget: inout WorkBudget, where body: (SourceValue, inout WorkBudget) -> Bool
  ) -> Bool {
    isArray ? hasElement(&budget, where: body) : body(self, &budget)
  }
}

extension JSONNumber {
  /// Returns the exact remainder of the number without its fraction, with the number's sign; nil for an infinity.
  func remainder(by divisor: Int64) -> Int64? {
    switch self {
    case .integer(let value): divisor == -1 ? 0 : value % divisor
    case .double(let value): value.isFinite ? Self.remainder(value.rounded(.towardZero), by: divisor) : nil
    }
  }

  /// - Parameter value: A finite number without a fraction.
  private static func remainder(_ value: Double, by divisor: Int64) -> Int64 {
    if let integer = Int64(exactly: value) { return divisor == -1 ? 0 : integer % divisor }
    // From 2⁶³ on, a number is its significand times a power of two.
    let divisor = UInt128(divisor.magnitude)
    var remainder = UInt128(value.significandBitPattern | 1 << 52) % divisor
    var exponent = Int(value.exponent) - 52
    while exponent > 0 {
      let shift = min(exponent, 64)
      remainder = (remainder << UInt128(shift)) % divisor
      exponent -= shift
    }
    return value < 0 ? -Int64(remainder) : Int64(remainder)
  }
}
