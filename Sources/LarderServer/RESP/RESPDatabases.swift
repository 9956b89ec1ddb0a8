import Basics
import Storage

/// The store behind the number of a database.
package struct RESPDatabase: Sendable {
  package let number: Int
  package let store: StoreName

  /// The largest number.
  package static let maxNumber = 65_535

  /// - Returns: Nil if the number is out of range.
  package init?(_ number: Int, _ store: StoreName) {
    guard (0...Self.maxNumber).contains(number) else { return nil }
    (self.number, self.store) = (number, store)
  }
}

/// The stores behind the numbers that clients select as databases.
struct RESPDatabases: Sendable {
  private let stores: [Int: StoreName]

  init(_ databases: [RESPDatabase] = []) {
    stores = Dictionary(databases.map { ($0.number, $0.store) }) { first, _ in first }
  }

  /// The number of databases, as clients count them.
  var count: Int { (stores.keys.max() ?? 0) + 1 }

  var numbers: [Int] { stores.isEmpty ? [0] : stores.keys.sorted() }

  /// Returns the store of a database; nil if there is none. If no database has been given a store, the only store is that
  /// of database 0.
  func store(_ database: Int, in catalog: StoreCatalog) -> StoreName? {
    if !stores.isEmpty { return stores[database] }
    let all = catalog.list()
    return database == 0 && all.count == 1 ? all[0].name : nil
  }
}
