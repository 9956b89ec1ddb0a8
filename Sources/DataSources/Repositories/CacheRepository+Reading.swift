extension CacheRepository {
  /// Reads a value or a list.
  /// - Parameters:
  ///   - get: gets it from a source.
  ///   - put: puts it into a source.
  ///   - isValid: whether what the cache has may still be used.
  func read<V: Sendable>(
    _ operation: RepositoryOperation,
    get: @Sendable (AnyDataSource<T>) async throws -> V,
    put: @Sendable (AnyDataSource<T>, V) async throws -> Void,
    isValid: @Sendable (V) -> Bool
  ) async throws -> V {
    switch operation {
    case .main:
      return try await get(main)
    case .cache:
      return try await get(cache)
    case .mainSync:
      let value = try await get(main)
      try await put(cache, value)
      return value
    case .cacheSync, .standard:
      var stale: V?
      do {
        let value = try await get(cache)
        if isValid(value) { return value }
        stale = value
      } catch let error as DataSourceError where error.kind == .notFound || error.kind == .notValid {
        stale = nil
      }
      let value: V
      do {
        value = try await get(main)
      } catch  where operation == .cacheSync(fallback: true) && !(error is CancellationError) {
        guard let stale else { throw DataSourceError(.notFound, "nothing to fall back to after: \(error)") }
        // That there is nothing any more is an answer of the main source's, no failure.
        if (error as? DataSourceError)?.kind == .notFound { throw error }
        return stale
      }
      try await put(cache, value)
      return value
    }
  }

  /// Reads a list of which the cache may have any part. It is only asked when there is no other answer.
  func readSome(_ query: any Query, _ operation: RepositoryOperation) async throws -> [T] {
    switch operation {
    case .cache:
      return try await cache.getAll(query)
    case .main, .mainSync, .cacheSync(fallback: false), .standard:
      return try await main.getAll(query)
    case .cacheSync(fallback: true):
      do {
        return try await main.getAll(query)
      } catch  where !(error is CancellationError) && (error as? DataSourceError)?.kind != .notFound {
        let kept = try await cache.getAll(query)
        guard !kept.isEmpty else { throw DataSourceError(.notFound, "nothing to fall back to after: \(error)") }
        return kept
      }
    }
  }
}

extension KeyValueAddress {
  /// Whether what `getAll` gives is one list, which a cache has or has not.
  var isListOfItsOwn: Bool {
    switch self {
    case .key, .keys(_, missing: .fail), .nothing: true
    case .keys(_, missing: .skip), .all, .offset, .after: false
    }
  }
}
