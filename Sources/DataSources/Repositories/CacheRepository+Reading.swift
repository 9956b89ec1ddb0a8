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
}
