/// Which of a repository's sources an operation uses. `CacheRepository` explains what each operation does.
public enum RepositoryOperation: Hashable, Sendable {
  /// The default of the repository.
  case `default`
  /// The main source only.
  case main
  /// The cache only.
  case cache
  /// The main source; the result goes to the cache, too.
  case mainSync
  /// Reads the cache first, and the main source for what the cache lacks; the result goes to the cache. With
  /// `fallback`, if the main source fails, returns a cached value that is no longer valid, if there is one. Writes go to
  /// the main source first, as with `mainSync`.
  case cacheSync(fallback: Bool = false)
}

/// A source whose calls can say where the result comes from. A call that doesn't is `default`.
public protocol GetRepository<T>: GetDataSource {
  /// Returns one value. Throws the error of the source in question.
  func get(_ query: any Query, operation: RepositoryOperation) async throws -> T
  /// Returns a list of values. Throws the error of the source in question.
  func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T]
}

/// A source whose calls can say where the value goes. A call that doesn't is `default`.
public protocol PutRepository<T>: PutDataSource {
  /// Puts one value and returns what was stored. Throws the error of the source in question.
  @discardableResult
  func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T
  /// Puts a list of values and returns what was stored. Throws the error of the source in question.
  @discardableResult
  func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T]
}

/// A source whose calls can say where to delete. A call that doesn't is `default`.
public protocol DeleteRepository<T>: DeleteDataSource {
  /// Deletes what the query addresses. Throws the error of the source in question.
  func delete(_ query: any Query, operation: RepositoryOperation) async throws
  /// Does the same as `delete`.
  func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws
}

extension GetRepository {
  public func get(_ query: any Query) async throws -> T { try await get(query, operation: .default) }
  public func getAll(_ query: any Query) async throws -> [T] { try await getAll(query, operation: .default) }
}

extension PutRepository {
  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T {
    try await put(value, in: query, operation: .default)
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await putAll(array, in: query, operation: .default)
  }
}

extension DeleteRepository {
  public func delete(_ query: any Query) async throws { try await delete(query, operation: .default) }
  public func deleteAll(_ query: any Query) async throws { try await deleteAll(query, operation: .default) }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await delete(query, operation: operation)
  }
}

// MARK: - Calls by id

extension GetRepository {
  /// Returns the single value of an id.
  public func get<K: StableKey>(_ id: K, operation: RepositoryOperation) async throws -> T {
    try await get(IdQuery(id), operation: operation)
  }

  /// Returns the list of an id.
  public func getAll<K: StableKey>(_ id: K, operation: RepositoryOperation) async throws -> [T] {
    try await getAll(IdQuery(id), operation: operation)
  }

  /// Returns the value that a query addresses; nil if there is none.
  public func getIfPresent(_ query: any Query, operation: RepositoryOperation) async throws -> T? {
    do { return try await get(query, operation: operation) } catch DataSourceError.notFound { return nil }
  }

  /// Returns the single value of an id; nil if there is none.
  public func getIfPresent<K: StableKey>(_ id: K, operation: RepositoryOperation) async throws -> T? {
    try await getIfPresent(IdQuery(id), operation: operation)
  }

  /// Returns the single values of several ids, in the order of the ids.
  /// - Parameter missing: What to do about ids without a value: fail with `notFound`, or skip them.
  public func getAll<K: StableKey>(
    _ ids: [K], missing: MissingIds = .fail, operation: RepositoryOperation
  ) async throws -> [T] {
    try await getAll(IdsQuery(ids, missing: missing), operation: operation)
  }
}

extension PutRepository {
  /// Puts the single value of an id.
  @discardableResult
  public func put<K: StableKey>(_ value: T?, forId id: K, operation: RepositoryOperation) async throws -> T {
    try await put(value, in: IdQuery(id), operation: operation)
  }

  /// Puts the list of an id.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId id: K, operation: RepositoryOperation) async throws -> [T] {
    try await putAll(array, in: IdQuery(id), operation: operation)
  }

  /// Puts one single value per id.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId ids: [K], operation: RepositoryOperation) async throws -> [T] {
    try await putAll(array, in: IdsQuery(ids), operation: operation)
  }
}

extension DeleteRepository {
  /// Deletes the value or list of an id.
  public func delete<K: StableKey>(_ id: K, operation: RepositoryOperation) async throws {
    try await delete(IdQuery(id), operation: operation)
  }

  /// Deletes the values or lists of several ids.
  public func delete<K: StableKey>(_ ids: [K], operation: RepositoryOperation) async throws {
    try await delete(IdsQuery(ids), operation: operation)
  }

  /// Deletes the value or list of an id.
  public func deleteAll<K: StableKey>(_ id: K, operation: RepositoryOperation) async throws {
    try await deleteAll(IdQuery(id), operation: operation)
  }

  /// Deletes the values or lists of several ids.
  public func deleteAll<K: StableKey>(_ ids: [K], operation: RepositoryOperation) async throws {
    try await deleteAll(IdsQuery(ids), operation: operation)
  }
}
