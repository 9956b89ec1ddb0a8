import DataSources
import Foundation
import GRDB

/// The tables of one store. `entry` has a row a key, `element` one a value: one for a single value's entry, any number for a list's.
struct SQLiteTables: Sendable {
  let entry: String
  let element: String

  /// Finds or makes them, and the indexes that are missing. A store is named by bytes: names differ in case and form of writing.
  init(of store: String, indexes: [EntityField], _ database: Database) throws {
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
      // SQLite ignores the case of an index's name, and no field's.
      let index =
        "\(element)_" + field.path.joined(separator: "\0").utf8.map { String($0, radix: 16) }.joined(separator: "_")
      try database.execute(sql: "CREATE INDEX IF NOT EXISTS \(index) ON \(element) (\(field.sql()))")
    }
  }
}
