/// A place between values in their total order, which is that of the bytes of their order keys.
///
/// It is before all keys that begin with its bytes or are greater, and behind all others.
struct ValueBound: Sendable {
  /// What the bound is before or behind.
  enum Subject: Sendable {
    /// No value at all.
    case missing
    case value(JSONValue)
    /// All strings with a prefix.
    case prefix(String)
    case type(JSONType)
    /// The mark of a field with an array that is an element of an array.
    case nested
  }

  let bytes: [UInt8]
  let subject: Subject
  let isBehind: Bool

  private init(_ bytes: [UInt8], _ subject: Subject, isBehind: Bool) {
    self.bytes = bytes
    self.subject = subject
    self.isBehind = isBehind
  }

  static func before(_ value: JSONValue) -> ValueBound {
    ValueBound(OrderKey.key(of: value), .value(value), isBehind: false)
  }

  static func behind(_ value: JSONValue) -> ValueBound {
    ValueBound(successor(of: OrderKey.key(of: value)), .value(value), isBehind: true)
  }

  /// The bounds around a value.
  static func around(_ value: JSONValue) -> ValueRange {
    let key = OrderKey.key(of: value)
    return ValueRange(
      ValueBound(key, .value(value), isBehind: false), ValueBound(successor(of: key), .value(value), isBehind: true))
  }

  static func around(stringsBeginningWith prefix: String) -> ValueRange {
    let key = OrderKey.prefix(ofStringsBeginningWith: prefix)
    return ValueRange(
      ValueBound(key, .prefix(prefix), isBehind: false), ValueBound(successor(of: key), .prefix(prefix), isBehind: true)
    )
  }

  static func around(_ type: JSONType) -> ValueRange {
    guard type != .null else { return around(JSONValue.null) }
    let (lower, upper) = OrderKey.bounds(of: type)
    return ValueRange(
      ValueBound(lower, .type(type), isBehind: false), ValueBound(upper, .type(type), isBehind: true))
  }

  static let beforeMissing = ValueBound(OrderKey.missing, .missing, isBehind: false)
  /// Before all values that exist.
  static let behindMissing = ValueBound(successor(of: OrderKey.missing), .missing, isBehind: true)
  /// Behind all values.
  static let end = ValueBound(OrderKey.nested, .nested, isBehind: false)
  fileprivate static let behindNested = ValueBound(successor(of: OrderKey.nested), .nested, isBehind: true)

  /// Returns the first bytes that follow all which begin with others.
  static func successor(of bytes: [UInt8]) -> [UInt8] {
    guard let successor = IndexRange.successor(of: bytes) else {
      preconditionFailure("order keys and their complements begin with a tag")
    }
    return successor
  }

  static func < (left: ValueBound, right: ValueBound) -> Bool { left.bytes.span.order(right.bytes.span) < 0 }
  static func <= (left: ValueBound, right: ValueBound) -> Bool { left.bytes.span.order(right.bytes.span) <= 0 }

  /// The id that strings in front of the bound are less than, and the others not.
  enum IDBound {
    /// Before all ids.
    case start
    case id([UInt8])
    /// Behind all ids.
    case end
  }

  var idBound: IDBound {
    let strings = OrderKey.bounds(of: .string)
    if bytes.span.order(strings.lower.span) <= 0 { return .start }
    if bytes.span.order(strings.upper.span) >= 0 { return .end }
    switch subject {
    case .value(.string(let text)): return .id(Array(text.utf8) + (isBehind ? [0] : []))
    case .prefix(let prefix):
      let prefix = Array(prefix.utf8)
      return isBehind ? IndexRange.successor(of: prefix).map(IDBound.id) ?? .end : .id(prefix)
    case .missing, .value, .type, .nested: preconditionFailure("only strings and their prefixes are among strings")
    }
  }
}

/// The values between two bounds.
struct ValueRange: Sendable {
  let lower: ValueBound
  let upper: ValueBound

  init(_ lower: ValueBound, _ upper: ValueBound) {
    self.lower = lower
    self.upper = upper
  }

  /// No value.
  static let missing = ValueRange(.beforeMissing, .behindMissing)
  /// Any value.
  static let existing = ValueRange(.behindMissing, .end)
  /// The mark of arrays in arrays.
  static let nested = ValueRange(.end, .behindNested)

  var isEmpty: Bool { upper <= lower }

  /// Whether the range has one value or mark only, so that its lower bound's bytes are a whole key.
  var isPoint: Bool {
    guard !lower.isBehind else { return isPointBehindMissing }
    switch lower.subject {
    case .value, .missing, .nested: return upper.bytes == ValueBound.successor(of: lower.bytes)
    case .prefix, .type: return false
    }
  }

