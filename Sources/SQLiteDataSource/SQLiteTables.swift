import DataSources
import Documents
import Foundation
import GRDB

/// The two tables of a store. One has a row per key, the other a row per value: one for a single value, any number for
/// a list. A view has the rows of the keys that haven't expired.
struct SQLiteTables: Sendable {
  private let id: Int64
  private let entry: String
  private let live: String
  private let element: String

  /// Finds or creates the tables, and creates missing indexes. Stores are named by bytes: names differ if their case or
  /// Unicode form differs.
  init(of store: String, indexes: [SQLField], _ database: Database) throws {
    let name = Data(store.utf8)
    try database.execute(sql: "INSERT INTO store (name) VALUES (?) ON CONFLICT DO NOTHING", arguments: [name])
    id = try Int64.fetchOne(database, sql: "SELECT id FROM store WHERE name = ?", arguments: [name]) ?? 0
    entry = "entry_\(id)"
    live = "live_\(id)"
    element = "element_\(id)"
    // An entry expires in the millisecond `expiry` since 1970.
    try database.execute(
      sql: """
        CREATE TABLE IF NOT EXISTS \(entry) (
          id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, isList INTEGER NOT NULL, revision INTEGER NOT NULL DEFAULT 1,
          expiry INTEGER)
        """)
    try database.execute(
      sql: "CREATE INDEX IF NOT EXISTS \(entry)_expiry ON \(entry) (expiry) WHERE expiry IS NOT NULL")
    try database.execute(
      sql: """
        CREATE VIEW IF NOT EXISTS \(live) AS
        SELECT * FROM \(entry) WHERE expiry IS NULL OR expiry > \(Self.now)
        """)
    try database.execute(
      sql: """
        CREATE TABLE IF NOT EXISTS \(element) (
          entry INTEGER NOT NULL REFERENCES \(entry)(id) ON DELETE CASCADE, position INTEGER NOT NULL, value TEXT NOT NULL,
          PRIMARY KEY (entry, position)) WITHOUT ROWID
        """)
    for field in indexes {
      for index in field.indexes(on: element) {
        try database.execute(sql: "CREATE INDEX IF NOT EXISTS \(element)_\(index.name) ON \(index.definition)")
      }
    }
  }

  /// Finds the tables; nil if they or one of the indexes don't exist.
  init?(existing store: String, indexes: [SQLField], _ database: Database) throws {
    let ids = try Int64.fetchOne(database, sql: "SELECT id FROM store WHERE name = ?", arguments: [Data(store.utf8)])
    guard let id = ids else { return nil }
    let (entry, live, element) = ("entry_\(id)", "live_\(id)", "element_\(id)")
    let indexNames = indexes.flatMap { $0.indexes(on: element) }.map { "\(element)_\($0.name)" }
    for name in [entry, live, element] + indexNames {
      let count = try Int.fetchOne(
        database, sql: "SELECT count(*) FROM sqlite_schema WHERE name = ?", arguments: [name])
      guard count == 1 else { return nil }
    }
    (self.id, self.entry, self.live, self.element) = (id, entry, live, element)
  }

  /// The milliseconds since 1970, in SQL.
  private static let now = "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"

  // MARK: - Entries

  func rows(of key: String, _ database: Database) throws -> EntryRows? {
    let entries = try database.cachedStatement(
      sql: "SELECT id, isList, revision, expiry - \(Self.now) FROM \(live) WHERE key = ?")
    guard let row = try Row.fetchOne(entries, arguments: [Data(key.utf8)]) else { return nil }
    let id: Int64 = row[0]
    let values = try database.cachedStatement(sql: "SELECT value FROM \(element) WHERE entry = ? ORDER BY position")
    return EntryRows(
      key: key, isList: row[1], revision: row[2], lifetime: row[3], values: try String.fetchAll(values, arguments: [id])
    )
  }

  func revision(of key: String, _ database: Database) throws -> UInt64? {
    try UInt64.fetchOne(
      database.cachedStatement(sql: "SELECT revision FROM \(live) WHERE key = ?"), arguments: [Data(key.utf8)])
  }

  func keys(prefix: String, _ database: Database) throws -> [String] {
    let (condition, arguments) = Self.condition(onKey: prefix)
    let keys = try Data.fetchAll(
      database.cachedStatement(sql: "SELECT key FROM \(live) WHERE \(condition) ORDER BY key"), arguments: arguments)
    return keys.map { String(decoding: $0, as: UTF8.self) }
  }

  func count(prefix: String, _ database: Database) throws -> Int {
    let (condition, arguments) = Self.condition(onKey: prefix)
    return try Int.fetchOne(
      database.cachedStatement(sql: "SELECT count(*) FROM \(live) WHERE \(condition)"), arguments: arguments) ?? 0
  }

  /// Returns the condition that a key begins with a prefix, and its arguments.
  private static func condition(onKey prefix: String) -> (String, StatementArguments) {
    // No byte of UTF-8 is the greatest one: the prefix with a greater last byte follows all keys that begin with it.
    var end = Array(prefix.utf8)
    guard let last = end.popLast() else { return ("TRUE", []) }
    return ("key >= ? AND key < ?", [Data(prefix.utf8), Data(end + [last + 1])])
  }

