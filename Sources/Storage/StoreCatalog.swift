import Platform
import Synchronization

/// Every store of a server, by name: those in memory, and those that the data directory remembers.
///
/// The lock guards only the table: it is never held while a store's own lock is, nor in a call to the system, so opening a store never
/// waits for work in another. Making and dropping stores takes turns.
package final class StoreCatalog: Sendable {
  package static let defaultLimit = 1_024

  private let limit: Atomic<Int>
  private let data: DataDirectory?
  private let stores = Lock<[StoreName: Store]>([:])
  /// Held by whoever makes or drops a store.
  private let change = Lock(())

  /// - Parameter data: where stores are kept that survive; nil for a server that has none.
  package init(limit: Int = StoreCatalog.defaultLimit, data: DataDirectory? = nil) {
    self.limit = Atomic(limit)
    self.data = data
  }

  /// Changes the most stores there may be at a time. Those that are there stay.
  package func setLimit(_ limit: Int) { self.limit.store(limit, ordering: .relaxed) }

  /// Opens every store that the data directory remembers.
  /// - Parameters:
  ///   - tell: called with what is worth telling of each.
  ///   - progress: called when the opening of a store begins, and many times a second as it goes on.
  package func openAll(
    _ tell: (StoreName, StoreOpening) -> Void, progress: (OpeningProgress) -> Void = { _ in }
  ) throws {
    guard let data else { return }
    let descriptions = try data.stores()
    for (index, description) in descriptions.enumerated() {
      func tellPart(_ done: Int, _ total: Int) {
        progress(
          OpeningProgress(
            store: description.name, number: index + 1, storeCount: descriptions.count,
            percent: total > 0 ? min(100, done * 100 / total) : 0))
      }
      tellPart(0, 0)
      let (store, opening) = try Store.open(description, in: data, progress: tellPart)
      tell(description.name, opening)
      try adopt(store)
    }
  }

  /// Makes an empty store. Throws `storeExists` when the name is taken, even by the same engine, and `tooManyStores`.
  @discardableResult
  package func create(_ name: StoreName, _ specification: StoreSpecification) throws(StorageError) -> Store {
    try change.withLock { _ throws(StorageError) in
      try stores.withLock { (stores) throws(StorageError) in try check(name, stores) }
      let store = try make(name, specification)
      stores.withLock { $0[name] = store }
      return store
    }
  }

  /// Makes a store unless it is there already. Throws `storeExists` when it is there and of another kind.
  /// - Returns: whether it was made.
  @discardableResult
  package func ensure(_ name: StoreName, _ specification: StoreSpecification) throws(StorageError) -> Bool {
    guard let store = stores.withLock({ $0[name] }) else {
      try create(name, specification)
      return true
    }
    let hasDurability = specification.durability == nil || store.commitWriter?.durability == specification.durability
    let hasLimit = specification.limit == nil || store.limit == specification.limit
    guard store.engine == specification.engine, hasDurability, hasLimit else { throw .storeExists(name, store.engine) }
    return false
  }

  /// Makes those of the stores that are not there yet: all of them, or none.
  package func ensureAll(_ wanted: [(StoreName, StoreSpecification)]) throws(StorageError) {
    var made: [StoreName] = []
    do throws(StorageError) {
      for (name, specification) in wanted where try ensure(name, specification) { made.append(name) }
    } catch {
      for name in made { try? drop(name) }
      throw error
    }
  }

  private func make(_ name: StoreName, _ specification: StoreSpecification) throws(StorageError) -> Store {
    guard specification.engine.isDurable else {
      return Store(name: name, engine: specification.engine, limit: specification.limit)
    }
    guard let data else { throw .noDataDirectory(specification.engine) }
    let description = StoreDescription(
      name: name, engine: specification.engine, durability: specification.durability ?? .always)
    do {
      try data.create(description)
      do {
        return try Store.open(description, in: data).store
      } catch {
        // Else nobody could make it again nor drop it, and the next start might fail for it.
        try? data.drop(name)
        throw error
      }
    } catch {
      throw StorageError.unreadable("\(error)")
    }
  }

  private func check(_ name: StoreName, _ stores: [StoreName: Store]) throws(StorageError) {
    if let store = stores[name] { throw .storeExists(name, store.engine) }
    let limit = limit.load(ordering: .relaxed)
    guard stores.count < limit else { throw .tooManyStores(limit: limit) }
  }

  /// Takes in a store that was made elsewhere. Throws `storeExists` and `tooManyStores`.
  package func adopt(_ store: Store) throws(StorageError) {
    try stores.withLock { (stores) throws(StorageError) in
      try check(store.name, stores)
      stores[store.name] = store
    }
  }

  /// Closes every store that keeps files, after what was committed is written.
  package func close() {
    for store in list() { store.close() }
  }

  /// The store of that name. Throws `unknownStore`.
  package func open(_ name: StoreName) throws(StorageError) -> Store {
    guard let store = stores.withLock({ $0[name] }) else { throw .unknownStore(name) }
    return store
  }

  /// Takes the store out of the catalog and frees what it holds at once. Whoever still has it open finds it dropped.
  package func drop(_ name: StoreName) throws(StorageError) {
    try change.withLock { _ throws(StorageError) in
      guard let store = stores.withLock({ $0.removeValue(forKey: name) }) else { throw .unknownStore(name) }
      let waiters = store.access { map in
        defer { map.drop() }
        return map.takeChangeWaiters()
      }
      for waiter in waiters { waiter.storeHasChanged() }
      guard store.commitWriter != nil, let data else { return }
      store.close()
      do throws(DataDirectoryError) { try data.drop(name) } catch { throw .unreadable("\(error)") }
    }
  }

  /// Every store there is, by name.
  package func list() -> [Store] {
    stores.withLock { Array($0.values) }.sorted { $0.name < $1.name }
  }
}
