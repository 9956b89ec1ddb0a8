import Synchronization

/// The cache of a repository, with what it takes to never contradict the main source.
///
/// - **It only helps.** Its errors go to a hook and fail no call.
/// - **It keeps no value that was overtaken.** Reads and changes note epochs of their keys, and take turns at the cache.
///   A value that was read while its key changed isn't stored. If two reads or two changes overlap, nobody knows whose
///   value is newer: then the cache drops the value.
/// - **Readers never see what it failed to drop.** They bypass these keys until the cache has stored or dropped them.
@usableFromInline final class RepositoryCache<T: Sendable>: Sendable {
  typealias ErrorHook = @Sendable (any Error, DataSourceOperation, any Query) -> Void

  /// What a reader notes before it reads from the main source.
  struct Stamp {
    /// Of the changes that calls of the repository make.
    let changes: KeyEpochs.Epoch
    /// Of the values that other readers have stored.
    let reads: KeyEpochs.Epoch
  }

  private struct State {
    var changes = KeyEpochs()
    var reads = KeyEpochs()
    /// Keys whose values in the cache may be out of date, because the cache could neither store nor drop them.
    var bypassedKeys: Set<EntryKey> = []
    /// Whether that is true of every key.
    var bypassesAll = false
  }

  /// The maximum number of bypassed keys. If there are more, all keys are bypassed until the cache is empty.
  private static var bypassLimit: Int { 10_000 }

  @usableFromInline let source: AnyDataSource<T>
  private let onError: ErrorHook
  private let turns = KeyTurns()
  private let state = LockedValue(State())
  /// Whether any key is bypassed, for readers without the lock.
  @usableFromInline let hasBypasses = Atomic(false)

  init(_ source: AnyDataSource<T>, onError: @escaping ErrorHook) {
    self.source = source
    self.onError = onError
  }

  // MARK: - Reading

  /// What the cache says about a query.
  enum Lookup: Sendable {
    /// It has nothing.
    case nothing
    /// It doesn't support the query.
    case notSupported
    /// It has failed or wasn't asked.
    case unknown
    /// It has a value that is no longer valid.
    case invalid(StoredValue<T>)
  }

  /// Returns what an error of a read says.
  /// - Throws: The error if the task is cancelled.
  func lookup(after error: any Error, _ operation: DataSourceOperation, _ query: any Query) throws -> Lookup {
    switch (error as? DataSourceError)?.kind {
    case .notFound: return .nothing
    case .notValid: return .unknown
    case .queryNotSupported:
      report(error, operation, query)
      return .notSupported
    default:
      if error is CancellationError, Task.isCancelled { throw error }
      report(error, operation, query)
      return .unknown
    }
  }

  /// Whether some value of the cache may be out of date because the cache failed to drop it.
  @inlinable var isIncoherent: Bool { hasBypasses.load(ordering: .acquiring) }

  /// Returns whether readers must not see the value or list of an address in the cache.
  @inlinable func isBypassed(_ address: KeyValueAddress) -> Bool { isIncoherent && failedToDrop(address) }

  @usableFromInline func failedToDrop(_ address: KeyValueAddress) -> Bool {
    state.withLock { state in
      if state.bypassesAll { return true }
      switch address.scope {
      case .key(let key): return state.bypassedKeys.contains(key)
      case .keys(let keys): return keys.contains { state.bypassedKeys.contains($0) }
      case .all: return !state.bypassedKeys.isEmpty
      }
    }
  }

  func stamp(of scope: KeyScope) -> Stamp {
    state.withLock { Stamp(changes: $0.changes.epoch(of: scope), reads: $0.reads.epoch(of: scope)) }
  }

  /// Stores what was read from the main source, unless it may be out of date by now.
  func keep(
    _ target: CacheTarget, readAt stamp: Stamp, _ operation: DataSourceOperation, _ store: () async throws -> Void
  ) async {
    await settle(target, stamp) {
      do {
        try await store()
        trust(target)
      } catch {
        report(error, operation, target.query)
        // A cache that doesn't know the query has nothing for it.
        if !error.isNotSupported { await drop(target) }
      }
    }
  }

  /// Drops what the main source doesn't have, unless it may have it again by now.
  func dropMissing(_ target: CacheTarget, readAt stamp: Stamp) async {
    await settle(target, stamp) { await dropIfSupported(target) }
  }

  private func settle(_ target: CacheTarget, _ stamp: Stamp, _ body: () async -> Void) async {
    await empty()
    await turns.run(target.scope) {
      let (isUnchanged, isFirst, isUsable) = state.withLock { state in
        (
          state.changes.isCurrent(stamp.changes, of: target.scope),
          state.reads.isCurrent(stamp.reads, of: target.scope),
          !state.bypassesAll
        )
      }
      // The call that changed the value has also updated the cache.
      guard isUnchanged, isUsable else { return }
      guard isFirst else { return await dropIfSupported(target) }
      await body()
      state.withLock { $0.reads.advance(target.scope) }
    }
  }

