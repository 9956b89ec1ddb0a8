import DataSources
import Foundation
import GRDB

#if !AllProducts && !SQLiteDataSource
  #error("Enable the trait SQLiteDataSource: .package(…, traits: [\"SQLiteDataSource\"])")
#endif

/// An SQLite file with any number of stores. Each `SQLiteDataSource` sees one store.
///
/// It creates its tables itself and checks their version. Readers don't wait for writers (WAL), and when a write
/// returns, it is on the disk. Any number of processes can open the file.
///
/// SQLite works on threads of its own, and a call that waits blocks no thread that other tasks need. A task that is
/// cancelled while it waits throws `CancellationError`, and its write is undone.
public final class SQLiteDatabase: Sendable {
  private let pool: DatabasePool
  /// The turn of the writers of this process. SQLite would queue them, too, but on threads and until the end.
  private let writing = Turns(count: 1)

  /// Opens the database. Creates it, readable for its owner only, if it doesn't exist. Blocks for as long as the disk
  /// takes, and while a database that is new or has no such store waits for the writes of others.
  /// - Parameter lockTimeout: How long a write waits for those of other processes.
  /// - Throws: `DataSourceError.failed` if it can't be opened, belongs to another application, or was created by a
  ///   newer version of this library.
  public init(file: URL, lockTimeout: Duration = .seconds(10)) throws {
    var configuration = Configuration()
    // SQLite's own timeout ignores that the task is cancelled.
    let pause = Duration.milliseconds(2)
    configuration.busyMode = .callback { tryCount in
      guard !Task.isCancelled, pause * tryCount < lockTimeout else { return false }
      usleep(2_000)
      return true
    }
    configuration.label = "SQLiteDataSource"
    let descriptor = unsafe open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if descriptor >= 0 { close(descriptor) }
    do {
      pool = try DatabasePool(path: file.path, configuration: configuration)
      // With GRDB's default, a power failure could undo the last writes.
      try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
      // A database that is ready needs no write, for which it might have to wait.
      if try !pool.read({ try SQLiteSchema.isReady($0, file.path) }) {
        try pool.write { try SQLiteSchema.prepare($0, file.path) }
      }
    } catch let error as DatabaseError {
      throw DataSourceError(.failed, "can't open \(file.path): \(error.reason)")
    }
  }

  /// Runs a body in a transaction that sees one point in time and runs beside others.
  func read<R: Sendable>(_ body: @Sendable (Database) throws -> R) async throws -> R {
    do { return try await pool.read(body) } catch let error as DatabaseError { throw error.dataSourceError }
  }

  /// Runs a body in a transaction of its own. All of its writes are there when it returns, and none if it throws.
  func write<R: Sendable>(_ body: @Sendable (Database) throws -> R) async throws -> R {
    try await writing.take(1)
    defer { writing.giveBack(1) }
    do { return try await pool.write(body) } catch let error as DatabaseError {
      // A wait that ends because the task is cancelled is an error like any other to SQLite.
      if error.resultCode == .SQLITE_BUSY { try Task.checkCancellation() }
      throw error.dataSourceError
    }
  }

  /// Returns the tables of a store. Creates them if they don't exist.
  func tables(of store: String, indexes: [SQLField]) throws -> SQLiteTables {
    do {
      if let tables = try pool.read({ try SQLiteTables(existing: store, indexes: indexes, $0) }) { return tables }
      return try pool.write { try SQLiteTables(of: store, indexes: indexes, $0) }
    } catch let error as DatabaseError {
      throw error.dataSourceError
    }
  }
}

extension DatabaseError {
  /// The reason, without the statement and its values.
  fileprivate var reason: String { message ?? resultCode.description }

  fileprivate var dataSourceError: DataSourceError {
    guard resultCode == .SQLITE_BUSY else { return DataSourceError(.failed, "SQLite: \(reason)") }
    return DataSourceError(
      .failed, "SQLite: \(reason): another process is writing; end what hangs, or allow a longer lockTimeout")
  }
}

/// The tables that every database has, and their version.
private enum SQLiteSchema {
  /// `PRAGMA application_id`: the letters LRDS.
  private static let application = 0x4C52_4453
  /// `PRAGMA user_version`.
  private static let version = 2

  /// Creates the tables if they don't exist, and adds what an older version lacks.
  /// - Throws: As `isReady`.
  static func prepare(_ database: Database, _ path: String) throws {
    guard try !isReady(database, path) else { return }
    if try database.tableExists("store") { try addRevisions(database) } else { try create(database) }
  }

  /// Returns whether the tables exist; false for a database without anything, or of an older version.
  /// - Throws: `DataSourceError.failed` for a database of another application or of a newer version.
  static func isReady(_ database: Database, _ path: String) throws -> Bool {
    let application = try Int.fetchOne(database, sql: "PRAGMA application_id") ?? 0
    let version = try Int.fetchOne(database, sql: "PRAGMA user_version") ?? 0
    let isEmpty = try Int.fetchOne(database, sql: "SELECT count(*) FROM sqlite_schema") == 0
    switch (application, version) {
    case (Self.application, Self.version): return true
    case (Self.application, 1): return false
    case (Self.application, _):
      throw DataSourceError(
        .failed,
        "\(path) has version \(version), but this library supports version \(Self.version): use a newer library")
    case (0, 0) where isEmpty: return false
    default: throw DataSourceError(.failed, "\(path) is the database of another application: use another file")
    }
  }

  private static func create(_ database: Database) throws {
    try database.execute(
      sql: "CREATE TABLE store (id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, revision INTEGER NOT NULL DEFAULT 1)"
    )
    try database.execute(sql: "PRAGMA application_id = \(application)")
    try database.execute(sql: "PRAGMA user_version = \(version)")
  }

  /// Brings a database of version 1, whose entries had neither revisions nor times to live, up to version 2.
  private static func addRevisions(_ database: Database) throws {
    try database.execute(sql: "ALTER TABLE store ADD COLUMN revision INTEGER NOT NULL DEFAULT 1")
    for id in try Int64.fetchAll(database, sql: "SELECT id FROM store") {
      try database.execute(sql: "ALTER TABLE entry_\(id) ADD COLUMN revision INTEGER NOT NULL DEFAULT 1")
      try database.execute(sql: "ALTER TABLE entry_\(id) ADD COLUMN expiry INTEGER")
    }
    try database.execute(sql: "PRAGMA user_version = 2")
  }
}