  /// Whether the range is null, from the bound behind a missing value on.
  private var isPointBehindMissing: Bool {
    lower.bytes == ValueBound.behindMissing.bytes && upper.bytes == ValueBound.successor(of: lower.bytes)
  }

  /// Whether each value of another range is in this one.
  func contains(_ other: ValueRange) -> Bool { lower <= other.lower && other.upper <= upper }
}

// MARK: Sets of values

/// Sets of values: ranges that are not empty, are disjoint, and ascend.
extension [ValueRange] {
  private static let array = ValueBound.around(.array)

  /// Whether each range has one value only.
  var arePoints: Bool { allSatisfy(\.isPoint) }

  /// Returns the set of the values in any of some ranges, in any order.
  static func union(_ ranges: [ValueRange]) -> [ValueRange] {
    guard ranges.count > 1 else { return ranges.filter { !$0.isEmpty } }
    var union: [ValueRange] = []
    union.reserveCapacity(ranges.count)
    for range in ranges.sorted(by: { $0.lower < $1.lower }) where !range.isEmpty {
      if let last = union.last, range.lower < last.upper {
        if last.upper < range.upper { union[union.count - 1] = ValueRange(last.lower, range.upper) }
      } else {
        union.append(range)
      }
    }
    return union
  }

  func intersection(_ other: [ValueRange]) -> [ValueRange] {
    var (result, position, otherPosition) = ([ValueRange](), 0, 0)
    while position < count, otherPosition < other.count {
      let (left, right) = (self[position], other[otherPosition])
      let lower = left.lower < right.lower ? right.lower : left.lower
      let leftEndsFirst = left.upper < right.upper
      let both = ValueRange(lower, leftEndsFirst ? left.upper : right.upper)
      if !both.isEmpty { result.append(both) }
      if leftEndsFirst { position += 1 } else { otherPosition += 1 }
    }
    return result
  }

  /// Returns the set without arrays.
  var withoutArrays: [ValueRange] {
    flatMap { range -> [ValueRange] in
      guard range.lower < Self.array.upper, Self.array.lower < range.upper else { return [range] }
      return [
        ValueRange(range.lower, range.upper < Self.array.lower ? range.upper : Self.array.lower),
        ValueRange(range.lower < Self.array.upper ? Self.array.upper : range.lower, range.upper),
      ].filter { !$0.isEmpty }
    }
  }

  /// Returns the arrays of the set.
  var arrays: [ValueRange] { intersection([Self.array]) }

  /// Whether each value of another set is in this one. False if a range of the other is in several ranges of this one.
  /// - Complexity: O(*n* + *m*).
  func contains(_ other: [ValueRange]) -> Bool {
    var position = 0
    for range in other {
      while position < count, self[position].upper <= range.lower { position += 1 }
      guard position < count, self[position].contains(range) else { return false }
    }
    return true
  }

  /// Returns a set of no more than a number of ranges that has all values of this one.
  func coarsened(to limit: Int) -> [ValueRange] {
    guard count > limit else { return self }
    return (0..<limit).map { part in
      let (first, end) = (part * count / limit, (part + 1) * count / limit)
      return ValueRange(self[first].lower, self[end - 1].upper)
    }
  }
}

// MARK: Showing

extension ValueRange {
  /// The range as conditions of a selector, for people.
  var json: JSONValue {
    if case .nested = upper.subject, upper.isBehind { return "arrays in arrays" }
    var conditions = JSONObject()
    switch (lower.subject, upper.subject) {
    case (.missing, .missing): return ["$exists": false]
    case (.value(let value), .value) where isPoint: return ["$eq": value]
    case (.missing, .nested): return lower.isBehind ? ["$exists": true] : [:]
    default: break
    }
    switch lower.subject {
    case .missing: break
    case .value(let value): conditions[lower.isBehind ? "$gt" : "$gte"] = value
    case .prefix(let prefix): conditions["$beginsWith"] = .string(prefix)
    case .type(let type): conditions[lower.isBehind ? "behind" : "$type"] = .string(type.rawValue)
    case .nested: break
    }
    switch upper.subject {
    case .missing, .nested: break
    case .value(let value): conditions[upper.isBehind ? "$lte" : "$lt"] = value
    case .prefix(let prefix): conditions["$beginsWith"] = .string(prefix)
    case .type(let type): conditions[upper.isBehind ? "$type" : "before"] = .string(type.rawValue)
    }
    return .object(conditions)
  }
}
