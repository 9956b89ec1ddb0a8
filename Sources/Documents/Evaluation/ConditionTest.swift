/// A condition whose operand is ready to be compared.
struct ConditionTest: Sendable {
  private let kind: Kind

  private enum Kind: Sendable {
    case equal([Operand])
    case range(Operand, Range)
    case exists(Bool)
    case type(JSONType)
    case size(Int)
    case remainder(Int64, Int64)
    case string(StringTest, Selector.StringOptions)
    case all([Operand])
    case elemMatch(Program)
    case allMatch(Program)
    case keyMapMatch(Program)
  }

  private enum Range: Sendable {
    case less, lessOrEqual, greater, greaterOrEqual

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
    case contains([UInt8])
    case like(LikePattern)

    func holds(_ text: Span<UInt8>) -> Bool {
      switch self {
      case .regex(let regex): regex.matches(text)
      case .beginsWith(let prefix): text.has(prefix, at: 0)
      case .endsWith(let suffix): text.has(suffix, at: text.count - suffix.count)
      case .contains(let part): text.contains(part)
      case .like(let pattern): pattern.matches(text)
      }
    }
  }

  init(_ condition: SelectorTree.Condition) throws(SelectorError) {
    func text(_ value: String, _ options: Selector.StringOptions) -> [UInt8] { options.folded(Array(value.utf8)) }
    switch condition {
    case .equal(let value, let options): kind = .equal([Operand(value, options)])
    case .in(let values, let options): kind = .equal(values.map { Operand($0, options) })
    case .less(let value): kind = .range(Operand(value), .less)
    case .lessOrEqual(let value): kind = .range(Operand(value), .lessOrEqual)
    case .greater(let value): kind = .range(Operand(value), .greater)
    case .greaterOrEqual(let value): kind = .range(Operand(value), .greaterOrEqual)
    case .exists(let exists): kind = .exists(exists)
    case .type(let type): kind = .type(type)
    case .size(let size): kind = .size(size)
    case .remainder(let divisor, let remainder): kind = .remainder(divisor, remainder)
    case .regex(let expression, let options): kind = .string(.regex(expression), options)
    case .beginsWith(let value, let options): kind = .string(.beginsWith(text(value, options)), options)
    case .endsWith(let value, let options): kind = .string(.endsWith(text(value, options)), options)
    case .contains(let value, let options): kind = .string(.contains(text(value, options)), options)
    case .like(let pattern, let options): kind = .string(.like(pattern.folded(options)), options)
    case .all(let values): kind = .all(values.map { Operand($0) })
    case .elemMatch(let selector): kind = .elemMatch(try Program(selector))
    case .allMatch(let selector): kind = .allMatch(try Program(selector))
    case .keyMapMatch(let selector): kind = .keyMapMatch(try Program(selector))
    }
  }

  /// Whether some of a field's values is as the condition asks.
  func holds(for values: [SourceValue], _ scanner: JSONScanner) -> Bool {
    if case .exists(let exists) = kind { return values.isEmpty != exists }
    return values.contains { holds(for: $0, scanner) }
  }

  private func holds(for value: SourceValue, _ scanner: JSONScanner) -> Bool {
    switch kind {
    case .equal(let operands):
      if operands.contains(where: { $0.order(of: value, scanner) == 0 }) { return true }
      return value.elements(scanner).contains { element in
        operands.contains { $0.order(of: element, scanner) == 0 }
      }
    case .range(let operand, let range):
      guard value.type == .array else { return range.holds(operand.order(of: value, scanner)) }
      if operand.isNull || operand.isArray, range.holds(operand.order(of: value, scanner)) { return true }
      return value.elements(scanner).contains { element in
        (!operand.isArray || element.type == .array) && range.holds(operand.order(of: element, scanner))
      }
    case .exists: preconditionFailure("handled for all values at once")
    case .type(let type): return value.type == type
    case .size(let size): return value.type == .array && value.elements(scanner).count == size
    case .remainder(let divisor, let remainder):
      return holdsForSome(of: value, scanner) { element in
        element.type == .number && element.number(scanner).remainder(by: divisor) == remainder
      }
    case .string(let test, let options):
      return holdsForSome(of: value, scanner) { element in
        element.type == .string
          && element.withText(scanner) { text in
            options.isEmpty ? test.holds(text) : test.holds(options.folded(text.toArray()).span)
          }
      }
    case .all(let operands):
      guard value.type == .array, !operands.isEmpty else { return false }
      let elements = value.elements(scanner)
      if operands.allSatisfy({ operand in elements.contains { operand.order(of: $0, scanner) == 0 } }) { return true }
      return operands.count == 1 && operands[0].isArray && operands[0].order(of: value, scanner) == 0
    case .elemMatch(let program):
      return value.elements(scanner).contains { program.holds(forElement: $0, scanner) }
    case .allMatch(let program):
      let elements = value.elements(scanner)
      return !elements.isEmpty && elements.allSatisfy { program.holds(forElement: $0, scanner) }
    case .keyMapMatch(let program):
      return value.names(scanner).contains { program.holds(forElement: $0, scanner) }
    }
  }

  /// The value itself, or each element of an array.
  private func holdsForSome(of value: SourceValue, _ scanner: JSONScanner, _ body: (SourceValue) -> Bool) -> Bool {
    value.type == .array ? value.elements(scanner).contains(where: body) : body(value)
  }
}

extension JSONNumber {
  /// The remainder of the number without its fraction, with the number's sign; nil for infinities.
  func remainder(by divisor: Int64) -> Int64? {
    switch self {
    case .integer(let value): divisor == -1 ? 0 : value % divisor
    case .double(let value):
      value.isFinite ? Int64(value.rounded(.towardZero).truncatingRemainder(dividingBy: Double(divisor))) : nil
    }
  }
}
