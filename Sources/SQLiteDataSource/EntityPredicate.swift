import DataSources
import Documents
import GRDB

/// A condition on entities: a comparison of a field, or a combination of conditions.
///
/// ```swift
/// let cheap = EntityPredicate { $0.price < 20 && !($0.tags == nil) }
/// let same = try EntityPredicate("price < %@ AND tags != NULL", 20)
/// ```
///
/// Values compare as their JSON does: texts by their UTF-8 bytes, numbers as numbers, false and true as 0 and 1. A text
/// is neither less nor greater than a number. A field that is missing or null equals nil; every other comparison of it
/// is false.
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

  private let condition: Condition

  init(_ condition: Condition) {
    self.condition = condition
  }

  /// Creates the condition that a closure builds from an entity's fields.
  public init(_ body: (EntityField) -> EntityPredicate) {
    self = body(EntityField([]))
  }

  /// The condition that every entity satisfies.
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

  /// Returns the condition in SQL.
  /// - Throws: `DataSourceError.illegalArgument` for names and values that SQL can't express.
  func sql() throws -> SQLCondition {
    let sql = try condition.sql(depth: 0)
    let count = condition.comparisonCount
    guard count <= Self.maxComparisons else {
      throw DataSourceError(
        .illegalArgument,
        "the predicate has \(count) comparisons; the limit is \(Self.maxComparisons). Use IN for many values")
    }
    return sql
  }

  /// SQLite accepts more, but takes quadratic time.
  private static let maxComparisons = 1_000
}

/// A field of an entity, by its name in the entity's JSON; without a name, the entity itself. Dots separate the names
/// of nested fields.
@dynamicMemberLookup
public struct EntityField: Hashable, Sendable {
  public typealias Value = Encodable & Sendable

  private let path: [String]

  fileprivate init(_ path: [String]) {
    self.path = path
  }

  /// - Throws: `DataSourceError.illegalArgument` for a name that SQLite can't express.
  init(path text: String) throws {
    path = text == "SELF" ? [] : text.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
    try check()
  }

  /// The field with this name inside this field.
  public subscript(dynamicMember name: String) -> EntityField { EntityField(path + [name]) }

  /// The field with a name that isn't a Swift identifier.
  public subscript(name: String) -> EntityField { EntityField(path + [name]) }

  fileprivate func check() throws {
    guard path.allSatisfy({ !$0.isEmpty && !$0.contains("\"") && !$0.contains("\0") }) else {
      throw DataSourceError(
        .illegalArgument, "\(path.joined(separator: ".").debugDescription) can't be the name of a field")
    }
  }

  /// The field's value in SQL. It is always written in the same way; otherwise SQLite wouldn't use an index. The name
  /// has been checked.
  var sql: String {
    let path = path.map { ".\"\($0)\"" }.joined().replacing("'", with: "''")
    return "json_extract(value, '$\(path)')"
  }

  /// A name for an index on the field. SQLite ignores the case of an index's name, but not that of a field's.
  var indexName: String {
    path.joined(separator: "\0").utf8.map { String($0, radix: 16) }.joined(separator: "_")
  }
}

// MARK: - Comparisons

extension EntityField {
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

  /// The field is missing or null.
  public static func == (field: EntityField, none: _OptionalNilComparisonType) -> EntityPredicate {
    EntityPredicate(.isNull(field))
  }

  /// The field exists and is not null.
  public static func != (field: EntityField, none: _OptionalNilComparisonType) -> EntityPredicate { !(field == none) }

  /// The field's text equals this one, optionally regardless of case.
  public func equals(_ text: String, ignoringCase: Bool) -> EntityPredicate {
    compare(.equal, text, ignoringCase: ignoringCase)
  }

  /// The field's text contains this one.
  public func contains(_ text: String, ignoringCase: Bool = false) -> EntityPredicate {
    compare(.contains, text, ignoringCase: ignoringCase)
  }

  /// The field's text begins with this one.
  public func hasPrefix(_ text: String, ignoringCase: Bool = false) -> EntityPredicate {
    compare(.beginsWith, text, ignoringCase: ignoringCase)
  }

  /// The field's text ends with this one.
  public func hasSuffix(_ text: String, ignoringCase: Bool = false) -> EntityPredicate {
    compare(.endsWith, text, ignoringCase: ignoringCase)
  }

  /// The field's text matches a pattern, in which `*` matches any text and `?` any character.
  public func isLike(_ pattern: String, ignoringCase: Bool = false) -> EntityPredicate {
    compare(.like, pattern, ignoringCase: ignoringCase)
  }

  /// The field equals one of these values.
  public func isOne(of values: [some Value]) -> EntityPredicate {
    EntityPredicate(.comparison(self, .oneOf, values.map { $0 as any Value }, ignoringCase: false))
  }

  /// The field is between two values, or equals one of them.
  public func isBetween(_ low: some Value, and high: some Value) -> EntityPredicate { self >= low && self <= high }

