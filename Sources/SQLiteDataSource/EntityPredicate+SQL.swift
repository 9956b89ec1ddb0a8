import DataSources
import GRDB

/// A condition in SQL, with its values apart.
struct SQLCondition: Sendable {
  var sql: String
  var arguments: [DatabaseValue]
}

extension EntityPredicate {
  /// - Throws: `DataSourceError.illegalArgument` for names and values that can't be asked for.
  func sql() throws -> SQLCondition {
    let sql = try condition.sql(depth: 0)
    let count = condition.comparisonCount
    guard count <= Self.maxComparisons else {
      throw DataSourceError(
        .illegalArgument,
        "a predicate of \(count) comparisons; \(Self.maxComparisons) are the most: IN takes any number of values")
    }
    return sql
  }

  /// SQLite takes more, in a time that grows with their square.
  private static let maxComparisons = 1_000
}

extension EntityPredicate.Condition {
  /// How deep conditions may be inside each other; SQLite takes a thousand.
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
      throw DataSourceError(.illegalArgument, "a predicate of conditions more than \(Self.maxDepth) deep")
    }
    switch self {
    case .always(let value): return SQLCondition(sql: value ? "TRUE" : "FALSE", arguments: [])
    case .isNull(let field):
      try field.check()
      return SQLCondition(sql: "\(field.sql()) IS NULL", arguments: [])
    case .all(let conditions): return try joined(conditions, "AND", depth)
    case .any(let conditions): return try joined(conditions, "OR", depth)
    case .not(let condition):
      // What is not known to be true is false here.
      let inner = try condition.sql(depth: depth + 1)
      return SQLCondition(sql: "((\(inner.sql)) IS NOT TRUE)", arguments: inner.arguments)
    case .comparison(let field, let comparison, let values, let ignoringCase):
      try field.check()
      return try comparison.sql(
        field.sql(), values.map { try JSONScalar($0).databaseValue }, ignoringCase: ignoringCase)
    }
  }

  private func joined(_ conditions: [Self], _ word: String, _ depth: Int) throws -> SQLCondition {
    let parts = try conditions.map { try $0.sql(depth: depth + 1) }
    return SQLCondition(
      sql: Self.joined(parts.map(\.sql)[...], " \(word) "), arguments: parts.flatMap(\.arguments))
  }

  /// In halves, or a long chain would be as deep as it is long.
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
      let marks = values.map { _ in "?" }.joined(separator: ", ")
      let others = values.filter { !$0.isNull }.count < values.count ? " OR \(field) IS NULL" : ""
      return SQLCondition(sql: "(\(field) IN (\(marks))\(others))", arguments: values)
    case .less, .lessOrEqual, .greater, .greaterOrEqual:
      let types =
        switch values[0].storage {
        case .int64, .double: "('integer', 'real')"
        case .string: "('text')"
        case .null, .blob: throw DataSourceError(.illegalArgument, "nothing is less or more than nil")
        }
      return SQLCondition(sql: "(\(field) \(sign) ? AND typeof(\(field)) IN \(types))", arguments: values)
    case .equal, .contains, .beginsWith, .endsWith, .like:
      guard case .string(let text) = values[0].storage else {
        throw DataSourceError(.illegalArgument, "texts are compared with texts only")
      }
      return ofTexts(
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

  private func ofTexts(_ field: String, _ text: String, type: String) -> SQLCondition {
    let count = text.unicodeScalars.count
    let value = text.databaseValue
    if text.isEmpty, self != .equal, self != .like { return SQLCondition(sql: type, arguments: []) }
    let (sql, arguments): (String, [DatabaseValue]) =
      switch self {
      case .contains: ("instr(\(field), ?) > 0", [value])
      case .beginsWith: ("substr(\(field), 1, ?) = ?", [count.databaseValue, value])
      case .endsWith: ("substr(\(field), ?) = ?", [(-count).databaseValue, value])
      // Brackets mean something to GLOB only.
      case .like: ("\(field) GLOB ?", [text.replacing("[", with: "[[]").databaseValue])
      default: ("\(field) = ?", [value])
      }
    return SQLCondition(sql: "(\(type) AND \(sql))", arguments: arguments)
  }
}
