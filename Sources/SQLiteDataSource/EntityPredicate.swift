import DataSources

/// A condition on entities: a comparison of a field, or several conditions together.
///
/// ```swift
/// let cheap = EntityPredicate { $0.price < 20 && !($0.tags == nil) }
/// let same = try EntityPredicate("price < %@ AND tags != NULL", 20)
/// ```
///
/// Values are compared as their JSON is: texts by their bytes in UTF-8, numbers as numbers, false and true as 0 and 1, and a text is
/// neither less nor more than a number. A field that is missing or null equals nil, and no other comparison is true of it.
public struct EntityPredicate: Sendable {
  indirect enum Condition: Sendable {
    case always(Bool)
    case comparison(EntityField, Comparison, [any Encodable & Sendable], ignoringCase: Bool)
    case isNull(EntityField)
    case all([Condition])
    case any([Condition])
    case not(Condition)
  }

  enum Comparison: Sendable {
    case equal, less, lessOrEqual, greater, greaterOrEqual, oneOf
    case contains, beginsWith, endsWith, like
  }

  let condition: Condition

  init(_ condition: Condition) {
    self.condition = condition
  }

  /// The condition that a body builds of an entity's fields.
  public init(_ body: (EntityField) -> EntityPredicate) {
    self = body(EntityField([]))
  }

  /// True of every entity.
  public static let all = EntityPredicate(.always(true))

  public static func && (a: EntityPredicate, b: EntityPredicate) -> EntityPredicate {
    if case .all(let conditions) = a.condition { return EntityPredicate(.all(conditions + [b.condition])) }
    return EntityPredicate(.all([a.condition, b.condition]))
  }

  public static func || (a: EntityPredicate, b: EntityPredicate) -> EntityPredicate {
    if case .any(let conditions) = a.condition { return EntityPredicate(.any(conditions + [b.condition])) }
    return EntityPredicate(.any([a.condition, b.condition]))
  }

  public static prefix func ! (a: EntityPredicate) -> EntityPredicate { EntityPredicate(.not(a.condition)) }
}

extension EntityField {
  public typealias Value = Encodable & Sendable

  public static func == (field: EntityField, value: some Value) -> EntityPredicate { field.compare(.equal, value) }
  public static func != (field: EntityField, value: some Value) -> EntityPredicate { !(field == value) }
  public static func < (field: EntityField, value: some Value) -> EntityPredicate { field.compare(.less, value) }
  public static func <= (field: EntityField, value: some Value) -> EntityPredicate {
    field.compare(.lessOrEqual, value)
  }
  public static func > (field: EntityField, value: some Value) -> EntityPredicate { field.compare(.greater, value) }
  public static func >= (field: EntityField, value: some Value) -> EntityPredicate {
    field.compare(.greaterOrEqual, value)
  }

  /// Whether the field is missing or null.
  public static func == (field: EntityField, none: _OptionalNilComparisonType) -> EntityPredicate {
    EntityPredicate(.isNull(field))
  }

  /// Whether the field is there and not null.
  public static func != (field: EntityField, none: _OptionalNilComparisonType) -> EntityPredicate { !(field == none) }

  /// Whether the field's text is this one, whatever the case of its letters.
  public func equals(_ text: String, ignoringCase: Bool) -> EntityPredicate {
    compare(.equal, text, ignoringCase: ignoringCase)
  }

  /// Whether the field's text has this one in it.
  public func contains(_ text: String, ignoringCase: Bool = false) -> EntityPredicate {
    compare(.contains, text, ignoringCase: ignoringCase)
  }

  /// Whether the field's text begins with this one.
  public func hasPrefix(_ text: String, ignoringCase: Bool = false) -> EntityPredicate {
    compare(.beginsWith, text, ignoringCase: ignoringCase)
  }

  /// Whether the field's text ends with this one.
  public func hasSuffix(_ text: String, ignoringCase: Bool = false) -> EntityPredicate {
    compare(.endsWith, text, ignoringCase: ignoringCase)
  }

  /// Whether the field's text is like this one, in which `*` stands for any text and `?` for any character.
  public func isLike(_ pattern: String, ignoringCase: Bool = false) -> EntityPredicate {
    compare(.like, pattern, ignoringCase: ignoringCase)
  }

  /// Whether the field is one of these.
  public func isOne(of values: [some Value]) -> EntityPredicate {
    EntityPredicate(.comparison(self, .oneOf, values.map { $0 as any Value }, ignoringCase: false))
  }

  /// Whether the field is neither less than the one nor more than the other.
  public func isBetween(_ low: some Value, and high: some Value) -> EntityPredicate { self >= low && self <= high }

  private func compare(
    _ comparison: EntityPredicate.Comparison, _ value: some Value, ignoringCase: Bool = false
  ) -> EntityPredicate {
    EntityPredicate(.comparison(self, comparison, [value], ignoringCase: ignoringCase))
  }
}
