/// Documents in memory with their indexes: a store of Larder, or a table of SQLite with indexes of expressions.
protocol DocumentTable: AnyObject {
  var contender: String { get }

  /// Puts documents one by one, in one transaction if there are transactions.
  func put(_ documents: [NumberedDocument]) throws

  /// Creates an index over fields. Returns once it is complete.
  func buildIndex(_ fields: [String]) throws

  func deleteIndex(_ fields: [String]) throws

  /// Returns the texts of documents in the order of an index.
  func page(ofIndex fields: [String], from offset: Int, count: Int) throws -> [String]
}

/// The tables that are compared.
enum DocumentTables {
  /// Returns an empty table of each contender, Larder's first.
  static func make() throws -> [any DocumentTable] {
    #if AllProducts || SQLiteDataSource
      [try StoreTable(), try SQLiteDocuments()]
    #else
      [try StoreTable()]
    #endif
  }

  /// Checks that all tables have the same documents in the order of an index.
  static func check(_ tables: [any DocumentTable], _ fields: [String], count: Int) throws {
    for offset in [0, count / 2, max(0, count - DocumentsBench.page)] {
      let pages = try tables.map { try $0.page(ofIndex: fields, from: offset, count: DocumentsBench.page) }
      guard pages.allSatisfy({ $0 == pages[0] && $0.count == min(DocumentsBench.page, count) }) else {
        throw BenchError("SQLite has another order of \(fields.joined(separator: ", ")) than Larder")
      }
    }
  }
}
