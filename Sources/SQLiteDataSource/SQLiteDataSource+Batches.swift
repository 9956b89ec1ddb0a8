import DataSources
import GRDB

extension SQLiteDataSource {
  public func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?] {
    let rows = try await database.read { database in try keys.map { try tables.rows(of: $0, database) } }
    return try rows.map { try $0.map(entry) }
  }

  public func keys(prefix: String) async throws -> [String] {
    try await database.read { try tables.keys(prefix: prefix, $0) }
  }

  public func count(prefix: String) async throws -> Int {
    try await database.read { try tables.count(prefix: prefix, $0) }
  }

  /// Removes the entries whose keys begin with a prefix, in one step.
  public func removeAll(prefix: String) async throws {
    try await database.write { try tables.removeAll(prefix: prefix, $0) }
  }

  public func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64? {
    // Encode the values before the transaction.
    let rows = try batch.operations.map { operation -> EntryRows? in
      guard case .put(let key, let value, _, let lifetime) = operation else { return nil }
      return try self.rows(of: value, key, lifetime: lifetime.map { Int64(clamping: $0.milliseconds) })
    }
    return try await database.write { database in
      let revision = try tables.beginWrite(database)
      for operation in batch.operations {
        let key = operation.key
        try operation.condition.check(key, hasRevision: tables.revision(of: key, database))
      }
      var hasWritten = false
      for (operation, rows) in zip(batch.operations, rows) {
        if let rows {
          try tables.store(rows, revision, database)
          hasWritten = true
        } else if case .delete(let key, _) = operation, try tables.remove(key, database) {
          hasWritten = true
        }
      }
      return hasWritten ? revision : nil
    }
  }
}
