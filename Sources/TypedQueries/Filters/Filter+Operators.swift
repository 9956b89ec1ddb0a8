import Documents

// An operator compares a field with a value, or with a field of the same type; where nil has no order, optional fields
// have forms of their own. They take plain key paths and return filters, so that the compiler has few ways to read an
// expression.

// MARK: Equality

/// Returns a filter that matches where a field equals a value. A field that is null or missing equals nil.
public func == <Root: Codable, Value: Encodable & Equatable>(
  field: KeyPath<Root, Value>, value: Value
) -> Filter<Root> {
  Filter { Lowering.equal(try FieldResolver.path(of: field), try DocumentCoding.json(of: value, in: Root.self)) }
}

/// Returns a filter that matches where two fields are equal. Fields with arrays can't be compared with each other.
public func == <Root: Codable, Value: Encodable & Equatable>(
  left: KeyPath<Root, Value>, right: KeyPath<Root, Value>
) -> Filter<Root> {
  Filter {
    guard !(Value.self is any FilterElements.Type) else {
      throw FilterError(.unsupportedExpression, "two fields with arrays can't be compared with each other")
    }
    return Lowering.equal(try FieldResolver.comparedPath(of: left), try FieldResolver.comparedPath(of: right))
  }
}

/// Returns a filter that matches where a field doesn't equal a value: the complement of `==`.
public func != <Root: Codable, Value: Encodable & Equatable>(
  field: KeyPath<Root, Value>, value: Value
) -> Filter<Root> {
  !(field == value)
}

/// Returns a filter that matches where two fields aren't equal: the complement of `==`.
public func != <Root: Codable, Value: Encodable & Equatable>(
  left: KeyPath<Root, Value>, right: KeyPath<Root, Value>
) -> Filter<Root> {
  !(left == right)
}

// MARK: Order

/// Returns a filter that matches where a field is less than a value.
public func < <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value>, value: Value
) -> Filter<Root> {
  .ordered(field, .less, value)
}

/// Returns a filter that matches where a field has a value that is less than another one.
public func < <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value?>, value: Value
) -> Filter<Root> {
  .ordered(field, .less, value)
}

/// Returns a filter that matches where a field is less than another field.
public func < <Root: Codable, Value: Encodable & Comparable>(
  left: KeyPath<Root, Value>, right: KeyPath<Root, Value>
) -> Filter<Root> {
  .ordered(left, .less, right)
}

/// Returns a filter that matches where two optional fields have values, and the first is less than the second.
public func < <Root: Codable, Value: Encodable & Comparable>(
  left: KeyPath<Root, Value?>, right: KeyPath<Root, Value?>
) -> Filter<Root> {
  .ordered(left, .less, right)
}

/// Returns a filter that matches where a field is less than or equal to a value.
public func <= <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value>, value: Value
) -> Filter<Root> {
  .ordered(field, .lessOrEqual, value)
}

/// Returns a filter that matches where a field has a value that is less than or equal to another one.
public func <= <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value?>, value: Value
) -> Filter<Root> {
  .ordered(field, .lessOrEqual, value)
}

/// Returns a filter that matches where a field is less than or equal to another field.
public func <= <Root: Codable, Value: Encodable & Comparable>(
  left: KeyPath<Root, Value>, right: KeyPath<Root, Value>
) -> Filter<Root> {
  .ordered(left, .lessOrEqual, right)
}

/// Returns a filter that matches where two optional fields have values, and the first is less than or equal to the second.
public func <= <Root: Codable, Value: Encodable & Comparable>(
  left: KeyPath<Root, Value?>, right: KeyPath<Root, Value?>
) -> Filter<Root> {
  .ordered(left, .lessOrEqual, right)
}

/// Returns a filter that matches where a field is greater than a value.
public func > <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value>, value: Value
) -> Filter<Root> {
  .ordered(field, .greater, value)
}

/// Returns a filter that matches where a field has a value that is greater than another one.
public func > <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value?>, value: Value
) -> Filter<Root> {
  .ordered(field, .greater, value)
}

/// Returns a filter that matches where a field is greater than another field.
public func > <Root: Codable, Value: Encodable & Comparable>(
  left: KeyPath<Root, Value>, right: KeyPath<Root, Value>
) -> Filter<Root> {
  .ordered(left, .greater, right)
}

/// Returns a filter that matches where two optional fields have values, and the first is greater than the second.
public func > <Root: Codable, Value: Encodable & Comparable>(
  left: KeyPath<Root, Value?>, right: KeyPath<Root, Value?>
) -> Filter<Root> {
  .ordered(left, .greater, right)
}

/// Returns a filter that matches where a field is greater than or equal to a value.
public func >= <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value>, value: Value
) -> Filter<Root> {
  .ordered(field, .greaterOrEqual, value)
}

/// Returns a filter that matches where a field has a value that is greater than or equal to another one.
public func >= <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value?>, value: Value
) -> Filter<Root> {
  .ordered(field, .greaterOrEqual, value)
}

