/// A repository of a main source and a cache. Both can be any source: for example, a cache in memory in front of a
/// source in another process.
///
/// **Reads.** By default (`cacheSync`), a value comes from the cache; if the cache doesn't have it, or it isn't valid
/// any more, it comes from the main source and goes to the cache. A value that the main source no longer has leaves the
/// cache, too. A cache doesn't know whether it has everything. So lists of everything, pages, and ids whose missing
/// values are skipped always come from the main source and are not cached.
///
/// **Writes.** A put or a deletion goes to the main source first, and to the cache only if the main source has accepted
/// it. If the main source fails, the call throws its error, and the cache is unchanged: no reader sees a value that was
/// never stored. Once the main source has accepted a write, the write has succeeded, and the cache must not contradict
/// it: if the cache can't store the new value, it drops the old one, and the call succeeds, even if its task has been
/// cancelled meanwhile. Only if the cache can't drop the old value either, the call throws the cache's error, because
/// readers of the cache may see that value. Repeating the call is safe.
///
/// The main source is the only source of truth. The cache may be out of date, until the next write or `mainSync` read of
/// the same value, in three cases: another process has written to the main source; an error left open whether the main
/// source has executed a write (such as a timeout); or two calls for the value ran at the same time, and the cache kept
/// the result of the slower one. A `validity` that accepts values for a limited time bounds all three.
public struct CacheRepository<T: Sendable>: GetRepository, PutRepository, DeleteRepository {
  private let main: AnyDataSource<T>
  private let cache: AnyDataSource<T>
  private let validity: Validation<T>
  private let defaultOperation: RepositoryOperation

  /// - Parameters:
  ///   - validity: Accepts the cached values that are still valid. With `cacheSync`, others are read from the main
  ///     source.
  ///   - defaultOperation: The operation of calls that don't name one.
  public init(
    main: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    cache: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    validity: Validation<T> = .always,
    defaultOperation: RepositoryOperation = .cacheSync()
  ) {
    self.main = AnyDataSource(main)
    self.cache = AnyDataSource(cache)
    self.validity = validity
    self.defaultOperation = defaultOperation == .default ? .cacheSync() : defaultOperation
  }

  private func resolved(_ operation: RepositoryOperation) -> RepositoryOperation {
    operation == .default ? defaultOperation : operation
  }

  // MARK: - Reading

  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> T {
    if case .documents = query.keyValueAddress {
      // The cache may lack values that come first.
      return try await readUncached(operation) { [try await $0.get(query)] }[0]
    }
    return try await read(
      query, operation,
      get: { try await $0.get(query) },
      put: { try await $0.put($1, in: query) },
      isValid: { validity.accepts($0) })
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T] {
    guard query.keyValueAddress.isCacheableList else {
      return try await readUncached(operation) { try await $0.getAll(query) }
    }
    return try await read(
      query, operation,
      get: { try await $0.getAll(query) },
      put: { try await $0.putAll($1, in: query) },
      isValid: { validity.accepts($0) })
  }

  /// Reads a value or a list.
  /// - Parameters:
  ///   - get: Gets it from a source.
  ///   - put: Puts it into a source.
  ///   - isValid: Returns whether a cached value is still valid.
  private func read<V: Sendable>(
    _ query: any Query, _ operation: RepositoryOperation,
    get: (AnyDataSource<T>) async throws -> V,
    put: (AnyDataSource<T>, V) async throws -> V,
    isValid: (V) -> Bool
  ) async throws -> V {
    var stale: V?
    var mayBeCached = true
    switch resolved(operation) {
    case .main: return try await get(main)
    case .cache: return try await get(cache)
    case .mainSync: break
    case .cacheSync, .default:
      do {
        let value = try await get(cache)
        if isValid(value) { return value }
        stale = value
      } catch let error as DataSourceError where error.kind == .notFound || error.kind == .notValid {
        mayBeCached = error.kind == .notValid
      }
    }
    let value: V
    do {
      value = try await get(main)
    } catch let error as DataSourceError where error.kind == .notFound {
      // The main source hasn't failed: it says that the value doesn't exist. That is the result, even if the cache can't
      // drop the value.
      if mayBeCached { try? await dropFromCache(query) }
      throw error
    } catch  where resolved(operation) == .cacheSync(fallback: true) && !(error is CancellationError) {
      guard let stale else {
        throw DataSourceError(.notFound, "the cache has no value to fall back to after: \(error)")
      }
      return stale
    }
    try await updateCache(query) { _ = try await put(cache, value) }
    return value
  }

  /// Reads a list from the main source. The cache is only a fallback, because it may have any part of the list.
  private func readUncached(
    _ operation: RepositoryOperation, get: (AnyDataSource<T>) async throws -> [T]
  ) async throws -> [T] {
    switch resolved(operation) {
    case .cache:
      return try await get(cache)
    case .main, .mainSync, .cacheSync(fallback: false), .default:
      return try await get(main)
    case .cacheSync(fallback: true):
      do {
        return try await get(main)
      } catch  where !(error is CancellationError) && (error as? DataSourceError)?.kind != .notFound {
        let cached = try await get(cache)
        guard !cached.isEmpty else {
          throw DataSourceError(.notFound, "the cache has no value to fall back to after: \(error)")
        }
        return cached
      }
    }
  }

  // MARK: - Writing

  @discardableResult
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    try await write(query, operation) { source, stored in
      try await source.put(stored ?? value, in: query)
    }
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await write(query, operation) { source, stored in
      try await source.putAll(stored ?? array, in: query)
    }
  }

  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await write(query, operation) { source, _ in try await source.delete(query) }
  }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await write(query, operation) { source, _ in try await source.deleteAll(query) }
  }

  /// Writes to the sources of an operation, and returns what the first of them stored.
  /// - Parameter write: Writes to a source. Receives what the main source stored, if the source is the cache.
  private func write<V: Sendable>(
    _ query: any Query, _ operation: RepositoryOperation,
    _ write: (AnyDataSource<T>, _ stored: V?) async throws -> V
  ) async throws -> V {
    switch resolved(operation) {
    case .main: return try await write(main, nil)
    case .cache: return try await write(cache, nil)
    case .mainSync, .cacheSync, .default:
      let stored = try await write(main, nil)
      try await updateCache(query) { _ = try await write(cache, stored) }
      return stored
    }
  }

  /// Updates the cache with what the main source has. If that fails, drops what the cache has for the query: it may be
  /// out of date.
  /// - Throws: The cache's error if it can't drop it either.
  private func updateCache(_ query: any Query, _ update: () async throws -> Void) async throws {
    do { try await update() } catch { try await dropFromCache(query) }
  }

  /// Drops what the cache has for a query, in a task of its own: if the caller's task has been cancelled, the main
  /// source has still changed.
  private func dropFromCache(_ query: any Query) async throws {
    let cache = cache
    try await Task { try await cache.delete(query) }.value
  }
}

extension KeyValueAddress {
  /// Whether the result of `getAll` is one list, which a cache either has or doesn't have.
  fileprivate var isCacheableList: Bool {
    switch self {
    case .key, .keys(_, missing: .fail), .nothing: true
    case .keys(_, missing: .skip), .all, .prefix, .offset, .after, .documents: false
    }
  }
}
