import DataSources
import Foundation
import GRDB

/// An entry as the tables have it: its values in JSON, of which a single value has one.
struct EntryRows: Sendable {
  let key: String
  let isList: Bool
  var values: [String]
}

extension SQLiteTables {
  func rows(of key: String, _ database: Database) throws -> EntryRows? {
    let entries = try database.cachedStatement(sql: "SELECT id, isList FROM \(entry) WHERE key = ?")
    guard let row = try Row.fetchOne(entries, arguments: [Data(key.utf8)]) else { return nil }
    let id: Int64 = row[0]
    let values = try database.cachedStatement(sql: "SELECT value FROM \(element) WHERE entry = ? ORDER BY position")
    return EntryRows(key: key, isList: row[1], values: try String.fetchAll(values, arguments: [id]))
  }

  func rows(in range: EntryRange, _ database: Database) throws -> [EntryRows] {
    let (part, arguments): (String, StatementArguments) =
      switch range {
      case .all: ("", [])
      case .offset(let offset, let limit): ("ORDER BY key LIMIT ? OFFSET ?", [limit, offset])
      case .after(let key, let limit):
        ("WHERE key > ? OR ? ORDER BY key LIMIT ?", [Data((key ?? "").utf8), key == nil, limit])
      }
    let statement = try database.cachedStatement(
      sql: """
        SELECT e.key, e.isList, v.value FROM (SELECT * FROM \(entry) \(part)) e
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
      throw DataSourceError(.failed, "an entry that got no row")
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
}