/// Returns a filter that matches where a field is greater than or equal to another field.
public func >= <Root: Codable, Value: Encodable & Comparable>(
  left: KeyPath<Root, Value>, right: KeyPath<Root, Value>
) -> Filter<Root> {
  .ordered(left, .greaterOrEqual, right)
}

/// Returns a filter that matches where two optional fields have values, and the first is greater than or equal to the second.
public func >= <Root: Codable, Value: Encodable & Comparable>(
  left: KeyPath<Root, Value?>, right: KeyPath<Root, Value?>
) -> Filter<Root> {
  .ordered(left, .greaterOrEqual, right)
}

// MARK: In

/// Returns a filter that matches where a field equals one of some values. Without values, nothing matches.
public func === <Root: Codable, Value: Encodable & Equatable>(
  field: KeyPath<Root, Value>, values: [Value]
) -> Filter<Root> {
  .isIn(field, values)
}

/// Returns a filter that matches where a field equals one of some values. Without values, nothing matches.
@_disfavoredOverload
public func === <Root: Codable, Value: Encodable & Hashable>(
  field: KeyPath<Root, Value>, values: Set<Value>
) -> Filter<Root> {
  Filter {
    // In one order, so that equal sets make equal selectors.
    let values = try values.map { try DocumentCoding.json(of: $0, in: Root.self) }.sorted()
    return Lowering.isIn(try FieldResolver.path(of: field), values)
  }
}

/// Returns a filter that matches where a field is in a range.
public func === <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value>, range: some FilterRange<Value>
) -> Filter<Root> {
  .isIn(field, range)
}

/// Returns a filter that matches where a field has a value in a range.
public func === <Root: Codable, Value: Encodable & Comparable>(
  field: KeyPath<Root, Value?>, range: some FilterRange<Value>
) -> Filter<Root> {
  .isIn(field, range)
}

// MARK: Lowering

extension Filter where Root: Codable {
  static func ordered<Value: Encodable>(
    _ field: KeyPath<Root, some Any>, _ order: Lowering.Order, _ value: Value
  ) -> Filter {
    Filter {
      try Lowering.ordered(try FieldResolver.path(of: field), order, try DocumentCoding.json(of: value, in: Root.self))
    }
  }

  static func ordered<Value>(
    _ left: KeyPath<Root, Value>, _ order: Lowering.Order, _ right: KeyPath<Root, Value>
  ) -> Filter {
    Filter {
      Lowering.ordered(try FieldResolver.comparedPath(of: left), order, try FieldResolver.comparedPath(of: right))
    }
  }

  static func isIn<Value: Encodable>(_ field: KeyPath<Root, Value>, _ values: some Sequence<Value>) -> Filter {
    Filter {
      let coding = DocumentCoding(of: Root.self)
      return Lowering.isIn(try FieldResolver.path(of: field), try values.map { try coding.json(of: $0) })
    }
  }

  static func isIn<Value: Encodable>(_ field: KeyPath<Root, some Any>, _ range: some FilterRange<Value>) -> Filter {
    Filter {
      let coding = DocumentCoding(of: Root.self)
      var bounds: [(order: Lowering.Order, value: JSONValue)] = []
      if let lower = range.filterBounds.lower { bounds.append((.greaterOrEqual, try coding.json(of: lower))) }
      if let upper = range.filterBounds.upper {
        bounds.append((range.filterBounds.includesUpper ? .lessOrEqual : .less, try coding.json(of: upper)))
      }
      return try Lowering.isBetween(try FieldResolver.path(of: field), bounds)
    }
  }
}

// MARK: Ranges

/// A range of values: `1...3`, `1..<3`, `1...`, `...3` or `..<3`.
public protocol FilterRange<Bound> {
  associatedtype Bound: Comparable
  /// The bounds of the range, and whether the upper one is in it.
  var filterBounds: (lower: Bound?, upper: Bound?, includesUpper: Bool) { get }
}

extension ClosedRange: FilterRange {
  public var filterBounds: (lower: Bound?, upper: Bound?, includesUpper: Bool) { (lowerBound, upperBound, true) }
}

extension Range: FilterRange {
  public var filterBounds: (lower: Bound?, upper: Bound?, includesUpper: Bool) { (lowerBound, upperBound, false) }
}

extension PartialRangeFrom: FilterRange {
  public var filterBounds: (lower: Bound?, upper: Bound?, includesUpper: Bool) { (lowerBound, nil, true) }
}

extension PartialRangeThrough: FilterRange {
  public var filterBounds: (lower: Bound?, upper: Bound?, includesUpper: Bool) { (nil, upperBound, true) }
}

extension PartialRangeUpTo: FilterRange {
  public var filterBounds: (lower: Bound?, upper: Bound?, includesUpper: Bool) { (nil, upperBound, false) }
}
