import GRDB

/// Which way a condition in SQL may differ from the selector that it stands for.
enum SQLBound: Sendable {
  /// The condition holds for every document that the selector matches, and perhaps for others.
  case superset
  /// The condition holds only for documents that the selector matches, but perhaps not for all of them.
  case subset

  var opposite: SQLBound { self == .superset ? .subset : .superset }

  /// What is right about anything that SQL can't express.
  var unknown: SQLCondition { self == .superset ? .always : .never }
}

/// A condition in SQL, with its values as arguments.
///
/// Constants are left out of combinations, so that they don't keep SQLite from using an index. Combinations stay within
/// SQLite's limits: a part that would exceed one is left out, or makes the whole combination unknown.
struct SQLCondition: Equatable, Sendable {
  let sql: String
  let arguments: [DatabaseValue]
  private let termCount: Int
  private let depth: Int

  static let always = SQLCondition("TRUE")
  static let never = SQLCondition("FALSE")

  /// SQLite accepts more, but takes quadratic time.
  private static let maxTermCount = 1_000
  /// SQLite accepts 32,766 in a statement, which has two more.
  private static let maxArgumentCount = 32_000
  /// SQLite's parser has a stack of 100 tokens, and each pair of parentheses can take three of them.
  private static let maxDepth = 24

  /// Creates a term: a condition that is not a combination.
  init(_ sql: String, _ arguments: [DatabaseValue] = []) {
    self.init(sql, arguments, termCount: 1, depth: 1)
  }

  private init(_ sql: String, _ arguments: [DatabaseValue], termCount: Int, depth: Int) {
    self.sql = sql
    self.arguments = arguments
    self.termCount = termCount
    self.depth = depth
  }

  /// Returns a condition that holds where all parts do.
  static func all(_ parts: [SQLCondition], _ bound: SQLBound) -> SQLCondition {
    guard !parts.contains(never) else { return never }
    let (kept, isCut) = fitting(parts.filter { $0 != always })
    return isCut && bound == .subset ? never : joined(kept[...], "AND", bound) ?? always
  }

  /// Returns a condition that holds where one of the parts does.
  static func any(_ parts: [SQLCondition], _ bound: SQLBound) -> SQLCondition {
    guard !parts.contains(always) else { return always }
    let (kept, isCut) = fitting(parts.filter { $0 != never })
    return isCut && bound == .superset ? always : joined(kept[...], "OR", bound) ?? never
  }

  /// Returns a condition that holds where another one doesn't, also where that is unknown to SQL.
  /// - Parameter bound: That of the result.
  static func not(_ part: SQLCondition, _ bound: SQLBound) -> SQLCondition {
    if part == always { return never }
    if part == never { return always }
    guard part.depth < maxDepth else { return bound.unknown }
    return SQLCondition(
      "((\(part.sql)) IS NOT TRUE)", part.arguments, termCount: part.termCount, depth: part.depth + 2)
  }

  /// Returns the first parts that fit into a statement, and whether there are others.
  private static func fitting(_ parts: [SQLCondition]) -> (kept: [SQLCondition], isCut: Bool) {
    var (kept, termCount, argumentCount) = ([SQLCondition](), 0, 0)
    for part in parts
    where termCount + part.termCount <= maxTermCount && argumentCount + part.arguments.count <= maxArgumentCount {
      kept.append(part)
      termCount += part.termCount
      argumentCount += part.arguments.count
    }
    return (kept, kept.count < parts.count)
  }

  /// Joins parts in halves. Otherwise a long chain would be nested as deep as it is long.
  private static func joined(_ parts: ArraySlice<SQLCondition>, _ word: String, _ bound: SQLBound) -> SQLCondition? {
    guard parts.count > 1 else { return parts.first }
    let middle = parts.startIndex + parts.count / 2
    guard let left = joined(parts[..<middle], word, bound), let right = joined(parts[middle...], word, bound) else {
      return nil
    }
    let depth = max(left.depth, right.depth) + 1
    guard depth <= maxDepth else { return bound.unknown }
    return SQLCondition(
      "(\(left.sql) \(word) \(right.sql))", left.arguments + right.arguments,
      termCount: left.termCount + right.termCount, depth: depth)
  }
}
