import DataSources
import Foundation
import GRDB

/// A file of SQLite that holds any number of stores, each of which is what one `SQLiteDataSource` sees.
///
/// It makes its tables by itself and knows their version. Readers don't wait for writers (WAL), and a write is on the disk on return. Any
/// number of processes may have it open; a write waits up to ten seconds for another's.
public final class SQLiteDatabase: Sendable {
  private let pool: DatabasePool

  /// Opens the database, and makes it when it isn't there, readable for its owner only. Blocks for as long as the disk takes.
  /// - Throws: `DataSourceError.failed` when it can't be opened, isn't one of ours, or was made by a newer version of this library.
  public init(file: URL) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(10)
    configuration.label = "SQLiteDataSource"
    let descriptor = unsafe open(file.path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    if descriptor >= 0 { close(descriptor) }
    do {
      pool = try DatabasePool(path: file.path, configuration: configuration)
      // GRDB's choice would let a power cut take back the last writes.
      try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
      try pool.write { try SQLiteSchema.prepare($0, file.path) }
    } catch let error as DatabaseError {
      throw DataSourceError(.failed, "can't open \(file.path): \(error.reason)")
    }
  }

  /// Runs a body in a transaction that sees one moment, beside others.
  func read<R: Sendable>(_ body: @Sendable (Database) throws -> R) async throws -> R {
    do { return try await pool.read(body) } catch let error as DatabaseError { throw error.dataSourceError }
  }

  /// Runs a body in a transaction of its own: all that it writes is there when it returns, and nothing when it throws.
  func write<R: Sendable>(_ body: @Sendable (Database) throws -> R) async throws -> R {
    do { return try await pool.write(body) } catch let error as DatabaseError { throw error.dataSourceError }
  }

  /// The tables of a store, which are made when they aren't there.
  func tables(of store: String, indexes: [EntityField]) throws -> SQLiteTables {
    do {
      return try pool.write { try SQLiteTables(of: store, indexes: indexes, $0) }
    } catch let error as DatabaseError {
      throw error.dataSourceError
    }
  }
}

extension DatabaseError {
  /// What happened, without the statement and its values.
  fileprivate var reason: String { message ?? resultCode.description }

  fileprivate var dataSourceError: DataSourceError { DataSourceError(.failed, "SQLite: \(reason)") }
}
