import DataSources
import Documents
import Foundation
import GRDB

/// The two tables of a store. One has a row per key, the other a row per value: one for a single value, any number for
/// a list.
struct SQLiteTables: Sendable {
  private let entry: String
  private let element: String

  /// Finds or creates the tables, and creates missing indexes. Stores are named by bytes: names differ if their case or
  /// Unicode form differs.
  init(of store: String, indexes: [SQLField], _ database: Database) throws {
    let name = Data(store.utf8)
    try database.execute(sql: "INSERT INTO store (name) VALUES (?) ON CONFLICT DO NOTHING", arguments: [name])
    let id = try Int64.fetchOne(database, sql: "SELECT id FROM store WHERE name = ?", arguments: [name]) ?? 0
    entry = "entry_\(id)"
    element = "element_\(id)"
    try database.execute(
      sql: """
        CREATE TABLE IF NOT EXISTS \(entry) (
          id INTEGER PRIMARY KEY, key BLOB NOT NULL UNIQUE, isList INTEGER NOT NULL)
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
    let (entry, element) = ("entry_\(id)", "element_\(id)")
    let indexNames = indexes.flatMap { $0.indexes(on: element) }.map { "\(element)_\($0.name)" }
    for name in [entry, element] + indexNames {
      let count = try Int.fetchOne(
        database, sql: "SELECT count(*) FROM sqlite_schema WHERE name = ?", arguments: [name])
      guard count == 1 else { return nil }
    }
    (self.entry, self.element) = (entry, element)
  }

  // MARK: - Entries

  func rows(of key: String, _ database: Database) throws -> EntryRows? {
    let entries = try database.cachedStatement(sql: "SELECT id, isList FROM \(entry) WHERE key = ?")
    guard let row = try Row.fetchOne(entries, arguments: [Data(key.utf8)]) else { return nil }
    let id: Int64 = row[0]
    let values = try database.cachedStatement(sql: "SELECT value FROM \(element) WHERE entry = ? ORDER BY position")
    return EntryRows(key: key, isList: row[1], values: try String.fetchAll(values, arguments: [id]))
  }

  func rows(in range: EntryRange, _ database: Database) throws -> [EntryRows] {
    let (clauses, arguments): (String, StatementArguments) =
      switch range {
      case .all: ("", [])
      case .offset(let offset, let limit): ("ORDER BY key LIMIT ? OFFSET ?", [limit, offset])
      case .after(let key, let limit):
        ("WHERE key > ? OR ? ORDER BY key LIMIT ?", [Data((key ?? "").utf8), key == nil, limit])
      }
    let statement = try database.cachedStatement(
      sql: """
        SELECT e.key, e.isList, v.value FROM (SELECT * FROM \(entry) \(clauses)) e
        LEFT JOIN \(element) v ON v.entry = e.id ORDER BY e.key, v.position
        """)
    var found: [EntryRows] = []
    var last: Data?
    let rows = try Row.fetchCursor(statement, arguments: arguments)
    while let row = try rows.next() {
      let (key, isList, value): (Data, Bool, String?) = (row[0], row[1], row[2])
      if key != last {
        found.append(EntryRows(key: String(decoding: key, as: UTF8.self), isList: isList, values: []))
        last = key
      }
      if let value { found[found.count - 1].values.append(value) }
    }
    return found
  }

  func store(_ rows: EntryRows, _ database: Database) throws {
    let upsert = try database.cachedStatement(
      sql: """
        INSERT INTO \(entry) (key, isList) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET isList = excluded.isList RETURNING id
        """)
    guard let id = try Int64.fetchOne(upsert, arguments: [Data(rows.key.utf8), rows.isList]) else {
      throw DataSourceError(.failed, "SQLite returned no row for an entry")
    }
    try database.cachedStatement(sql: "DELETE FROM \(element) WHERE entry = ?").execute(arguments: [id])
    let insert = try database.cachedStatement(
      sql: "INSERT INTO \(element) (entry, position, value) VALUES (?, ?, ?)")
    for (position, value) in rows.values.enumerated() { try insert.execute(arguments: [id, position, value]) }
  }

  func remove(_ key: String, _ database: Database) throws {
    try database.cachedStatement(sql: "DELETE FROM \(entry) WHERE key = ?").execute(arguments: [Data(key.utf8)])
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
    let rows = try Row.fetchCursor(database, sql: selection.sql(entry, element), arguments: selection.arguments)
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
  fileprivate(set) var values: [String]
}