  /// Empties a cache that all readers bypass.
  private func empty() async {
    guard isIncoherent, state.withLock({ $0.bypassesAll }) else { return }
    await turns.run(.all) {
      if state.withLock({ $0.bypassesAll }) { await drop(.everything) }
    }
  }

  // MARK: - Writing

  /// Runs a change of the main source and of the cache. Until it ends, no reader stores a value of its keys.
  func changing<R>(_ scope: KeyScope, _ body: (KeyEpochs.Epoch) async throws -> R) async rethrows -> R {
    let epoch = state.withLock { $0.changes.beginChange(scope) }
    defer { state.withLock { $0.changes.endChange(scope) } }
    return try await body(epoch)
  }

  /// Writes to the cache what the main source has accepted. If the cache fails, or another change was made at the same
  /// time, it drops what it has.
  func follow(
    _ target: CacheTarget, since epoch: KeyEpochs.Epoch, _ operation: DataSourceOperation,
    _ write: () async throws -> Void
  ) async {
    await turns.run(target.scope) {
      guard state.withLock({ $0.changes.isOnlyChange(epoch, of: target.scope) }) else { return await drop(target) }
      do {
        try await write()
        trust(target)
      } catch {
        report(error, operation, target.query)
        await drop(target)
      }
    }
  }

  /// Writes to the cache alone, which may fail.
  func write<R: Sendable>(_ target: CacheTarget, _ write: () async throws -> R) async throws -> R {
    try await changing(target.scope) { _ in
      try await turns.run(target.scope) {
        let result = try await write()
        trust(target)
        return result
      }
    }
  }

  // MARK: - Dropping

  /// Drops what the cache has for a target. What it can't drop is bypassed.
  private func drop(_ target: CacheTarget) async {
    do {
      try await delete(target)
    } catch {
      report(error, .delete, target.query)
      if target.scope == .all, !target.isEverything {
        // A change without a key may have changed anything.
        await drop(.everything)
      } else {
        distrust(target)
      }
    }
  }

  /// Drops what the cache has for a target, if the cache supports its query at all.
  private func dropIfSupported(_ target: CacheTarget) async {
    do {
      try await delete(target)
    } catch {
      report(error, .delete, target.query)
      if !error.isNotSupported { distrust(target) }
    }
  }

  /// Deletes in a task of its own: if the caller's task has been cancelled, the value is still out of date.
  private func delete(_ target: CacheTarget) async throws {
    let source = source
    try await Task { try await source.delete(target.query) }.value
    trust(target)
  }

  private func trust(_ target: CacheTarget) {
    guard isIncoherent else { return }
    state.withLock { state in
      switch target.scope {
      case .key(let key): state.bypassedKeys.remove(key)
      case .keys(let keys): state.bypassedKeys.subtract(keys)
      case .all where target.isEverything: (state.bypassedKeys, state.bypassesAll) = ([], false)
      case .all: break
      }
      hasBypasses.store(state.bypassesAll || !state.bypassedKeys.isEmpty, ordering: .releasing)
    }
  }

  private func distrust(_ target: CacheTarget) {
    state.withLock { state in
      switch target.scope {
      case .key(let key): state.bypassedKeys.insert(key)
      case .keys(let keys): state.bypassedKeys.formUnion(keys)
      case .all: state.bypassesAll = true
      }
      if state.bypassedKeys.count > Self.bypassLimit { (state.bypassedKeys, state.bypassesAll) = ([], true) }
      hasBypasses.store(true, ordering: .releasing)
    }
  }

  private func report(_ error: any Error, _ operation: DataSourceOperation, _ query: any Query) {
    // An error of a canceled call is expected.
    if error is CancellationError, Task.isCancelled { return }
    onError(error, operation, query)
  }
}

/// What a call reads or writes in a cache.
struct CacheTarget {
  /// The query that deletes it.
  let query: any Query
  let scope: KeyScope
  /// Whether it is everything in the cache.
  let isEverything: Bool

  /// The whole cache.
  static let everything = CacheTarget(deletedBy: AllObjectsQuery())

  /// What a deletion deletes.
  init(deletedBy query: any Query) {
    let address = query.keyValueAddress
    self.query = query
    scope = address.deletionScope
    isEverything = if case .all = address { true } else { false }
  }

  /// The value or list that a query reads or writes.
  init(of query: any Query) {
    let address = query.keyValueAddress
    // As the query of one value, a query for everything is its key. To delete, it is everything.
    self.query = if case .all(let key) = address { IdQuery(key) } else { query }
    scope = address.scope
    isEverything = false
  }
}

extension Error {
  fileprivate var isNotSupported: Bool { (self as? DataSourceError)?.kind == .queryNotSupported }
}
