/// A source of values of one type. `GetDataSource`, `PutDataSource` and `DeleteDataSource` say what it can do.
///
/// A source can be used from any task. Every operation is `async`; code that can't wait imports the module
/// `DataSourceFutures`.
public protocol DataSource<T>: Sendable {
  associatedtype T: Sendable
}

/// A source to get values from.
public protocol GetDataSource<T>: DataSource {
  // Declared again, so that the compiler infers it from the async operations even if a type also has operations that
  // return futures.
  associatedtype T

  /// Returns one value.
  /// - Throws: `DataSourceError.notFound` if there is none, `.queryNotSupported` for a query that the source doesn't
  ///   know.
  func get(_ query: any Query) async throws -> T

  /// Returns a list of values.
  /// - Throws: `DataSourceError.notFound` if there is none, which is not the same as an empty list;
  ///   `.queryNotSupported` for a query that the source doesn't support.
  func getAll(_ query: any Query) async throws -> [T]

  /// Returns the single value of each id of a query such as `IdsQuery`, in the order of the ids; nil for an id that has
  /// none.
  ///
  /// The default makes one call to `get` per id. A key-value source reads all of them in one step, and a remote one in
  /// one exchange with the server.
  /// - Throws: `DataSourceError.queryNotSupported` for a query that doesn't address keys, one by one.
  func getEach(_ query: any Query) async throws -> [T?]
}

/// A source to put values into, or to perform other actions on values with.
public protocol PutDataSource<T>: DataSource {
  // As in GetDataSource.
  associatedtype T

  /// Puts one value.
  /// - Parameter value: nil if the query alone says everything. Sources that store values then throw
  ///   `.illegalArgument`.
  /// - Returns: What was stored.
  /// - Throws: `DataSourceError.queryNotSupported` for a query that the source doesn't support, whatever the value.
  @discardableResult
  func put(_ value: T?, in query: any Query) async throws -> T

  /// Puts a list of values, which may be empty.
  /// - Returns: What was stored.
  /// - Throws: `DataSourceError.queryNotSupported` for a query that the source doesn't support.
  @discardableResult
  func putAll(_ array: [T], in query: any Query) async throws -> [T]
}

/// A source to delete values from.
public protocol DeleteDataSource<T>: DataSource {
  /// Deletes what the query addresses, whether it is a single value or a list. Succeeds if there is nothing to delete.
  /// - Throws: `DataSourceError.queryNotSupported` for a query that the source doesn't support.
  func delete(_ query: any Query) async throws

  /// Does the same as `delete`.
  func deleteAll(_ query: any Query) async throws
}

extension GetDataSource {
  public func getEach(_ query: any Query) async throws -> [T?] {
    guard case .keys(let keys, _) = query.keyValueAddress else { throw query.notSupported(.getAll, self) }
    var values: [T?] = []
    values.reserveCapacity(keys.count)
    for query in (query as? any SeveralIds)?.queries ?? keys.map({ IdQuery($0) }) {
      do { values.append(try await get(query)) } catch DataSourceError.notFound { values.append(nil) }
    }
    return values
  }
}

extension DeleteDataSource {
  public func deleteAll(_ query: any Query) async throws {
    try await delete(query)
  }
}

// MARK: - Calls by id

extension GetDataSource {
  /// Returns the single value of an id.
  public func get<K: StableKey>(_ id: K) async throws -> T {
    try await get(IdQuery(id))
  }

  /// Returns the value that a query addresses; nil if there is none.
  public func getIfPresent(_ query: any Query) async throws -> T? {
    do { return try await get(query) } catch DataSourceError.notFound { return nil }
  }

  /// Returns the single value of an id; nil if there is none.
  public func getIfPresent<K: StableKey>(_ id: K) async throws -> T? {
    try await getIfPresent(IdQuery(id))
  }

  /// Returns the list of an id.
  public func getAll<K: StableKey>(_ id: K) async throws -> [T] {
    try await getAll(IdQuery(id))
  }

  /// Returns the single values of several ids, in the order of the ids.
  /// - Parameter missing: What to do about ids without a value: fail with `notFound`, or skip them.
  public func getAll<K: StableKey>(_ ids: [K], missing: MissingIds = .fail) async throws -> [T] {
    try await getAll(IdsQuery(ids, missing: missing))
  }

  /// Returns the single value of each id, in the order of the ids; nil for an id that has none. It is one call to the
  /// source if the source can do that, as all key-value sources can; otherwise others can write in between.
  public func getEach<K: StableKey>(_ ids: [K]) async throws -> [T?] {
    try await getEach(IdsQuery(ids))
  }
}

extension PutDataSource {
  /// Puts the single value of an id.
  @discardableResult
  public func put<K: StableKey>(_ value: T?, forId id: K) async throws -> T {
    try await put(value, in: IdQuery(id))
  }

  /// Puts the list of an id.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId id: K) async throws -> [T] {
    try await putAll(array, in: IdQuery(id))
  }

  /// Puts one single value per id. Fails with `illegalArgument` if the counts differ.
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
