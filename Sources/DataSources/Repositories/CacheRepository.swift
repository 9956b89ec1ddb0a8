/// A repository of a main source and a cache. Both can be any source: for example, a cache in memory in front of a
/// source in another process.
///
/// **Reads.** By default (`cacheSync`), a value comes from the cache; if the cache doesn't have it, or it isn't valid
/// any more, it comes from the main source and goes to the cache. Concurrent reads of one value that the cache doesn't
/// have make one call to the main source. A value that the main source no longer has leaves the cache, too. A cache
/// doesn't know whether it has everything. So lists of everything, pages, and ids whose missing values are skipped
/// always come from the main source and are not cached.
///
/// **Writes.** A put or a deletion goes to the main source first, and to the cache only if the main source has accepted
/// it. If the main source fails, the call throws its error, and the cache is unchanged: no reader sees a value that was
/// never stored. Once the main source has accepted a write, the write has succeeded, even if its task has been cancelled
/// meanwhile, and the cache doesn't contradict it: if the cache can't store the new value, it drops the old one.
///
/// **The cache only helps.** As long as the main source works, no failure of the cache fails a call, except those of the
/// operation `cache`. A read that fails is a miss. A value that the cache can neither replace nor drop is bypassed:
/// readers of this repository get it from the main source until the cache has stored or dropped it. `onCacheError`
/// receives all of these errors.
///
/// **The main source is the only source of truth.** The cache may be out of date, until the next write or `mainSync`
/// read of the same value, in two cases: another process has written to the main source, or an error left open whether
/// the main source has executed a write (such as a timeout). A `validity` that accepts values for a limited time bounds
/// both. Calls of one repository that overlap leave no older value in the cache: if it isn't certain which of two values
/// is newer, the cache drops both. Copies of a repository are one repository.
public struct CacheRepository<T: Sendable>: GetRepository, PutRepository, DeleteRepository {
  /// Receives an error of the cache, what the cache was asked to do, and for which query.
  public typealias CacheErrorHook = @Sendable (any Error, DataSourceOperation, any Query) -> Void

  /// A read that others may share.
  private struct Flight: Hashable {
    let scope: KeyScope
    let isList: Bool
    /// A read that began before a change must not serve a reader that came after it.
    let epoch: KeyEpochs.Epoch
  }

  private let main: AnyDataSource<T>
  @usableFromInline let cache: RepositoryCache<T>
  private let flights = SingleFlight<Flight, StoredValue<T>>()
  @usableFromInline let validity: Validation<T>
  @usableFromInline let defaultOperation: RepositoryOperation

  /// The number of calls that wait for reads of the main source, which they share.
  var sharedReadCount: Int { flights.waiterCount }

  /// - Parameters:
  ///   - validity: Accepts the cached values that are still valid. With `cacheSync`, others are read from the main
  ///     source; with `cache`, they are a `notValid` error.
  ///   - defaultOperation: The operation of calls that don't name one.
  ///   - onCacheError: Receives the errors of the cache that fail no call, for a log. A value that the cache doesn't have
  ///     is no error. It is called before the call goes on, and must be quick.
  public init(
    main: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    cache: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    validity: Validation<T> = .always,
    defaultOperation: RepositoryOperation = .cacheSync(),
    onCacheError: @escaping CacheErrorHook = { _, _, _ in }
  ) {
    self.main = AnyDataSource(main)
    self.cache = RepositoryCache(AnyDataSource(cache), onError: onCacheError)
    self.validity = validity
    self.defaultOperation = defaultOperation == .default ? .cacheSync() : defaultOperation
  }

  @inlinable func resolved(_ operation: RepositoryOperation) -> RepositoryOperation {
    operation == .default ? defaultOperation : operation
  }

  // MARK: - Reading

  // Most calls are for one cached value. They are specialized for the type of the value.
  @inlinable
  public func get(_ query: any Query) async throws -> T { try await get(query, operation: .default) }

