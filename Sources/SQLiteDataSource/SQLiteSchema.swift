import DataSources
import GRDB

/// The tables that a database has whatever its stores, and their version.
enum SQLiteSchema {
  /// `PRAGMA application_id`: the letters LRDS.
  private static let application = 0x4C52_4453
  /// `PRAGMA user_version`.
  private static let version = 1

  /// Makes what isn't there.
  /// - Throws: `DataSourceError.failed` for a database that isn't ours or is newer; nothing is changed in it.
  static func prepare(_ database: Database, _ path: String) throws {
    let application = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
    let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
    switch (application, version) {
    case (Self.application, Self.version): return
    case (Self.application, _):
      throw DataSourceError(
        .failed, "\(path) has version \(version) of the tables, and this library knows \(Self.version): use a newer one"
      )
    case (0, 0) where isEmpty: try make(database)
    default: throw DataSourceError(.failed, "\(path) is a database of another application: name another file")
    }
  }

  private static func make(_ database: Database) throws {
    try database.execute(sql: "CREATE TABLE store (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE)")
    try database.execute(sql: "PRAGMA application_id = \(application)")
    try database.execute(sql: "PRAGMA user_version = \(version)")
  }
}
