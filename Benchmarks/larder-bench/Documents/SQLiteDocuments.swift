#if AllProducts || SQLiteDataSource
  import GRDBSQLite

  /// A table of documents in an SQLite database in memory, with the columns `id` and `text`. Used by one thread.
  @safe
  final class SQLiteDocuments: DocumentTable {
    let contender = DocumentsBench.sqlite
    private var connection: OpaquePointer?

    init() throws {
      let flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX
      try unsafe check(sqlite3_open_v2(":memory:", &connection, flags, nil))
      try execute("CREATE TABLE documents (id INTEGER PRIMARY KEY, text TEXT NOT NULL)")
    }

    /// Creates a table of documents whose ids are their positions.
    convenience init(_ texts: [[UInt8]]) throws {
      try self.init()
      try put(texts.enumerated().map { NumberedDocument($0.offset, $0.element) })
    }

    deinit { unsafe sqlite3_close(connection) }

    static var version: String { unsafe String(cString: sqlite3_libversion()) }

    /// An expression for a field of a document. Queries use an index only if they have its expressions.
    static func expression(_ field: String) -> String { "json_extract(text, '$.\(field)')" }

    func put(_ documents: [NumberedDocument]) throws {
      let insertion = try prepare("INSERT OR REPLACE INTO documents (id, text) VALUES (?, ?)")
      try execute("BEGIN")
      for document in documents { try check(insertion.insert(document), is: SQLITE_DONE) }
      try execute("COMMIT")
    }

    func buildIndex(_ fields: [String]) throws {
      let expressions = fields.map(Self.expression).joined(separator: ", ")
      try execute("CREATE INDEX \(indexName(fields)) ON documents (\(expressions))")
    }

    func deleteIndex(_ fields: [String]) throws { try execute("DROP INDEX \(indexName(fields))") }

    private func indexName(_ fields: [String]) -> String { "index_\(fields.joined(separator: "_"))" }

    func page(ofIndex fields: [String], from offset: Int, count: Int) throws -> [String] {
      let order = (fields.map(Self.expression) + ["id"]).joined(separator: ", ")
      return try prepare(
        """
        SELECT text FROM documents INDEXED BY \(indexName(fields)) ORDER BY \(order) LIMIT \(count) OFFSET \(offset)
        """
      ).firstColumn()
    }

    /// Prepares a statement, which keeps the table.
    func prepare(_ sql: String) throws -> SQLiteStatement {
      var statement: OpaquePointer?
      try unsafe check(sqlite3_prepare_v2(connection, sql, -1, &statement, nil))
      return unsafe SQLiteStatement(statement, of: self)
    }

    private func execute(_ sql: String) throws { try unsafe check(sqlite3_exec(connection, sql, nil, nil, nil)) }

    private func check(_ status: CInt, is expected: CInt = SQLITE_OK) throws {
      guard status == expected else {
        throw unsafe BenchError("SQLite fails: \(String(cString: sqlite3_errmsg(connection)))")
      }
    }
  }

  /// A prepared statement. Used by one thread.
  @safe
  final class SQLiteStatement {
    private let statement: OpaquePointer?
    /// Keeps the connection.
    private let table: SQLiteDocuments

    init(_ statement: OpaquePointer?, of table: SQLiteDocuments) {
      unsafe self.statement = statement
      self.table = table
    }

    deinit { unsafe sqlite3_finalize(statement) }

    /// Performs a query, reads the first column of all rows, and returns their number.
    func run() -> Int {
      var count = 0
      while unsafe sqlite3_step(statement) == SQLITE_ROW {
        unsafe keep(sqlite3_column_text(statement, 0))
        count += 1
      }
      unsafe sqlite3_reset(statement)
      return count
    }

    /// Performs a query and returns the first column of all rows as text.
    func firstColumn() -> [String] {
      var texts: [String] = []
      while unsafe sqlite3_step(statement) == SQLITE_ROW {
        if let text = unsafe sqlite3_column_text(statement, 0) { texts.append(unsafe String(cString: text)) }
      }
      unsafe sqlite3_reset(statement)
      return texts
    }

    /// Performs an insertion of an id and a text.
    /// - Returns: The status of SQLite.
    func insert(_ document: NumberedDocument) -> CInt {
      unsafe document.text.withUnsafeBytes { bytes in
        let start = unsafe bytes.bindMemory(to: CChar.self).baseAddress
        unsafe sqlite3_bind_int64(statement, 1, Int64(document.number))
        // Without a destructor, SQLite reads the text where it is until the statement ends.
        unsafe sqlite3_bind_text(statement, 2, start, CInt(bytes.count), nil)
        let status = unsafe sqlite3_step(statement)
        unsafe sqlite3_reset(statement)
        return status
      }
    }
  }
#endif