  func rows(in range: EntryRange, _ database: Database) throws -> [EntryRows] {
    let (clauses, arguments): (String, StatementArguments) =
      switch range {
      case .all: ("", [])
      case .offset(let offset, let limit): ("ORDER BY key LIMIT ? OFFSET ?", [limit, offset])
      case .after(let key, let limit, let prefix):
        {
          let (condition, arguments) = Self.condition(onKey: prefix)
          // No key is empty.
          return ("WHERE key > ? AND \(condition) ORDER BY key LIMIT ?", [Data((key ?? "").utf8)] + arguments + [limit])
        }()
      }
    let statement = try database.cachedStatement(
      sql: """
        SELECT e.key, e.isList, v.value, e.revision, e.expiry - \(Self.now)
        FROM (SELECT * FROM \(live) \(clauses)) e
        LEFT JOIN \(element) v ON v.entry = e.id ORDER BY e.key, v.position
        """)
    var found: [EntryRows] = []
    var last: Data?
    let rows = try Row.fetchCursor(statement, arguments: arguments)
    while let row = try rows.next() {
      let (key, isList, value): (Data, Bool, String?) = (row[0], row[1], row[2])
      if key != last {
        let text = String(decoding: key, as: UTF8.self)
        found.append(EntryRows(key: text, isList: isList, revision: row[3], lifetime: row[4], values: []))
        last = key
      }
      if let value { found[found.count - 1].values.append(value) }
    }
    return found
  }

  /// Prepares for writes.
  /// - Returns: Their revision.
  func beginWrite(_ database: Database) throws -> UInt64 {
    try database.cachedStatement(sql: "DELETE FROM \(entry) WHERE expiry <= \(Self.now)").execute()
    let next = try database.cachedStatement(
      sql: "UPDATE store SET revision = revision + 1 WHERE id = ? RETURNING revision")
    guard let revision = try UInt64.fetchOne(next, arguments: [id]) else {
      throw DataSourceError(.failed, "SQLite returned no revision of the store")
    }
    return revision
  }

  /// Writes an entry. Its own revision is that of the write.
  func store(_ rows: EntryRows, _ revision: UInt64, _ database: Database) throws {
    let upsert = try database.cachedStatement(
      sql: """
        INSERT INTO \(entry) (key, isList, revision, expiry) VALUES (?, ?, ?, \(Self.now) + ?)
        ON CONFLICT (key) DO UPDATE
        SET isList = excluded.isList, revision = excluded.revision, expiry = excluded.expiry RETURNING id
        """)
    let arguments: StatementArguments = [Data(rows.key.utf8), rows.isList, revision, rows.lifetime]
    guard let id = try Int64.fetchOne(upsert, arguments: arguments) else {
      throw DataSourceError(.failed, "SQLite returned no row for an entry")
    }
    try database.cachedStatement(sql: "DELETE FROM \(element) WHERE entry = ?").execute(arguments: [id])
    let insert = try database.cachedStatement(
      sql: "INSERT INTO \(element) (entry, position, value) VALUES (?, ?, ?)")
    for (position, value) in rows.values.enumerated() { try insert.execute(arguments: [id, position, value]) }
  }

  /// - Returns: Whether there was an entry.
  @discardableResult
  func remove(_ key: String, _ database: Database) throws -> Bool {
    try database.cachedStatement(sql: "DELETE FROM \(entry) WHERE key = ?").execute(arguments: [Data(key.utf8)])
    return database.changesCount > 0
  }

  func removeAll(prefix: String, _ database: Database) throws {
    let (condition, arguments) = Self.condition(onKey: prefix)
    try database.execute(sql: "DELETE FROM \(entry) WHERE \(condition)", arguments: arguments)
  }

  func removeAll(_ database: Database) throws {
    try database.execute(sql: "DELETE FROM \(element)")
    try database.execute(sql: "DELETE FROM \(entry)")
  }

  // MARK: - Documents

  /// Returns the documents that a query finds, in its order.
  /// - Throws: `SelectorError` if the query can't be evaluated.
  func documents(_ selection: SQLSelection, _ database: Database) throws -> [Document] {
    var finder = try DocumentFinder(selection.rest, isOrdered: true)
    let rows = try Row.fetchCursor(database, sql: selection.sql(live, element), arguments: selection.arguments)
    while !finder.isFinished, let row = try rows.next() {
      let (key, value): (Data, String) = (row[0], row[1])
      finder.examine(Document(value, id: String(decoding: key, as: UTF8.self)))
    }
    return finder.result().documents
  }
}

/// An entry as it is in the tables, with its values as JSON; a single value is one of them.
struct EntryRows: Sendable {
  let key: String
  let isList: Bool
  /// The revision of an entry that was read.
  var revision: UInt64 = 0
  /// The milliseconds until the entry expires; nil for an entry that doesn't expire.
  var lifetime: Int64?
  fileprivate(set) var values: [String]
}
