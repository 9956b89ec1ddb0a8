extension GetRepository {
  /// The value of an id.
  public func get<K: StableKey>(_ id: K, operation: RepositoryOperation) async throws -> T {
    try await get(IdQuery(id), operation: operation)
  }

  /// The list of an id.
  public func getAll<K: StableKey>(_ id: K, operation: RepositoryOperation) async throws -> [T] {
    try await getAll(IdQuery(id), operation: operation)
  }

  /// The values of several ids, in their order.
  public func getAll<K: StableKey>(_ ids: [K], operation: RepositoryOperation) async throws -> [T] {
    try await getAll(IdsQuery(ids), operation: operation)
  }
}

extension PutRepository {
  /// Puts the value of an id.
  @discardableResult
  public func put<K: StableKey>(_ value: T?, forId id: K, operation: RepositoryOperation) async throws -> T {
    try await put(value, in: IdQuery(id), operation: operation)
  }

  /// Puts the list of an id.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId id: K, operation: RepositoryOperation) async throws -> [T] {
    try await putAll(array, in: IdQuery(id), operation: operation)
  }

  /// Puts one value for each id.
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
}
