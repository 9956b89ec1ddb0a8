extension GetDataSource {
  /// The value of an id.
  public func get<K: StableKey>(_ id: K) async throws -> T {
    try await get(IdQuery(id))
  }

  /// The list of an id.
  public func getAll<K: StableKey>(_ id: K) async throws -> [T] {
    try await getAll(IdQuery(id))
  }

  /// The values of several ids, in their order. Fails with `notFound` when one is missing, unless missing ones are to be skipped.
  public func getAll<K: StableKey>(_ ids: [K], missing: MissingIds = .fail) async throws -> [T] {
    try await getAll(IdsQuery(ids, missing: missing))
  }

  /// The value of each id, nil for those that have none. One call an id: others may write between two of them.
  public func getEach<K: StableKey>(_ ids: [K]) async throws -> [T?] {
    var values: [T?] = []
    values.reserveCapacity(ids.count)
    for id in ids {
      do {
        values.append(try await get(IdQuery(id)))
      } catch let error as DataSourceError where error.kind == .notFound {
        values.append(nil)
      }
    }
    return values
  }
}

extension PutDataSource {
  /// Puts the value of an id.
  @discardableResult
  public func put<K: StableKey>(_ value: T?, forId id: K) async throws -> T {
    try await put(value, in: IdQuery(id))
  }

  /// Puts the list of an id.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId id: K) async throws -> [T] {
    try await putAll(array, in: IdQuery(id))
  }

  /// Puts one value for each id. Fails with `illegalArgument` when there are more of the one than of the other.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId ids: [K]) async throws -> [T] {
    try await putAll(array, in: IdsQuery(ids))
  }
}

extension DeleteDataSource {
  /// Deletes the value or list of an id.
  public func delete<K: StableKey>(_ id: K) async throws {
    try await delete(IdQuery(id))
  }

  /// Deletes the values or lists of several ids.
  public func delete<K: StableKey>(_ ids: [K]) async throws {
    try await delete(IdsQuery(ids))
  }

  /// Deletes the value or list of an id.
  public func deleteAll<K: StableKey>(_ id: K) async throws {
    try await deleteAll(IdQuery(id))
  }

  /// Deletes the values or lists of several ids.
  public func deleteAll<K: StableKey>(_ ids: [K]) async throws {
    try await deleteAll(IdsQuery(ids))
  }
}
