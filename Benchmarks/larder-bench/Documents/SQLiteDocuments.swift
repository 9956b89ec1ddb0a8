#if SQLiteDataSource
  import GRDBSQLite

  /// Documents in a table of an SQLite database in memory, and a prepared query of them.
  @safe
  final class SQLiteDocuments {
    private var connection: OpaquePointer?
    private var query: OpaquePointer?

    /// - Parameter sql: A query of the table `documents` with the column `text`.
    init(_ texts: [[UInt8]], _ sql: String) throws {
      try unsafe check(sqlite3_open(":memory:", &connection))
      try execute("CREATE TABLE documents (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
      try execute("BEGIN")
      var insertion: OpaquePointer?
      defer { unsafe sqlite3_finalize(insertion) }
      try unsafe check(sqlite3_prepare_v2(connection, "INSERT INTO documents (text) VALUES (?)", -1, &insertion, nil))
      for text in texts {
        try unsafe text.withUnsafeBytes { bytes in
          let start = unsafe bytes.bindMemory(to: CChar.self).baseAddress
          try unsafe check(sqlite3_bind_text(insertion, 1, start, CInt(bytes.count), nil))
          try unsafe check(sqlite3_step(insertion), is: SQLITE_DONE)
          try unsafe check(sqlite3_reset(insertion))
        }
      }
      try execute("COMMIT")
      try unsafe check(sqlite3_prepare_v2(connection, sql, -1, &query, nil))
    }

    deinit {
      unsafe sqlite3_finalize(query)
      unsafe sqlite3_close(connection)
    }

    static var version: String { unsafe String(cString: sqlite3_libversion()) }

    /// Performs the query and returns the number of rows.
    func run() -> Int {
      var count = 0
      while unsafe sqlite3_step(query) == SQLITE_ROW { count += 1 }
      unsafe sqlite3_reset(query)
      return count
    }

    /// Performs the query and returns the first column of all rows as text.
    func firstColumn() -> [String] {
      var texts: [String] = []
      while unsafe sqlite3_step(query) == SQLITE_ROW {
        if let text = unsafe sqlite3_column_text(query, 0) { texts.append(unsafe String(cString: text)) }
      }
      unsafe sqlite3_reset(query)
      return texts
    }

    private func execute(_ sql: String) throws { try unsafe check(sqlite3_exec(connection, sql, nil, nil, nil)) }

    private func check(_ status: CInt, is expected: CInt = SQLITE_OK) throws {
      guard status == expected else {
        throw unsafe BenchError("SQLite fails: \(String(cString: sqlite3_errmsg(connection)))")
      }
    }
  }
#endif