  @inlinable
  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> T {
    guard readsCacheFirst(query, operation) else { return try await getUncached(query, operation) }
    let cached: Result<T, any Error>
    do {
      let value = try await cache.source.get(query)
      if validity.accepts(value) { return value }
      cached = .success(value)
    } catch {
      cached = .failure(error)
    }
    return try await get(query, operation, insteadOf: cached)
  }

  @inlinable func readsCacheFirst(_ query: any Query, _ operation: RepositoryOperation) -> Bool {
    guard case .cacheSync = resolved(operation) else { return false }
    let address = query.keyValueAddress
    // Of the documents that a query finds, the cache may lack those that come first.
    if case .documents = address { return false }
    return !cache.isBypassed(address)
  }

  @usableFromInline func getUncached(_ query: any Query, _ operation: RepositoryOperation) async throws -> T {
    if case .documents = query.keyValueAddress {
      return try await readUncached(query, operation, .get) { [try await $0.get(query)] }[0]
    }
    return try await read(query, isList: false, resolved(operation), .unknown).single!
  }

  /// Reads a value that the cache doesn't have.
  /// - Parameter cached: What the cache has instead: a value that is no longer valid, or an error.
  @usableFromInline func get(
    _ query: any Query, _ operation: RepositoryOperation, insteadOf cached: Result<T, any Error>
  ) async throws -> T {
    let lookup: RepositoryCache<T>.Lookup =
      switch cached {
      case .success(let value): .invalid(.single(value))
      case .failure(let error): try cache.lookup(after: error, .get, query)
      }
    return try await read(query, isList: false, resolved(operation), lookup).single!
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T] {
    let address = query.keyValueAddress
    guard address.isCacheableList else {
      return try await readUncached(query, operation, .getAll) { try await $0.getAll(query) }
    }
    let operation = resolved(operation)
    var lookup = RepositoryCache<T>.Lookup.unknown
    if case .cacheSync = operation, !cache.isBypassed(address) {
      do {
        let list = try await cache.source.getAll(query)
        if validity.accepts(list) { return list }
        lookup = .invalid(.list(list))
      } catch {
        lookup = try cache.lookup(after: error, .getAll, query)
      }
    }
    return try await read(query, isList: true, operation, lookup).list!
  }

  /// Reads a value or a list that isn't in the cache, or that must not come from it.
  private func read(
    _ query: any Query, isList: Bool, _ operation: RepositoryOperation, _ lookup: RepositoryCache<T>.Lookup
  ) async throws -> StoredValue<T> {
    switch operation {
    case .main: return try await read(query, isList, from: main)
    case .cache: return try await readCache(query, isList)
    // This read must not join a call that began earlier, whose value may be older.
    case .mainSync: return try await synchronize(query, isList, lookup)
    case .cacheSync(fallback: false), .default: return try await shared(query, isList, lookup)
    case .cacheSync(fallback: true):
      do {
        return try await shared(query, isList, lookup)
      } catch  where error.allowsFallback {
        guard case .invalid(let stale) = lookup else { throw nothingToFallBackTo(after: error) }
        return stale
      }
    }
  }

  private func read(
    _ query: any Query, _ isList: Bool, from source: AnyDataSource<T>
  ) async throws -> StoredValue<T> {
    isList ? .list(try await source.getAll(query)) : .single(try await source.get(query))
  }

  private func readCache(_ query: any Query, _ isList: Bool) async throws -> StoredValue<T> {
    guard !cache.isBypassed(query.keyValueAddress) else {
      throw DataSourceError(.notFound, "the cached value is out of date")
    }
    let value = try await read(query, isList, from: cache.source)
    let isValid =
      switch value {
      case .single(let value): validity.accepts(value)
      case .list(let list): validity.accepts(list)
      }
    guard isValid else { throw DataSourceError(.notValid, "the cached value is no longer valid") }
    return value
  }

