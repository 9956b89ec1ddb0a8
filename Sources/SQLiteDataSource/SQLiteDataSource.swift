import DataSources
import Documents
import Foundation
import GRDB

/// A key-value source over a database.
///
/// The database stores entities, as JSON; callers get and put values of `T`. Two functions convert between them. The
/// source answers every query as all other key-value sources do. A `SelectorQuery` is about the JSON of the entities:
///
/// ```swift
/// let cheap = SelectorQuery(.field("price", .less(20)), sort: ["price"], limit: 10)
/// let found = try await books.getAll(cheap)
/// ```
///
/// A call for keys is O(log n) per key; a call for a page also counts the entries before the page. A selector examines
/// every value, unless it needs the values of an indexed field only: those that equal something, are in a range or
/// begin with a prefix. What SQL can't say exactly, it selects generously, and the selector is evaluated on these
/// documents. Calls throw `DataSourceError.failed` if the database reports an error, and `.dataSerialization` for a value
/// that can't be encoded as JSON or that isn't an `Entity`.
public struct SQLiteDataSource<Entity: Codable & Sendable, T: Sendable>: KeyValueDataSource {
  let database: SQLiteDatabase
  let tables: SQLiteTables
  private let toDomain: @Sendable (Entity) throws -> T
  private let toEntity: @Sendable (T) throws -> Entity
  private let damaged: DamagedEntries

  /// Creates the store's tables if they don't exist, and blocks for as long as the database takes.
  /// - Parameters:
  ///   - store: Stores with different names share nothing but the file.
  ///   - indexes: Fields of entities to index; existing indexes stay. `author.name` is a nested field, and `_id` needs
  ///     no index.
  ///   - damaged: What calls for several entries do about values that aren't an `Entity`.
  ///   - toDomain: Converts an entity to a value.
  ///   - toEntity: Converts a value to an entity.
  /// - Throws: `DataSourceError.illegalArgument` for a field that can't be indexed, because its name has a quote, a
  ///   slash, a backslash or a control character, or because it has more than 16 names.
  public init(
    _ database: SQLiteDatabase, store: String, indexes: [FieldPath] = [], damaged: DamagedEntries = .fail,
    toDomain: @escaping @Sendable (Entity) throws -> T,
    toEntity: @escaping @Sendable (T) throws -> Entity
  ) throws {
    let fields = try indexes.map { path in
      guard let field = SQLField(path) else {
        throw DataSourceError(.illegalArgument, "the field \(path.description.debugDescription) can't be indexed")
      }
      return field
    }
    self.database = database
    tables = try database.tables(of: store, indexes: fields)
    self.toDomain = toDomain
    self.toEntity = toEntity
    self.damaged = damaged
  }

  // MARK: - Entries

  public func entry(of key: String) async throws -> StoredValue<T>? {
    let key = try checked(key)
    return try await database.read { try tables.rows(of: key, $0) }.map { try domain(entities($0)) }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    let keys = try checked(keys)
    let rows = try await database.read { database in try keys.map { try tables.rows(of: $0, database) } }
    return try reading { report in
      try rows.map { rows in try rows.flatMap { rows in try report.reading(rows.key) { try domain(entities(rows)) } } }
    }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    let range = try checked(range)
    let rows = try await database.read { try tables.rows(in: range, $0) }
    return try reading { report in
      try rows.compactMap { rows in
        try report.reading(rows.key) { try entry(rows) }
      }
    }
  }

