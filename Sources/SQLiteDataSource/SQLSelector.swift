// A selector in SQL:
//
// 1. `SQLSelector` walks the tree of a selector and makes a condition that holds for every document that matches, and
//    perhaps for others. What SQL can't say is true in it, or false under a negation, where the bound is the other way
//    around.
// 2. `SQLField` makes the condition on a field: ranges of `json_extract`, which an index on the field serves, and which
//    allow for what SQLite doesn't know, such as the elements of arrays.
// 3. `SQLSelection` adds the order by key. If the other bound is the same condition, SQL is exact, and skips and
//    limits, too.
// 4. `SQLiteTables` passes the rows to a `DocumentFinder`, which evaluates the selector, sorts, and cuts the page, as
//    for documents in memory.

import Documents

/// A selector as conditions in SQL on the columns `key` and `value`.
///
/// SQL can't say everything that a selector says. For example, it doesn't know the elements of arrays, and reads
/// numbers less exactly. So a tree has two conditions: one that selects at least what the tree matches, and one that
/// selects at most that. The complement of the second one is the first one of the complement. Where both are the same,
/// SQL is exact.
enum SQLSelector {
  /// The types that the values of fields are known to have, by the fields' paths.
  private typealias KnownTypes = [FieldPath: JSONType]

  static func condition(_ tree: SelectorTree, _ bound: SQLBound) -> SQLCondition {
    condition(tree, bound, [:])
  }

  private static func condition(_ tree: SelectorTree, _ bound: SQLBound, _ types: KnownTypes) -> SQLCondition {
    switch tree {
    case .and(let parts):
      let types = parts.reduce(into: types) { types, part in
        if case .field(let path?, .type(let type)) = part { types[path] = type }
      }
      return .all(parts.map { condition($0, bound, types) }, bound)
    case .or(let parts): return .any(parts.map { condition($0, bound, types) }, bound)
    // Some element fails a condition where the condition isn't known to hold for all of them: SQL knows of no elements.
    case .not(let part), .someElementNot(_?, let part):
      return .not(condition(part, bound.opposite), bound)
    case .field(let path?, let condition):
      if path == SQLKey.path { return SQLKey.condition(condition) ?? bound.unknown }
      guard path.names[0] != SQLKey.path.names[0], let field = SQLField(path) else { return bound.unknown }
      return field.condition(condition, bound, type: types[path])
    case .field(nil, _), .someElementNot(nil, _), .expression, .text: return bound.unknown
    }
  }
}

/// Conditions on the key, which documents have as `_id`. It is a string, and compares by its bytes.
private enum SQLKey {
  static let path: FieldPath = "_id"

  /// The maximum number of keys to compare with.
  private static let maxKeyCount = 1_000

  /// Returns a condition that is exact; nil if there is none.
  static func condition(_ condition: SelectorTree.Condition) -> SQLCondition? {
    switch condition {
    case .equal(.string(let key), []): SQLCondition("key = ?", [.key(key)])
    case .equal(let value, _): value.type == .string ? nil : .never
    case .in(let values, []):
      isOne(of: values.compactMap { value in if case .string(let key) = value { key } else { nil } })
    case .in(let values, _): values.contains { $0.type == .string } ? nil : .never
    case .less(let value): compared("<", value, isLess: true)
    case .lessOrEqual(let value): compared("<=", value, isLess: true)
    case .greater(let value): compared(">", value, isLess: false)
    case .greaterOrEqual(let value): compared(">=", value, isLess: false)
    case .exists(let exists): exists ? .always : .never
    case .type(let type): type == .string ? .always : .never
    case .size, .remainder, .all, .elemMatch, .allMatch, .keyMapMatch: .never
    case .beginsWith(let prefix, []) where !prefix.isEmpty:
      SQLCondition("substr(key, 1, ?) = ?", [prefix.utf8.count.databaseValue, .key(prefix)])
    case .beginsWith, .endsWith, .contains, .like, .regex: nil
    }
  }

  private static func isOne(of keys: [String]) -> SQLCondition? {
    if keys.isEmpty { return .never }
    guard keys.count <= maxKeyCount else { return nil }
    return SQLCondition("key IN (\(SQLCondition.placeholders(keys.count)))", keys.map { .key($0) })
  }

  /// Values of other types than strings come before or after all keys.
  private static func compared(_ sign: String, _ value: JSONValue, isLess: Bool) -> SQLCondition {
    if case .string(let key) = value { return SQLCondition("key \(sign) ?", [.key(key)]) }
    return (value.type.order > JSONType.string.order) == isLess ? .always : .never
  }
}