  /// Reads from the main source, together with others that want the same.
  private func shared(
    _ query: any Query, _ isList: Bool, _ lookup: RepositoryCache<T>.Lookup
  ) async throws -> StoredValue<T> {
    let scope = query.keyValueAddress.scope
    // Queries without keys can't be compared.
    guard scope != .all else { return try await synchronize(query, isList, lookup) }
    let flight = Flight(scope: scope, isList: isList, epoch: cache.stamp(of: scope).changes)
    return try await flights.value(of: flight) { try await synchronize(query, isList, lookup) }
  }

  /// Reads from the main source, and updates the cache.
  private func synchronize(
    _ query: any Query, _ isList: Bool, _ lookup: RepositoryCache<T>.Lookup
  ) async throws -> StoredValue<T> {
    let target = CacheTarget(of: query)
    let stamp = cache.stamp(of: target.scope)
    let value: StoredValue<T>
    do {
      value = try await read(query, isList, from: main)
    } catch let error as DataSourceError where error.kind == .notFound {
      // The main source hasn't failed: it says that the value doesn't exist.
      if lookup.mayBeCached { await cache.dropMissing(target, readAt: stamp) }
      throw error
    }
    if case .notSupported = lookup { return value }
    let cached = cache.source
    switch value {
    case .single(let value):
      await cache.keep(target, readAt: stamp, .put) { _ = try await cached.put(value, in: query) }
    case .list(let list):
      await cache.keep(target, readAt: stamp, .putAll) { _ = try await cached.putAll(list, in: query) }
    }
    return value
  }

  /// Reads a list from the main source. The cache is only a fallback, because it may have any part of the list.
  private func readUncached(
    _ query: any Query, _ operation: RepositoryOperation, _ name: DataSourceOperation,
    get: (AnyDataSource<T>) async throws -> [T]
  ) async throws -> [T] {
    switch resolved(operation) {
    case .cache:
      guard !cache.isIncoherent else { throw DataSourceError(.failed, "some of the cached values are out of date") }
      let list = try await get(cache.source)
      guard validity.accepts(list) else {
        throw DataSourceError(.notValid, "some of the cached values are no longer valid")
      }
      return list
    case .main, .mainSync, .cacheSync(fallback: false), .default:
      return try await get(main)
    case .cacheSync(fallback: true):
      do {
        return try await get(main)
      } catch  where error.allowsFallback {
        let fallback = try await cachedPart(query, name, get)
        guard !fallback.isEmpty else { throw nothingToFallBackTo(after: error) }
        return fallback
      }
    }
  }

  /// Returns the part of a list that the cache has: nothing if it fails.
  private func cachedPart(
    _ query: any Query, _ name: DataSourceOperation, _ get: (AnyDataSource<T>) async throws -> [T]
  ) async throws -> [T] {
    guard !cache.isIncoherent else { return [] }
    do { return try await get(cache.source) } catch {
      _ = try cache.lookup(after: error, name, query)
      return []
    }
  }

  private func nothingToFallBackTo(after error: any Error) -> DataSourceError {
    DataSourceError(.notFound, "the cache has no value to fall back to after: \(error)")
  }

  // MARK: - Writing

