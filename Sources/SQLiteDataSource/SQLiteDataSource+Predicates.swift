import DataSources
import GRDB

extension SQLiteDataSource {
  public func get(_ query: any Query) async throws -> T {
    guard let query = query as? any PredicateQuery else { return try await value(of: query) }
    let found = try SQLSelection(query, limit: min(query.limit ?? 1, 1))
    guard let json = try await database.read({ try tables.values(found, $0) }).first else {
      throw DataSourceError(.notFound, "nothing that the predicate is true of")
    }
    return try domain(json)
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    guard let query = query as? any PredicateQuery else { return try await values(of: query) }
    let found = try SQLSelection(query, limit: query.limit)
    return try await database.read { try tables.values(found, $0) }.map(domain)
  }

  /// With a predicate: deletes the single values, and the elements of lists, that it is true of. A list of which none is left is empty.
  public func delete(_ query: any Query) async throws {
    try await delete(query, .delete)
  }

  public func deleteAll(_ query: any Query) async throws {
    try await delete(query, .deleteAll)
  }

  private func delete(_ query: any Query, _ operation: DataSourceOperation) async throws {
    guard let query = query as? any PredicateQuery else { return try await remove(query, operation) }
    let found = try SQLSelection(query, limit: query.limit)
    try await database.write { try tables.remove(found, $0) }
  }
}

/// Which elements a query is about, in SQL.
struct SQLSelection: Sendable {
  let condition: SQLCondition
  let order: String
  let limit: Int
  let offset: Int

  init(_ query: any PredicateQuery, limit: Int?) throws {
    guard query.offset >= 0, limit ?? 0 >= 0 else {
      throw DataSourceError(
        .illegalArgument, "offset \(query.offset) and limit \(limit ?? 0): neither may be negative")
    }
    condition = try query.predicate.sql()
    order = query.order.map { $0.field.sql() + ($0.isDescending ? " DESC" : "") + ", " }.joined()
    self.limit = limit ?? .max
    offset = query.offset
  }

  var arguments: StatementArguments { StatementArguments(condition.arguments + [limit, offset].map(\.databaseValue)) }
}

extension SQLiteTables {
  func values(_ selection: SQLSelection, _ database: Database) throws -> [String] {
    try String.fetchAll(database, sql: select("value", selection), arguments: selection.arguments)
  }

  func remove(_ selection: SQLSelection, _ database: Database) throws {
    try database.execute(
      sql: "DELETE FROM \(element) WHERE (entry, position) IN (\(select("entry, position", selection)))",
      arguments: selection.arguments)
    try database.execute(
      sql: "DELETE FROM \(entry) WHERE NOT isList AND id NOT IN (SELECT entry FROM \(element))")
  }

  private func select(_ columns: String, _ selection: SQLSelection) -> String {
    """
    SELECT \(columns) FROM \(element) JOIN \(entry) ON id = entry WHERE \(selection.condition.sql)
    ORDER BY \(selection.order)key, position LIMIT ? OFFSET ?
    """
  }
}
