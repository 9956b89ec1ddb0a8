/// A repository of a main source and a cache, which may be any two sources: one in memory before one in another process, say.
///
/// `standard` is `cacheSync(fallback: false)`, or what the repository was made with. No cache knows whether it has everything: lists of
/// everything, pages, and ids of which missing ones are skipped are always read from the main source, and not kept. The cache is no place
/// of truth: two calls for one query at the same time may leave in it what the slower one saw.
public struct CacheRepository<T: Sendable>: GetRepository, PutRepository, DeleteRepository {
  let main: AnyDataSource<T>
  let cache: AnyDataSource<T>
  private let validity: Validation<T>
  private let standard: RepositoryOperation

  /// - Parameters:
  ///   - validity: which of the cache's values may still be used. Others are got from the main source by `cacheSync`.
  ///   - standard: what calls do that don't say it.
  public init(
    main: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    cache: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    validity: Validation<T> = .always,
    standard: RepositoryOperation = .cacheSync()
  ) {
    self.main = AnyDataSource(main)
    self.cache = AnyDataSource(cache)
    self.validity = validity
    self.standard = standard == .standard ? .cacheSync() : standard
  }

  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> T {
    try await read(
      resolved(operation),
      get: { try await $0.get(query) },
      put: { _ = try await $0.put($1, in: query) as T },
      isValid: { validity.accepts($0) })
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T] {
    guard query.keyValueAddress.isListOfItsOwn else { return try await readSome(query, resolved(operation)) }
    return try await read(
      resolved(operation),
      get: { try await $0.getAll(query) },
      put: { _ = try await $0.putAll($1, in: query) as [T] },
      isValid: { validity.accepts($0) })
  }

  /// `cacheSync` puts into the cache first, `mainSync` into the main source; what the first of them stored is put into the other one.
  @discardableResult
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    let stored = try await write(resolved(operation), value) { try await $0.put($1, in: query) }
    guard let stored else { throw DataSourceError(.failed, "a put that stored nothing") }
    return stored
  }

  /// `cacheSync` puts into the cache first, `mainSync` into the main source; what the first of them stored is put into the other one.
  @discardableResult
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await write(resolved(operation), array) { try await $0.putAll($1, in: query) }
  }

  /// `cacheSync` deletes from the cache first, `mainSync` from the main source.
  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await write(resolved(operation), ()) { source, _ in try await source.delete(query) }
  }

  /// `cacheSync` deletes from the cache first, `mainSync` from the main source.
  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await write(resolved(operation), ()) { source, _ in try await source.deleteAll(query) }
  }

  private func resolved(_ operation: RepositoryOperation) -> RepositoryOperation {
    operation == .standard ? standard : operation
  }

  private func write<V: Sendable>(
    _ operation: RepositoryOperation, _ value: V, _ write: (AnyDataSource<T>, V) async throws -> V
  ) async throws -> V {
    switch operation {
    case .main: try await write(main, value)
    case .cache: try await write(cache, value)
    case .mainSync: try await write(cache, write(main, value))
    case .cacheSync, .standard: try await write(main, write(cache, value))
    }
  }
}