  @discardableResult
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    try await write(CacheTarget(of: query), operation, .put) { source, stored in
      try await source.put(stored ?? value, in: query)
    }
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await write(CacheTarget(of: query), operation, .putAll) { source, stored in
      try await source.putAll(stored ?? array, in: query)
    }
  }

  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await write(CacheTarget(deletedBy: query), operation, .delete) { source, _ in try await source.delete(query) }
  }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await write(CacheTarget(deletedBy: query), operation, .deleteAll) { source, _ in
      try await source.deleteAll(query)
    }
  }

  /// Writes to the sources of an operation, and returns what the first of them stored.
  /// - Parameter write: Writes to a source. Receives what the main source stored, if the source is the cache.
  private func write<V: Sendable>(
    _ target: CacheTarget, _ operation: RepositoryOperation, _ name: DataSourceOperation,
    _ write: (AnyDataSource<T>, _ stored: V?) async throws -> V
  ) async throws -> V {
    switch resolved(operation) {
    case .main:
      return try await cache.changing(target.scope) { _ in try await write(main, nil) }
    case .cache:
      return try await cache.write(target) { try await write(cache.source, nil) }
    case .mainSync, .cacheSync, .default:
      return try await cache.changing(target.scope) { epoch in
        let stored = try await write(main, nil)
        await cache.follow(target, since: epoch, name) { _ = try await write(cache.source, stored) }
        return stored
      }
    }
  }

  // MARK: - Each

  /// Returns the value of each id, or nil, as the default operation reads single values: all ids that it doesn't find in
  /// the cache make one call to the main source.
  public func getEach(_ query: any Query) async throws -> [T?] {
    guard let ids = query as? any SeveralIds else { return try await main.getEach(query) }
    switch defaultOperation {
    case .main:
      return try await main.getEach(query)
    case .cache:
      var values: [T?] = []
      for query in ids.queries { values.append(try await valueIfFound(query, .cache)) }
      return values
    case .mainSync:
      return try await synchronizeEach(ids, Array(0..<ids.count), into: Array(repeating: nil, count: ids.count))
    case .cacheSync, .default:
      let cached = try await cachedEach(ids)
      let missing = cached.indices.filter { index in cached[index].map { !validity.accepts($0) } ?? true }
      guard !missing.isEmpty else { return cached }
      do {
        return try await synchronizeEach(ids, missing, into: cached)
      } catch  where defaultOperation == .cacheSync(fallback: true) && error.allowsFallback {
        guard cached.allSatisfy({ $0 != nil }) else { throw nothingToFallBackTo(after: error) }
        return cached
      }
    }
  }

  /// Returns what the cache has of each id, valid or not.
  private func cachedEach(_ ids: any SeveralIds) async throws -> [T?] {
    // Before the cache is read: a value that is stored meanwhile ends a bypass, and may not be the one that is read.
    let bypassed = cache.isIncoherent ? ids.queries.map { cache.isBypassed($0.keyValueAddress) } : []
    do {
      let cached = try await cache.source.getEach(ids)
      return bypassed.isEmpty ? cached : zip(cached, bypassed).map { $1 ? nil : $0 }
    } catch {
      _ = try cache.lookup(after: error, .getAll, ids)
      return Array(repeating: nil, count: ids.count)
    }
  }

  /// Reads the values at some positions of several ids from the main source, and updates the cache.
  private func synchronizeEach(_ ids: any SeveralIds, _ positions: [Int], into cached: [T?]) async throws -> [T?] {
    var result = cached
    let asked = ids.at(positions)
    let target = CacheTarget(of: asked)
    let stamp = cache.stamp(of: target.scope)
    let values = try await main.getEach(asked)
    for (position, value) in zip(positions, values) { result[position] = value }
    let found = values.indices.filter { values[$0] != nil }
    let gone = values.indices.filter { values[$0] == nil }
    let (source, foundIds, goneIds) = (cache.source, asked.at(found), asked.at(gone))
    await cache.keep(target, readAt: stamp, .putAll) {
      if !gone.isEmpty { try await source.delete(goneIds) }
      if !found.isEmpty { _ = try await source.putAll(found.map { values[$0]! }, in: foundIds) }
    }
    return result
  }

  private func valueIfFound(_ query: any Query, _ operation: RepositoryOperation) async throws -> T? {
    do { return try await get(query, operation: operation) } catch DataSourceError.notFound { return nil }
  }
}

extension RepositoryCache.Lookup {
  /// Whether the cache may have a value that the main source doesn't have.
  fileprivate var mayBeCached: Bool {
    switch self {
    case .nothing, .notSupported: false
    case .unknown, .invalid: true
    }
  }
}

extension Error {
  /// Whether a cached value may stand for what the main source failed to return. That there is no value is no failure.
  fileprivate var allowsFallback: Bool {
    !(self is CancellationError) && (self as? DataSourceError)?.kind != .notFound
  }
}

extension KeyValueAddress {
  /// Whether the result of `getAll` is one list, which a cache either has or doesn't have.
  fileprivate var isCacheableList: Bool {
    switch self {
    case .key, .keys(_, missing: .fail), .nothing: true
    default: false
    }
  }
}
