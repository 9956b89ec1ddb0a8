import Documents
import Platform
import Storage
import Wire

/// Commands that are not on the entries of a store. No store is locked.
extension Executor {
  /// What a reply tells of a store, and the newest commit that it reveals.
  struct StoreStatement<Contents> {
    let contents: Contents
    let revision: UInt64
    let commitWriter: CommitWriter?
  }

  // MARK: Figures

  /// Returns the figures of a store; nil if it was dropped.
  /// - Parameter isHeld: Whether the figures are not sent before all commits are durable, so that they may tell all.
  mutating func figures(of store: Store, isHeld: Bool) -> StoreStatement<[Figure]>? {
    guard let (mapFigures, revision) = ServerState.mapFigures(of: store, isHeld: isHeld, now: now) else { return nil }
    let figures =
      mapFigures + [Figure("incarnation", store.incarnation)] + store.fileFigures.map { Figure($0.name, $0.value) }
    return StoreStatement(contents: figures, revision: revision, commitWriter: store.commitWriter)
  }

  /// Returns the latest slow wakeups, the newest first.
  func slowLog() -> [SlowLogRecord] {
    let now = monotonicMilliseconds()
    return server.slowLog.withLock { $0.newestFirst }.map { entry in
      SlowLogRecord(
        ageMilliseconds: now - entry.ended, nanoseconds: entry.nanoseconds, receivedBytes: entry.receivedBytes,
        requests: entry.requests, operations: entry.operations, store: entry.store)
    }
  }

  /// Returns what the busiest connections did.
  func busiestConnections(_ limit: Int) -> [ConnectionStatistics] {
    let now = monotonicMilliseconds()
    var commands: [Int32: String] = [:]
    return server.registry.busiest(min(limit, ConnectionRegistry.maxReported)).map {
      ConnectionStatistics($0, now: now, &commands)
    }
  }

  // MARK: Stores

  /// Opens a store for a client.
  /// - Parameter maxStaleness: How old what is read may be, in milliseconds; nil if it must be current.
  func openStore(
    _ name: StoreName, maxStaleness: UInt32? = nil, of stores: inout OpenStores, _ grants: Grants
  ) throws(CommandFailure) -> OpenedStore {
    let store: Store
    do throws(StorageError) { store = try server.stores.open(name) } catch {
      guard let maxStaleness, let followed = server.sharedStores?.followedStore(name) else {
        throw CommandFailure(error)
      }
      guard followed.freshness?.lease(within: maxStaleness).isHeld(at: now) ?? false else { throw .tooOld }
      store = followed
    }
    let limit = limits.maxOpenStores
    guard
      let handle = stores.open(store, grants.rights(to: name), maxStaleness: maxStaleness, limit: limit)
    else {
      throw CommandFailure(.tooManyStores, "this connection already has \(limit) stores open; close one first")
    }
    return OpenedStore(handle: handle, engine: store.engine.name)
  }

  /// Returns the stores that may be read at least in part, in the order of their names. Only entries that may be read
  /// are counted.
  /// - Parameter isHeld: As for `figures(of:isHeld:)`.
  mutating func stores(
    readableBy grants: Grants, isHeld: Bool
  ) -> (stores: [ListedStore], revealed: [(revision: UInt64, commitWriter: CommitWriter)]) {
    var revealed: [(revision: UInt64, commitWriter: CommitWriter)] = []
    var listed = server.stores.damagedNames.filter { grants.rights(to: $0).toAny >= .read }.map { name in
      ListedStore(name: name.text, specification: ListedStore.damagedSpecification, entries: 0)
    }
    for store in server.stores.list() {
      let rights = grants.rights(to: store.name)
      guard rights.toAny >= .read else { continue }
      let contents = store.access { map in
        _ = map.expireBriefly(now: now)
        if rights.toAll < .read { return map.contents(ofKeysWith: rights.readablePrefixes) }
        return isHeld ? map.contents : store.visibleContents(of: map)
      }
      listed.append(
        ListedStore(name: store.name.text, specification: "\(store.specification)", entries: UInt64(contents.entries)))
      if let commitWriter = store.commitWriter { revealed.append((contents.revision, commitWriter)) }
    }
    return (listed.sorted { $0.name < $1.name }, revealed)
  }

  /// Returns the reports on a store's indexes as JSON.
  func indexReports(of store: Store) -> [UInt8] { JSONValue.array(store.indexReports.map(\.json)).encoded() }
}

extension EntryMap {
  /// The contents as a client sees them that may read only the keys with certain prefixes.
  fileprivate mutating func contents(ofKeysWith prefixes: [[UInt8]]) -> MapContents {
    var contents = MapContents()
    // Nothing expires at time 0: the entries that have expired are counted until they are removed, as always.
    contents.entries = prefixes.reduce(0) { unsafe $0 + count(prefix: $1.span.bytes, now: 0) }
    contents.revision = max(revisions.lastRemoval, revisions.lastInsertion)
    return contents
  }
}

extension DocumentIndex {
  /// Reads the definition of an index.
  init(parsingCommand text: [UInt8]) throws(CommandFailure) {
    do throws(DocumentIndexError) { self = try DocumentIndex(parsing: text.span) } catch {
      throw CommandFailure(.illegalArgument, "\(error)")
    }
  }
}

extension IndexReport {
  /// The report as an object of index-list.
  fileprivate var json: JSONValue {
    guard case .object(var object) = index.json else { preconditionFailure("a definition is an object") }
    switch state {
    case .complete: object["state"] = "ready"
    case .building(let progress):
      object["state"] = "building"
      object["progress"] = .double(progress)
    case .failed(let error):
      object["state"] = "failed"
      object["reason"] = .string("\(error)")
    }
    object["entries"] = .integer(Int64(entryCount))
    object["documents"] = .integer(Int64(documentCount))
    object["memoryBytes"] = .integer(Int64(memoryBytes))
    object["overflowDocuments"] = .integer(Int64(overflowCount))
    object["arrayFields"] = .array(arrayFields.map { .string($0.description) })
    return .object(object)
  }
}
