/// What a condition says about the keys of a field in an index.
///
/// The keys of a field in a document are its values, and the elements of those that are arrays. A field without values
/// has the key of a missing value. If an array is an element of an array, in the field's value or on the way to it, the
/// mark of nested arrays is a key, too.
struct ConditionRanges: Sendable {
  /// If the condition holds, a key is in these ranges, provided that the field has a single value, which isn't an array.
  let ranges: [ValueRange]
  /// If the condition holds, a key is in these ranges, whatever the field has.
  let arrayRanges: [ValueRange]
  /// Whether the condition holds if the only key is in the ranges, provided that the field has a single value, which
  /// isn't an array.
  let isTight: Bool
  /// If a key is in these ranges, the condition holds, whatever the field has.
  let sufficient: [ValueRange]
  /// Whether the condition holds if, and only if, a key is in `arrayRanges`, whatever the field has.
  let isTightForArrays: Bool

  /// - Parameter sufficient: nil for a condition that holds if a key is in the ranges, whatever the field has.
  init(_ ranges: [ValueRange], arrayRanges: [ValueRange]? = nil, isTight: Bool = false, sufficient: [ValueRange]? = [])
  {
    self.ranges = ranges
    self.arrayRanges = arrayRanges ?? ranges
    self.isTight = isTight
    self.sufficient = sufficient ?? ranges
    isTightForArrays = sufficient == nil
  }

  private init(
    _ ranges: [ValueRange], _ arrayRanges: [ValueRange], isTight: Bool, sufficient: [ValueRange], isTightForArrays: Bool
  ) {
    self.ranges = ranges
    self.arrayRanges = arrayRanges
    self.isTight = isTight
    self.sufficient = sufficient
    self.isTightForArrays = isTightForArrays
  }

  /// No document has such a key.
  var isImpossible: Bool { arrayRanges.isEmpty }

  /// Returns what can be said if one of several conditions holds.
  static func any(of parts: [ConditionRanges]) -> ConditionRanges {
    ConditionRanges(
      .union(parts.flatMap(\.ranges)), .union(parts.flatMap(\.arrayRanges)), isTight: parts.allSatisfy(\.isTight),
      sufficient: .union(parts.flatMap(\.sufficient)), isTightForArrays: parts.allSatisfy(\.isTightForArrays))
  }

  /// What can be said if the condition holds for an element of an array, given the mark for elements that are arrays.
  var forElement: ConditionRanges { ConditionRanges(.union(ranges.withoutArrays + [.nested])) }
}

extension SelectorTree.Condition {
  /// What the condition says about keys; nil if it says nothing, or if it is about elements.
  ///
  /// For each element of an array, the condition is an alternative.
  var keyRanges: ConditionRanges? {
    switch self {
    case .equal(let value, let options): return Self.equal([value], options)
    case .in(let values, let options): return Self.equal(values, options)
    case .less(let value): return Self.range(ValueRange(.behindMissing, .before(value)), value)
    case .lessOrEqual(let value): return Self.range(ValueRange(.behindMissing, .behind(value)), value)
    case .greater(let value): return Self.range(ValueRange(.behind(value), .end), value)
    case .greaterOrEqual(let value): return Self.range(ValueRange(.before(value), .end), value)
    case .exists(let exists):
      return ConditionRanges([exists ? .existing : .missing], isTight: true, sufficient: nil)
    case .type(let type): return ConditionRanges([ValueBound.around(type)], isTight: true)
    case .size(let size):
      return ConditionRanges([size == 0 ? ValueBound.around(.array([])) : ValueBound.around(.array)])
    case .remainder: return ConditionRanges([ValueBound.around(.number)])
    case .beginsWith(let prefix, []): return Self.strings(prefix, isTight: true)
    case .regex(let expression, []): return Self.strings(expression.anchoredLiteralPrefix ?? "", isTight: false)
    case .like(let pattern, []):
      let prefix = pattern.literalPrefix
      if prefix.rest == .nothing { return Self.equal([.string(prefix.text)], []) }
      return Self.strings(prefix.text, isTight: prefix.rest == .anyRun)
    case .beginsWith, .regex, .like, .endsWith, .contains: return ConditionRanges([ValueBound.around(.string)])
    case .keyMapMatch: return ConditionRanges([ValueBound.around(.object)])
    case .all(let values): return values.isEmpty ? ConditionRanges([], isTight: true) : nil
    case .elemMatch, .allMatch: return nil
    }
  }

