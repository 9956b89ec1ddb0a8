import DataSources
import Foundation
import GRDB

/// A key-value source over a database, which also answers queries about what its values are like.
///
/// What is kept are entities, in JSON; what is got and put are values of `T`, which two functions map to entities and back. Every key-value
/// query is answered as by all other sources, and a `PredicateQuery` by `get` (the first match), `getAll` and `delete`:
///
/// ```swift
/// let cheap = try await books.getAll(EntityQuery { $0.price < 20 && $0.title.hasPrefix("The") })
/// ```
///
/// Calls for keys are O(log n) a key, those for pages also count the entries ahead of the page. A predicate looks at every value, unless it
/// compares a field that has an index. Throws `DataSourceError.failed` when the database refuses, and `.dataSerialization` for a value that
/// has no JSON or is of another type than `Entity`.
public struct SQLiteDataSource<Entity: Codable & Sendable, T: Sendable>: KeyValueDataSource {
  let database: SQLiteDatabase
  let tables: SQLiteTables
  private let toDomain: @Sendable (Entity) throws -> T
  private let toEntity: @Sendable (T) throws -> Entity

  /// Blocks for as long as the database takes to make the store's tables, when they aren't there.
  /// - Parameters:
  ///   - store: stores of different names share nothing but the file.
  ///   - indexes: fields of entities that have an index; an index that was made once is kept. A field inside another is `author.name`.
  ///   - toDomain: what an entity is outside.
  ///   - toEntity: what is kept of a value.
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

  func domain(_ json: String) throws -> T {
    let entity: Entity
    do {
      entity = try JSONDecoder().decode(Entity.self, from: Data(json.utf8))
    } catch {
      throw DataSourceError(.dataSerialization, "what is stored is no \(Entity.self): \(error)")
    }
    return try toDomain(entity)
  }

  private func value(_ rows: EntryRows) throws -> StoredValue<T> {
    if rows.isList { return .list(try rows.values.map(domain)) }
    guard rows.values.count == 1 else { throw DataSourceError(.failed, "an entry of \(rows.values.count) values") }
    return .single(try domain(rows.values[0]))
  }

  private func json(_ value: T) throws -> String {
    let entity = try toEntity(value)
    do {
      return String(decoding: try JSONEncoder().encode(entity), as: UTF8.self)
    } catch {
      throw DataSourceError(.dataSerialization, "a value has no JSON: \(error)")
    }
  }
}

extension SQLiteDataSource where Entity == T {
  /// A source whose values are kept as they are.
  public init(_ database: SQLiteDatabase, store: String, of type: T.Type = T.self, indexes: [String] = []) throws {
    try self.init(database, store: store, indexes: indexes, toDomain: { $0 }, toEntity: { $0 })
  }
}