  private func compare(
    _ comparison: EntityPredicate.Comparison, _ value: some Value, ignoringCase: Bool = false
  ) -> EntityPredicate {
    EntityPredicate(.comparison(self, comparison, [value], ignoringCase: ignoringCase))
  }
}

// MARK: - SQL

/// A condition in SQL, with its values as arguments.
struct SQLCondition: Sendable {
  let sql: String
  let arguments: [DatabaseValue]
}

extension EntityPredicate.Condition {
  /// The maximum depth of nested conditions. SQLite's limit is a thousand.
  private static let maxDepth = 200

  fileprivate var comparisonCount: Int {
    switch self {
    case .always, .comparison, .isNull: 1
    case .all(let conditions), .any(let conditions): conditions.reduce(0) { $0 + $1.comparisonCount }
    case .not(let condition): condition.comparisonCount
    }
  }

  fileprivate func sql(depth: Int) throws -> SQLCondition {
    guard depth <= Self.maxDepth else {
      throw DataSourceError(
        .illegalArgument, "the predicate nests conditions more than \(Self.maxDepth) levels deep")
    }
    switch self {
    case .always(let value): return SQLCondition(sql: value ? "TRUE" : "FALSE", arguments: [])
    case .isNull(let field):
      try field.check()
      return SQLCondition(sql: "\(field.sql) IS NULL", arguments: [])
    case .all(let conditions): return try joined(conditions, "AND", depth)
    case .any(let conditions): return try joined(conditions, "OR", depth)
    case .not(let condition):
      // In a predicate, what SQL considers unknown is false.
      let inner = try condition.sql(depth: depth + 1)
      return SQLCondition(sql: "((\(inner.sql)) IS NOT TRUE)", arguments: inner.arguments)
    case .comparison(let field, let comparison, let values, let ignoringCase):
      try field.check()
      return try comparison.sql(
        field.sql, values.map { try JSONValue.databaseValue(of: $0) }, ignoringCase: ignoringCase)
    }
  }

  private func joined(_ conditions: [Self], _ word: String, _ depth: Int) throws -> SQLCondition {
    let parts = try conditions.map { try $0.sql(depth: depth + 1) }
    return SQLCondition(
      sql: Self.joined(parts.map(\.sql)[...], " \(word) "), arguments: parts.flatMap(\.arguments))
  }

  /// Joins parts in halves. Otherwise a long chain would be nested as deep as it is long.
  private static func joined(_ parts: ArraySlice<String>, _ word: String) -> String {
    guard parts.count > 1 else { return parts.first ?? "" }
    let middle = parts.startIndex + parts.count / 2
    return "(\(joined(parts[..<middle], word))\(word)\(joined(parts[middle...], word)))"
  }
}

extension EntityPredicate.Comparison {
  fileprivate func sql(_ field: String, _ values: [DatabaseValue], ignoringCase: Bool) throws -> SQLCondition {
    switch self {
    case .equal where !ignoringCase:
      return SQLCondition(sql: "\(field) IS ?", arguments: values)
    case .oneOf:
      let placeholders = values.map { _ in "?" }.joined(separator: ", ")
      let orNull = values.contains(where: \.isNull) ? " OR \(field) IS NULL" : ""
      return SQLCondition(sql: "(\(field) IN (\(placeholders))\(orNull))", arguments: values)
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      let types =
        switch values[0].storage {
        case .int64, .double: "('integer', 'real')"
        case .string: "('text')"
        case .null, .blob: throw DataSourceError(.illegalArgument, "nothing is less or greater than nil")
        }
      return SQLCondition(sql: "(\(field) \(sign) ? AND typeof(\(field)) IN \(types))", arguments: values)
    case .equal, .contains, .beginsWith, .endsWith, .like:
      guard case .string(let text) = values[0].storage else {
        throw DataSourceError(.illegalArgument, "a comparison of texts needs a text")
      }
      return textSQL(
        ignoringCase ? "\(DatabaseFunction.lowercase.name)(\(field))" : field, ignoringCase ? text.lowercased() : text,
        type: "typeof(\(field)) = 'text'")
    }
  }

  private var sign: String {
    switch self {
    case .less: "<"
    case .lessOrEqual: "<="
    case .greater: ">"
    case .greaterOrEqual: ">="
    default: "="
    }
  }

  private func textSQL(_ field: String, _ text: String, type: String) -> SQLCondition {
    let count = text.unicodeScalars.count
    let value = text.databaseValue
    if text.isEmpty, self != .equal, self != .like { return SQLCondition(sql: type, arguments: []) }
    let (sql, arguments): (String, [DatabaseValue]) =
      switch self {
      case .contains: ("instr(\(field), ?) > 0", [value])
      case .beginsWith: ("substr(\(field), 1, ?) = ?", [count.databaseValue, value])
      case .endsWith: ("substr(\(field), ?) = ?", [(-count).databaseValue, value])
      // Only GLOB gives brackets a meaning.
      case .like: ("\(field) GLOB ?", [text.replacing("[", with: "[[]").databaseValue])
      default: ("\(field) = ?", [value])
      }
    return SQLCondition(sql: "(\(type) AND \(sql))", arguments: arguments)
  }
}