  private static func equal(_ values: [JSONValue], _ options: Selector.StringOptions) -> ConditionRanges? {
    guard !values.contains(where: \.hasNaN) else { return nil }
    var isTight = true
    let ranges = values.map { value in
      // Options apply to strings, also those in an array.
      guard !options.isEmpty, value.type == .string || value.type == .array else { return ValueBound.around(value) }
      isTight = false
      return ValueBound.around(value.type)
    }
    return ConditionRanges(.union(ranges), isTight: isTight, sufficient: isTight ? nil : [])
  }

  private static func range(_ range: ValueRange, _ operand: JSONValue) -> ConditionRanges? {
    guard !operand.hasNaN else { return nil }
    let ranges = range.isEmpty ? [] : [range]
    switch operand.type {
    case .null: return ConditionRanges(ranges, isTight: true, sufficient: nil)
    // Elements that aren't arrays don't count.
    case .array: return ConditionRanges(ranges, isTight: true, sufficient: ranges.arrays)
    // An array isn't compared as a whole. Elements that are arrays have a mark.
    case .boolean, .number, .string, .object:
      let others = ranges.withoutArrays
      return ConditionRanges(ranges, arrayRanges: others + [.nested], isTight: true, sufficient: others)
    }
  }

  private static func strings(_ prefix: String, isTight: Bool) -> ConditionRanges {
    ConditionRanges(
      [ValueBound.around(stringsBeginningWith: prefix)], isTight: isTight, sufficient: isTight ? nil : [])
  }
}

extension SelectorTree {
  /// The only field that the tree is about, and what it says about its keys; nil if it is about something else.
  var fieldRanges: (path: FieldPath, ranges: ConditionRanges)? {
    switch self {
    case .field(let path?, let condition): return condition.keyRanges.map { (path, $0) }
    case .not(.field(let path?, .exists(let exists))): return SelectorTree.field(path, .exists(!exists)).fieldRanges
    case .or(let parts):
      guard case .field(let path?, _)? = parts.first else { return nil }
      var ranges: [ConditionRanges] = []
      for case .field(let other?, let condition) in parts where other == path {
        guard let range = condition.keyRanges else { return nil }
        ranges.append(range)
      }
      return ranges.count == parts.count ? (path, .any(of: ranges)) : nil
    case .field(nil, _), .and, .not, .someElementNot, .expression, .text: return nil
    }
  }
}

extension JSONValue {
  /// Whether a number in the value is none. No document has it, and its order key has another order.
  fileprivate var hasNaN: Bool {
    switch self {
    case .double(let value): value.isNaN
    case .array(let elements): elements.contains(where: \.hasNaN)
    case .object(let members): members.contains { $0.value.hasNaN }
    case .null, .bool, .integer, .string: false
    }
  }
}

extension LikePattern {
  /// What follows the literal text that a pattern begins with.
  enum Rest {
    case nothing
    /// Any text.
    case anyRun
    case other
  }

  /// The text that all strings which match begin with, and what follows it.
  var literalPrefix: (text: String, rest: Rest) {
    var (text, isEscaped) = (String.UnicodeScalarView(), false)
    let scalars = description.unicodeScalars
    for index in scalars.indices {
      let scalar = scalars[index]
      if !isEscaped, scalar == "*" || scalar == "?" {
        let isLast = scalars.index(after: index) == scalars.endIndex
        return (String(text), scalar == "*" && isLast ? .anyRun : .other)
      }
      isEscaped = !isEscaped && scalar == "\\"
      if !isEscaped { text.append(scalar) }
    }
    return (String(text), .nothing)
  }
}