  /// Runs a body that decodes entries, and reports the damaged ones that it finds.
  private func reading<R>(_ body: (inout DamageReport) throws -> R) rethrows -> R {
    var report = DamageReport(damaged)
    let result = try body(&report)
    report.send()
    return result
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws {
    let rows = try checked(entries).map { try self.rows(of: $0.value, $0.key, lifetime: nil) }
    try await database.write { database in
      let revision = try tables.beginWrite(database)
      for row in rows { try tables.store(row, revision, database) }
    }
  }

  public func remove(_ keys: [String]) async throws {
    let keys = try checked(keys)
    try await database.write { database in for key in keys { try tables.remove(key, database) } }
  }

  public func removeAll() async throws {
    try await database.write { try tables.removeAll($0) }
  }

  // MARK: - Documents

  public func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>] {
    guard !isJSONText else {
      let rows = try await database.read { try tables.rows(in: .all, $0) }
      let entries = try rows.map { KeyValueEntry(key: $0.key, value: try entities($0)) }.find(query)
      return try entries.map { KeyValueEntry(key: $0.key, value: try domain($0.value)) }
    }
    let selection = try SQLSelection(query)
    let documents = try await database.read { try tables.documents(selection, $0) }
    return try reading { report in
      try documents.compactMap { document in
        let key = document.id!
        return try report.reading(key) {
          KeyValueEntry(key: key, value: .single(try toDomain(entity(Data(document.text)))))
        }
      }
    }
  }

  /// Deletes the single values that match a selector, in one step.
  /// - Returns: The number of values that were deleted.
  /// - Throws: `DataSourceError.illegalArgument` if the selector exceeds a limit or needs a text index;
  ///   `.queryNotSupported` if the entities are bytes or texts.
  @discardableResult
  public func delete(where selector: Selector) async throws -> Int {
    let query = SelectorQuery(selector)
    guard !isJSONText else { throw query.notSupported(.delete, self) }
    do {
      let selection = try SQLSelection(query.query)
      return try await database.write { database in
        let documents = try tables.documents(selection, database)
        for document in documents { try tables.remove(document.id!, database) }
        return documents.count
      }
    } catch let error as SelectorError {
      throw DataSourceError(.illegalArgument, "\(error)")
    }
  }

  /// Whether entities are JSON text themselves, as in all sources, so that documents are in them. Stored as JSON, they
  /// are strings or arrays.
  private var isJSONText: Bool { Entity.self == String.self || Entity.self == Data.self || Entity.self == [UInt8].self }

  // MARK: - Values

  func entry(_ rows: EntryRows) throws -> KeyValueEntry<T> {
    KeyValueEntry(
      key: rows.key, value: try domain(entities(rows)), revision: rows.revision,
      expiresIn: rows.lifetime.map { .milliseconds($0) })
  }

  /// - Parameter lifetime: The milliseconds until the entry expires; nil for an entry that doesn't expire.
  func rows(of value: StoredValue<T>, _ key: String, lifetime: Int64?) throws -> EntryRows {
    EntryRows(key: key, isList: value.list != nil, lifetime: lifetime, values: try value.elements.map(json))
  }

  private func entity(_ json: Data) throws -> Entity {
    do { return try JSONCoding.decoder(of: Entity.self).decode(Entity.self, from: json) } catch {
      throw DataSourceError(.dataSerialization, "a stored value is not a \(Entity.self): \(error)")
    }
  }

  private func entities(_ rows: EntryRows) throws -> StoredValue<Entity> {
    let entities = try rows.values.map { try entity(Data($0.utf8)) }
    if rows.isList { return .list(entities) }
    guard entities.count == 1 else { throw DataSourceError(.failed, "a single value has \(entities.count) rows") }
    return .single(entities[0])
  }

  private func domain(_ entities: StoredValue<Entity>) throws -> StoredValue<T> {
    switch entities {
    case .single(let entity): .single(try toDomain(entity))
    case .list(let entities): .list(try entities.map(toDomain))
    }
  }

  private func json(_ value: T) throws -> String {
    let entity = try toEntity(value)
    do {
      return String(decoding: try JSONCoding.encoder(of: Entity.self).encode(entity), as: UTF8.self)
    } catch {
      throw DataSourceError(.dataSerialization, "the value can't be encoded as JSON: \(error)")
    }
  }
}

extension SQLiteDataSource where Entity == T {
  /// Creates a source that stores values without converting them.
  public init(
    _ database: SQLiteDatabase, store: String, of type: T.Type = T.self, indexes: [FieldPath] = [],
    damaged: DamagedEntries = .fail
  ) throws {
    try self.init(
      database, store: store, indexes: indexes, damaged: damaged, toDomain: { $0 }, toEntity: { $0 })
  }
}
