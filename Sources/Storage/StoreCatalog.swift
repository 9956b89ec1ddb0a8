import Platform

/// Every store of a server, by name.
///
/// The lock guards only the table: it is never held while a store's own lock is, so opening a store never waits for
/// work in another.
package final class StoreCatalog: Sendable {
  package static let defaultLimit = 1_024

  /// The most stores there may be at a time.
  package let limit: Int
  private let stores = Lock<[StoreName: Store]>([:])

  package init(limit: Int = StoreCatalog.defaultLimit) {
    self.limit = limit
  }

  /// Makes an empty store. Throws `storeExists` when the name is taken, even by the same engine, and `tooManyStores`.
  @discardableResult
  package func create(_ name: StoreName, engine: EngineKind) throws(StorageError) -> Store {
    try stores.withLock { (stores) throws(StorageError) in
      if let store = stores[name] { throw .storeExists(name, store.engine) }
      guard stores.count < limit else { throw .tooManyStores(limit: limit) }
      let store = Store(name: name, engine: engine)
      stores[name] = store
      return store
    }
  }

  /// The store of that name. Throws `unknownStore`.
  package func open(_ name: StoreName) throws(StorageError) -> Store {
    guard let store = stores.withLock({ $0[name] }) else { throw .unknownStore(name) }
    return store
  }

  /// Takes the store out of the catalog and frees what it holds at once. Whoever still has it open finds it dropped.
  package func drop(_ name: StoreName) throws(StorageError) {
    guard let store = stores.withLock({ $0.removeValue(forKey: name) }) else { throw .unknownStore(name) }
    store.access { map in map.drop() }
  }

  /// Every store there is, by name.
  package func list() -> [Store] {
    stores.withLock { Array($0.values) }.sorted { $0.name < $1.name }
  }
}
