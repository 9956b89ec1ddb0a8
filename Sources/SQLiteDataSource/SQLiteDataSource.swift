import DataSources
import Foundation
import GRDB

/// A key-value source over a database, which also answers queries about the content of its values.
///
/// The database stores entities, as JSON; callers get and put values of `T`. Two functions convert between them. The
/// source answers every key-value query as all other key-value sources do, and a `PredicateQuery` with `get` (the first
/// match), `getAll` and `delete`:
///
/// ```swift
/// let cheap = try await books.getAll(EntityQuery { $0.price < 20 && $0.title.hasPrefix("The") })
/// ```
///
/// A call for keys is O(log n) per key; a call for a page also counts the entries before the page. A predicate examines
/// every value, unless it compares a field that has an index. Calls throw `DataSourceError.failed` if the database
/// reports an error, and `.dataSerialization` for a value that can't be encoded as JSON or that isn't an `Entity`.
public struct SQLiteDataSource<Entity: Codable & Sendable, T: Sendable>: KeyValueDataSource {
  private let database: SQLiteDatabase
  private let tables: SQLiteTables
  private let toDomain: @Sendable (Entity) throws -> T
  private let toEntity: @Sendable (T) throws -> Entity

  /// Creates the store's tables if they don't exist, and blocks for as long as the database takes.
  /// - Parameters:
  ///   - store: Stores with different names share nothing but the file.
  ///   - indexes: Fields of entities to index; existing indexes stay. `author.name` is a nested field.
  ///   - toDomain: Converts an entity to a value.
  ///   - toEntity: Converts a value to an entity.
  public init(
    _ database: SQLiteDatabase, store: String, indexes: [String] = [],
    toDomain: @escaping @Sendable (Entity) throws -> T,
    toEntity: @escaping @Sendable (T) throws -> Entity
  ) throws {
    self.database = database
    tables = try database.tables(of: store, indexes: indexes.map(EntityField.init(path:)))
    self.toDomain = toDomain
    self.toEntity = toEntity
  }

  // MARK: - Entries

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    let rows = try await database.read { database in try keys.map { try tables.rows(of: $0, database) } }
    return try rows.map { try $0.map(value) }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    let rows = try await database.read { try tables.rows(in: range, $0) }
    return try rows.map { KeyValueEntry(key: $0.key, value: try value($0)) }
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    let rows = try entries.map { entry in
      EntryRows(key: entry.key, isList: entry.value.list != nil, values: try entry.value.elements.map(json))
    }
    try await database.write { database in for row in rows { try tables.store(row, database) } }
  }

  public func remove(_ keys: [String]) async throws {
    try await database.write { database in for key in keys { try tables.remove(key, database) } }
  }

  public func removeAll() async throws {
    try await database.write { try tables.removeAll($0) }
  }

  // MARK: - Queries

  public func get(_ query: any Query) async throws -> T {
    guard let query = query as? any PredicateQuery else { return try await keyValueGet(query) }
    let selection = try SQLSelection(query, limit: min(query.limit ?? 1, 1))
    guard let json = try await database.read({ try tables.values(selection, $0) }).first else {
      throw DataSourceError(.notFound, "no value satisfies the predicate")
    }
    return try domain(json)
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    guard let query = query as? any PredicateQuery else { return try await keyValueGetAll(query) }
    let selection = try SQLSelection(query, limit: query.limit)
    return try await database.read { try tables.values(selection, $0) }.map(domain)
  }

  /// Deletes what the query addresses. A predicate deletes the single values, and the elements of lists, that satisfy
  /// it. A list without elements remains as an empty list.
  public func delete(_ query: any Query) async throws {
    try await delete(query, .delete)
  }

  public func deleteAll(_ query: any Query) async throws {
    try await delete(query, .deleteAll)
  }

  private func delete(_ query: any Query, _ operation: DataSourceOperation) async throws {
    guard let query = query as? any PredicateQuery else { return try await keyValueDelete(query, operation) }
    let selection = try SQLSelection(query, limit: query.limit)
    try await database.write { try tables.removeValues(selection, $0) }
  }

  // MARK: - Values

  private func domain(_ json: String) throws -> T {
    let entity: Entity
    do {
      entity = try JSONDecoder().decode(Entity.self, from: Data(json.utf8))
    } catch {
      throw DataSourceError(.dataSerialization, "a stored value is not a \(Entity.self): \(error)")
    }
    return try toDomain(entity)
  }

  private func value(_ rows: EntryRows) throws -> StoredValue<T> {
    if rows.isList { return .list(try rows.values.map(domain)) }
    guard rows.values.count == 1 else { throw DataSourceError(.failed, "a single value has \(rows.values.count) rows") }
    return .single(try domain(rows.values[0]))
  }

  private func json(_ value: T) throws -> String {
    let entity = try toEntity(value)
    do {
      return String(decoding: try JSONEncoder().encode(entity), as: UTF8.self)
    } catch {
      throw DataSourceError(.dataSerialization, "the value can't be encoded as JSON: \(error)")
    }
  }
}

extension SQLiteDataSource where Entity == T {
  /// Creates a source that stores values without converting them.
  public init(_ database: SQLiteDatabase, store: String, of type: T.Type = T.self, indexes: [String] = []) throws {
    try self.init(database, store: store, indexes: indexes, toDomain: { $0 }, toEntity: { $0 })
  }
}
