// What happens to a damaged file:
//
// Opening refuses the store and says where the damage is. The catalog keeps its name and the reason (`openAll` in
// `StoreCatalog`), requests get `storeDamaged`, and the other stores are served. `larder check` reports all damage, and
// `--salvage` copies what is intact (`DataDirectoryCheck`).

import Documents
import Glibc
import Platform
import Synchronization

/// All stores of a server by name: those in memory, and those in the data directory.
///
/// The lock guards only the table. It is never held together with a store's own lock, nor during a system call, so
/// opening a store never waits for work in another. A second lock serializes creating and dropping stores and indexes.
package final class StoreCatalog: Sendable {
  package static let defaultLimit = 1_024
  /// The pause before a store that servers share, and that could not be opened, is tried again, in milliseconds.
  private static let openingPause: UInt64 = 5_000
  /// How long the move of a store to another server waits for its last commits, in milliseconds.
  private static let maxMoveTime: UInt64 = 5_000

  private let limit: Atomic<Int>
  private let engines: [EngineKind]
  private let data: DataDirectory?
  /// What all stores may use together.
  private let budgets: StoreBudgets
  private let stores = Lock<[StoreName: Store]>([:])
  /// The stores that can't be served. They keep their names until they are dropped.
  private let damagedStores = Lock<[StoreName: DamagedStore]>([:])
  /// The stores that other servers serve, or could.
  private let storesElsewhere = Lock<[StoreName: StoreElsewhere]>([:])
  /// Why the stores that servers share are not all known yet; nil if they are.
  private let missingSurvey: Lock<StoreElsewhere?>
  /// The stores that were stopped because a store that servers share has their name.
  private let stoppedStores = Lock<Set<StoreName>>([])
  /// When those of them that could not be opened here may be tried again, in milliseconds.
  private let openingTimes = Lock<[StoreName: UInt64]>([:])
  /// How many stores were moved to other servers.
  private let moveCount = Atomic(0)
  /// Held while a store or an index is created or dropped.
  private let changeLock = Lock(())

  private struct DamagedStore: Sendable {
    let reason: String
    /// The store's specification; nil if it can't be read.
    let specification: StoreSpecification?
  }

  /// - Parameters:
  ///   - engines: The engines that stores can have.
  ///   - data: Where durable stores are recorded; nil if the server has no data directory.
  ///   - budgets: What all stores may use together.
  ///   - sharesStores: Whether servers share stores, which `update` makes known.
  package init(
    limit: Int = StoreCatalog.defaultLimit, engines: [EngineKind] = .builtIn, data: DataDirectory? = nil,
    budgets: StoreBudgets = StoreBudgets(), sharesStores: Bool = false
  ) {
    missingSurvey = Lock(sharesStores ? Self.missingSurvey(nil) : nil)
    self.limit = Atomic(limit)
    self.engines = engines
    self.data = data
    self.budgets = budgets
  }

  /// Changes the maximum number of stores. Existing stores stay.
  package func setLimit(_ limit: Int) { self.limit.store(limit, ordering: .relaxed) }

  /// Opens the stores in the data directory. A store that can't be opened is not served, and keeps its name.
  /// - Parameters:
  ///   - isStrict: Whether to refuse to open the others then, or if anything else in the directory is not as it should be.
  ///   - onOpen: Called with what was found in each store.
  ///   - onDamage: Called with the name of each store or file that is not served, and the reason.
  ///   - progress: Called when the opening of a store begins, and many times a second while it continues.
  /// - Throws: `StorageError` if there are too many stores. If `isStrict`, also the reason why a store can't be opened.
  package func openAll(
    isStrict: Bool = false, _ onOpen: (StoreName, StoreOpening) -> Void,
    onDamage: (String, String) -> Void = { _, _ in }, progress: (OpeningProgress) -> Void = { _ in }
  ) throws {
    guard let data else { return }
    let found = try data.foundStores()
    for (index, folder) in found.enumerated() {
      let opened: (store: Store, opening: StoreOpening)
      do {
        let description = try folder.description.get()
        func report(_ done: Int, _ total: Int) {
          progress(
            OpeningProgress(
              store: description.name, number: index + 1, storeCount: found.count,
              percent: total > 0 ? min(100, done * 100 / total) : 0))
        }
        report(0, 0)
        opened = try Store.open(
          description, in: data, budgets: budgets, requiresIndexes: isStrict, progress: report)
      } catch {
        if isStrict { throw error }
        if let name = try? StoreName(folder.folderName) {
          let specification = try? folder.description.get().specification
          damagedStores.withLock { $0[name] = DamagedStore(reason: "\(error)", specification: specification) }
        }
        onDamage(folder.folderName, "\(error)")
        continue
      }
      onOpen(opened.store.name, opened.opening)
      try adopt(opened.store)
    }
  }

  /// Parses a specification of a store with one of the catalog's engines.
  /// - Throws: `unknownEngine` or `invalidOption`.
  package func specification(_ text: String) throws(StorageError) -> StoreSpecification {
    try StoreSpecification(text, engines: engines)
  }

  /// Creates a store, which is empty unless its engine keeps an earlier one that the catalog doesn't know.
  /// - Parameter isConfigured: Whether the store is created even if the stores that servers share aren't known yet.
  /// - Throws: `storeExists` if the name is taken, even with the same engine; `storeDamaged` if a damaged store has it;
  ///   `servedElsewhere` if it can't be known yet whether the name is taken; `tooManyStores`.
  @discardableResult
  package func create(
    _ name: StoreName, _ specification: StoreSpecification, isConfigured: Bool = false
  ) throws(StorageError) -> Store {
    try changeLock.withLock { _ throws(StorageError) in
      if let reason = damage(of: name) { throw .storeDamaged(name, reason) }
      if elsewhere(name) != nil { throw .storeExists(name, .replicated) }
      if !isConfigured, !has(name), let reason = missingSurvey.withLock({ $0 }) { throw .servedElsewhere(name, reason) }
      try stores.withLock { (stores) throws(StorageError) in try checkCanAdd(name, to: stores) }
      let store = try make(name, specification)
      stores.withLock { $0[name] = store }
      return store
    }
  }

  /// Creates a store unless it already exists.
  /// - Throws: `storeExists` if it exists with another specification.
  /// - Returns: Whether the store was created.
  @discardableResult
  package func ensure(_ name: StoreName, _ specification: StoreSpecification) throws(StorageError) -> Bool {
    guard let store = stores.withLock({ $0[name] }) else {
      try create(name, specification, isConfigured: true)
      return true
    }
    guard specification.fits(store.specification) else { throw .storeExists(name, store.engine) }
    return false
  }

  /// Creates those of the stores that don't exist yet: all of them, or none. A damaged store exists, and so does one that
  /// another server serves.
  package func ensureAll(_ specifications: [(StoreName, StoreSpecification)]) throws(StorageError) {
    var created: [StoreName] = []
    do throws(StorageError) {
      for (name, specification) in specifications where damage(of: name) == nil && elsewhere(name) == nil {
        if try ensure(name, specification) { created.append(name) }
      }
    } catch {
      for name in created { try? drop(name) }
      throw error
    }
  }

  private func make(_ name: StoreName, _ specification: StoreSpecification) throws(StorageError) -> Store {
    let specification = try specification.served(by: engines)
    let engine = specification.engine
    guard engine.isDurable else {
      return Store(name: name, engine: engine, limit: specification.limit, budgets: budgets)
    }
    if engine.isRecorded, data == nil { throw .noDataDirectory(engine) }
    let description = StoreDescription(name: name, specification: specification)
    do {
      if engine.isRecorded { try data?.create(description) }
      do {
        return try Store.open(description, in: data, budgets: budgets).store
      } catch {
        // A store that stayed behind could be neither created again nor dropped, and might make the next start fail.
        if engine.isRecorded { try? data?.drop(name) }
        throw error
      }
    } catch let error as StorageError {
      throw error
    } catch {
      throw StorageError.unreadable("\(error)")
    }
  }

  private func checkCanAdd(_ name: StoreName, to stores: [StoreName: Store]) throws(StorageError) {
    if let store = stores[name] { throw .storeExists(name, store.engine) }
    let limit = limit.load(ordering: .relaxed)
    guard stores.count < limit else { throw .tooManyStores(limit: limit) }
  }

  /// Adds a store that was created elsewhere.
  /// - Throws: `storeExists` or `tooManyStores`.
  package func adopt(_ store: Store) throws(StorageError) {
    try stores.withLock { (stores) throws(StorageError) in
      try checkCanAdd(store.name, to: stores)
      stores[store.name] = store
    }
  }

  /// Closes every durable store after its outstanding commits are written, and then the data directory.
  package func close() {
    for store in list() { store.close() }
    data?.close()
  }

  /// Returns the store with that name.
  /// - Throws: `unknownStore`, `storeDamaged` or `servedElsewhere`.
  package func open(_ name: StoreName) throws(StorageError) -> Store {
    if let store = stores.withLock({ $0[name] }) { return store }
    if let reason = damage(of: name) { throw .storeDamaged(name, reason) }
    throw absence(of: name)
  }

  private func has(_ name: StoreName) -> Bool { stores.withLock { $0[name] != nil } }

  private func elsewhere(_ name: StoreName) -> StoreElsewhere? { storesElsewhere.withLock { $0[name] } }

  /// Returns why this server doesn't have a store that isn't damaged: another one serves it, that can't be known yet, or
  /// there is no such store.
  private func absence(of name: StoreName) -> StorageError {
    if let elsewhere = elsewhere(name) ?? missingSurvey.withLock({ $0 }) { return .servedElsewhere(name, elsewhere) }
    return .unknownStore(name)
  }

  /// Why the stores that servers share are not all known yet; nil if they are. Until then, no name is known to be free.
  package var missingKnowledge: String? { missingSurvey.withLock { $0?.reason } }

  /// The names of the stores that were stopped because a store that servers share has their name, in order.
  package var stoppedNames: [StoreName] { stoppedStores.withLock { $0.sorted() } }

  /// Returns why a store can't be served; nil if there is no such store.
  private func damage(of name: StoreName) -> String? { damagedStores.withLock { $0[name]?.reason } }

  /// Removes the store from the catalog and frees its memory at once. Its files are removed in the background, and
  /// connections that have it open get `storeDropped`. A damaged store can be dropped, too.
  /// - Throws: `unknownStore`, or `unreadable` if its files can't be removed.
  package func drop(_ name: StoreName) throws(StorageError) {
    try changeLock.withLock { _ throws(StorageError) in
      // A store that others could take over stays if it can't be removed.
      if let store = stores.withLock({ $0[name] }), store.lease != nil { try remove(name, store.specification) }
      guard let store = stores.withLock({ $0.removeValue(forKey: name) }) else {
        guard let damaged = damagedStores.withLock({ $0[name] }) else {
          throw absence(of: name)
        }
        try remove(name, damaged.specification)
        damagedStores.withLock { _ = $0.removeValue(forKey: name) }
        return
      }
      store.discardContents()
      guard store.commitWriter != nil else { return }
      store.close()
      guard store.lease == nil else { return }
      do throws(StorageError) { try remove(name, store.specification) } catch {
        // Another store must not find what this one has left. It can be dropped again.
        let damage = DamagedStore(
          reason: "it was dropped, but not removed: \(error)", specification: store.specification)
        damagedStores.withLock { $0[name] = damage }
        throw error
      }
    }
  }

  // MARK: Stores that servers share

  /// Gives up the stores that other servers have taken over, and opens those that nobody serves. May wait for the
  /// network.
  /// - Parameters:
  ///   - onOpen: Called with what was found in each store that was opened.
  ///   - onFailure: Called with the name of each store that could not be opened, and the reason.
  /// - Returns: The stores that were given up, and those that were stopped because a shared one has their name.
  package func update(
    from shared: any SharedStores, onOpen: (StoreName, StoreOpening) -> Void,
    onFailure: (StoreName, String) -> Void
  ) -> (lost: [StoreName], stopped: [StoreName], survey: SharedStoreSurvey) {
    let lost = all.filter(\.isLost)
    for store in lost {
      changeLock.withLock { _ in giveUp(store, to: StoreElsewhere("another server has taken it over")) }
    }
    let served = Set(all.filter { $0.lease != nil }.map(\.name))
    let previousMoveCount = moveCount.load(ordering: .relaxed)
    let survey = shared.survey(serving: served, within: budgets)
    var stopped: [StoreName] = []
    // A store that was moved meanwhile is neither here nor in the survey.
    if moveCount.load(ordering: .relaxed) == previousMoveCount {
      var elsewhere = survey.elsewhere
      let names = Set(elsewhere.keys).union(survey.toOpen.lazy.map(\.name))
      stopped = stopStores(named: names)
      let now = monotonicMilliseconds()
      // A store that can't be opened keeps the reason until the next attempt.
      let times = openingTimes.withLock { $0 }
      let toOpen = survey.toOpen.filter { now >= times[$0.name, default: 0] }
      let known = storesElsewhere.withLock { $0 }
      for description in survey.toOpen { elsewhere[description.name] = known[description.name] }
      for description in toOpen { elsewhere[description.name] = StoreElsewhere("it is about to serve it") }
      storesElsewhere.withLock { $0 = elsewhere }
      missingSurvey.withLock { missing in
        if missing != nil { missing = survey.knowsAllStores ? nil : Self.missingSurvey(survey.failure) }
      }
      for description in toOpen {
        do { try openShared(description, onOpen) } catch {
          var elsewhere = StoreElsewhere("\(error)")
          switch error {
          case StorageError.servedElsewhere(_, let served): elsewhere = served
          case StorageError.engineUnavailable: break
          // Each attempt adds a record to the store's log.
          default: openingTimes.withLock { $0[description.name] = now + Self.openingPause }
          }
          storesElsewhere.withLock { [elsewhere] in $0[description.name] = elsewhere }
          onFailure(description.name, "\(error)")
        }
      }
    }
    return (lost.map(\.name), stopped, survey)
  }

  private static func missingSurvey(_ failure: String?) -> StoreElsewhere {
    StoreElsewhere(
      "it has yet to learn which stores its databases have\(failure.map { " (\($0))" } ?? "")", isUnknown: true)
  }

  /// Stops the stores that have the names of shared ones. Files stay as they are.
  /// - Returns: The names of those that were stopped.
  private func stopStores(named names: Set<StoreName>) -> [StoreName] {
    let conflicting = all.filter { $0.lease == nil && names.contains($0.name) }
    for store in conflicting {
      changeLock.withLock { _ in
        stoppedStores.withLock { _ = $0.insert(store.name) }
        giveUp(store, to: StoreElsewhere("a store of this name in a database has taken its place"))
      }
    }
    return conflicting.map(\.name)
  }

  /// Hands a store over to another server, without losing a write.
  /// - Throws: `unknownStore`, `servedElsewhere`, `invalidOption` if the store or the server is none that it can be moved
  ///   from or to, or `engineUnavailable`.
  package func move(
    _ name: StoreName, to node: String, by shared: any SharedStores
  ) throws(StorageError) {
    try changeLock.withLock { _ throws(StorageError) in
      let store = try open(name)
      guard store.lease != nil, let commitWriter = store.commitWriter else {
        throw .invalidOption("only a store with the engine \(EngineKind.replicated) can be moved")
      }
      let destination = try shared.chooseSuccessor(of: name, node)
      let last = store.accessBetweenLargeCommits { map in
        map.pauseWrites(.servedElsewhere(name, destination))
        return map.commitRevision
      }
      let end = monotonicMilliseconds() + Self.maxMoveTime
      while !commitWriter.isDurable(last) {
        guard commitWriter.failure == nil, monotonicMilliseconds() < end else {
          store.access { $0.resumeWrites() }
          throw .engineUnavailable("its last writes are not in the database yet")
        }
        commitWriter.wake()
        usleep(1_000)
      }
      moveCount.add(1, ordering: .relaxed)
      giveUp(store, to: destination)
    }
  }

  /// Ends a store here that other servers serve from now on, or could.
  private func giveUp(_ store: Store, to destination: StoreElsewhere) {
    storesElsewhere.withLock { $0[store.name] = destination }
    stores.withLock { _ = $0.removeValue(forKey: store.name) }
    store.discardContents(because: .servedElsewhere(store.name, destination))
    store.close()
  }

  private func openShared(_ description: StoreDescription, _ onOpen: (StoreName, StoreOpening) -> Void) throws {
    try changeLock.withLock { _ in
      // A client may have created it meanwhile.
      guard stores.withLock({ $0[description.name] }) == nil else { return }
      if damage(of: description.name) != nil { throw StorageError.storeExists(description.name, description.engine) }
      try stores.withLock { stores throws(StorageError) in try checkCanAdd(description.name, to: stores) }
      let (store, opening) = try Store.open(description, in: nil, budgets: budgets)
      onOpen(store.name, opening)
      stores.withLock { $0[store.name] = store }
      storesElsewhere.withLock { _ = $0.removeValue(forKey: store.name) }
    }
  }

  /// Removes what a durable store has left.
  /// - Parameter specification: Its specification; nil if that is unknown.
  private func remove(_ name: StoreName, _ specification: StoreSpecification?) throws(StorageError) {
    if let specification {
      do { try specification.engine.removeStore(name, specification) } catch { throw .unreadable("\(error)") }
    }
    guard specification?.engine.isRecorded ?? true else { return }
    do throws(DataDirectoryError) { try data?.drop(name) } catch { throw .unreadable("\(error)") }
  }

  // MARK: Indexes

  /// Creates an index of a store, unless it exists. The definition of a durable store's index is on disk when this
  /// returns.
  /// - Throws: `unknownStore`, `indexExists` if another index of the store has its name, `tooManyIndexes`,
  ///   `indexesTooLarge`, or `diskFull` or `unreadable` if the definition can't be written.
  /// - Returns: Whether the index was created.
  @discardableResult
  package func ensureIndex(_ index: DocumentIndex, of name: StoreName) throws(StorageError) -> Bool {
    try changeLock.withLock { _ throws(StorageError) in
      let store = try open(name)
      let indexes = store.indexReports.map(\.index)
      // The store compares the definitions.
      guard !indexes.contains(where: { $0.name == index.name }) else { return try store.ensureIndex(index) }
      guard indexes.count < Store.maxIndexCount else { throw .tooManyIndexes(limit: Store.maxIndexCount) }
      guard IndexDefinitions.bytes(of: indexes + [index]).count <= IndexDefinitions.maxByteCount else {
        throw .indexesTooLarge(limit: IndexDefinitions.maxByteCount)
      }
      try record(indexes + [index], of: store)
      do throws(StorageError) { return try store.ensureIndex(index) } catch {
        // The reply is an error, so the index must not appear when the store is reopened.
        try? record(indexes, of: store)
        throw error
      }
    }
  }

  /// Deletes an index of a store. The index of a durable store does not come back when this returns.
  /// - Throws: `unknownStore`, `unknownIndex`, or `diskFull` or `unreadable` if the deletion can't be written.
  package func deleteIndex(named indexName: String, of name: StoreName) throws(StorageError) {
    try changeLock.withLock { _ throws(StorageError) in
      let store = try open(name)
      let indexes = store.indexReports.map(\.index)
      let others = indexes.filter { $0.name != indexName }
      guard others.count < indexes.count else { throw .unknownIndex(indexName) }
      try record(others, of: store)
      try store.deleteIndex(named: indexName)
    }
  }

  /// Writes the definitions of a durable store's indexes to the data directory.
  private func record(_ indexes: [DocumentIndex], of store: Store) throws(StorageError) {
    if let records = store.records { return try record(indexes, in: records) }
    guard store.engine.isRecorded, let data else { return }
    if store.hasDamagedIndexes { data.keepDamagedIndexes(of: store.name) }
    do throws(DataDirectoryError) { try data.setIndexes(indexes, of: store.name) } catch {
      if case .system(_, let error) = error, error.isNoSpace { throw .diskFull }
      throw .unreadable("\(error)")
    }
    store.didRecordIndexes()
  }

  /// Writes the definitions of a store's indexes to where its engine records them.
  private func record(_ indexes: [DocumentIndex], in records: any StoreRecords) throws(StorageError) {
    do throws(EngineError) { try records.record(IndexDefinitions.bytes(of: indexes), as: .indexes) } catch {
      switch error {
      case .noSpace: throw .diskFull
      case .failed(let reason): throw .unreadable(reason)
      case .transient(let reason): throw .engineUnavailable(reason)
      }
    }
  }

  // MARK: The list

  /// The names of the stores that are damaged and not served, in order.
  package var damagedNames: [StoreName] { damagedStores.withLock { $0.keys.sorted() } }

  /// All stores that are served, in any order.
  package var all: [Store] { stores.withLock { Array($0.values) } }

  /// Returns all stores that are served, sorted by name.
  package func list() -> [Store] {
    all.sorted { $0.name < $1.name }
  }
}

/// How far a server has come with opening its stores.
package struct OpeningProgress: Equatable, Sendable {
  package let store: StoreName
  /// The number of the store, counted from 1.
  package let number: Int
  package let storeCount: Int
  /// The percentage of the store's files that has been read.
  package let percent: Int

  package init(store: StoreName, number: Int, storeCount: Int, percent: Int) {
    self.store = store
    self.number = number
    self.storeCount = storeCount
    self.percent = percent
  }
}
