import Documents
import GRDB

/// Selects rows that include every document that a query finds, and says what remains to be done with them.
///
/// The rows come in the order of their keys if the query does. SQL skips and limits only if it can do so exactly: if
/// that is the query's order, and if the condition is as exact as the selector.
struct SQLSelection: Sendable {
  /// What remains of the query once SQL has done its part.
  let rest: DocumentQuery
  private let condition: SQLCondition
  /// The order by key; nil for any order.
  private let isDescending: Bool?
  private let limit: Int?
  private let offset: Int

  /// - Precondition: Neither `skip` nor `limit` of the query is negative.
  /// - Throws: `SelectorError` if the selector was built in Swift and exceeds a limit.
  init(_ query: DocumentQuery) throws(SelectorError) {
    let tree = try query.selector.checkedTree()
    var rest = query
    condition = SQLSelector.condition(tree, .superset)
    isDescending =
      switch query.sort.first {
      case nil: false
      case let field? where field.path == "_id": field.direction == .descending
      default: nil
      }
    if isDescending != nil, query.bookmark == nil, condition == SQLSelector.condition(tree, .subset) {
      (limit, offset) = (query.limit, query.skip)
      (rest.limit, rest.skip) = (nil, 0)
    } else {
      (limit, offset) = (nil, 0)
    }
    if isDescending == false, query.bookmark == nil { rest.sort = [] }
    self.rest = rest
  }

  /// Returns the statement that selects keys and values from the tables of a store.
  func sql(_ entry: String, _ element: String) -> String {
    let order = isDescending.map { $0 ? "ORDER BY key DESC" : "ORDER BY key" } ?? ""
    // Documents are objects.
    return """
      SELECT key, value FROM \(element) JOIN \(entry) ON id = entry
      WHERE NOT isList AND value >= '{' AND value < '|' AND \(condition.sql) \(order) LIMIT ? OFFSET ?
      """
  }

  /// The values of the statement's parameters.
  var arguments: StatementArguments {
    StatementArguments(condition.arguments + [limit ?? .max, offset].map(\.databaseValue))
  }
}
