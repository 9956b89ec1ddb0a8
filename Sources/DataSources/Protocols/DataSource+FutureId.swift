extension GetDataSource {
  /// The value of an id, later.
  @discardableResult
  public func get<K: StableKey>(_ id: K) -> Future<T> {
    get(IdQuery(id))
  }

  /// The list of an id, later.
  @discardableResult
  public func getAll<K: StableKey>(_ id: K) -> Future<[T]> {
    getAll(IdQuery(id))
  }

  /// The values of several ids, later.
  @discardableResult
  public func getAll<K: StableKey>(_ ids: [K], missing: MissingIds = .fail) -> Future<[T]> {
    getAll(IdsQuery(ids, missing: missing))
  }
}

extension PutDataSource {
  /// Puts the value of an id, later.
  @discardableResult
  public func put<K: StableKey>(_ value: T?, forId id: K) -> Future<T> {
    put(value, in: IdQuery(id))
  }

  /// Puts the list of an id, later.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId id: K) -> Future<[T]> {
    putAll(array, in: IdQuery(id))
  }

  /// Puts one value for each id, later.
  @discardableResult
  public func putAll<K: StableKey>(_ array: [T], forId ids: [K]) -> Future<[T]> {
    putAll(array, in: IdsQuery(ids))
  }
}

extension DeleteDataSource {
  /// Deletes the value or list of an id, later.
  @discardableResult
  public func delete<K: StableKey>(_ id: K) -> Future<Void> {
    delete(IdQuery(id))
  }

  /// Deletes the values or lists of several ids, later.
  @discardableResult
  public func delete<K: StableKey>(_ ids: [K]) -> Future<Void> {
    delete(IdsQuery(ids))
  }

  /// Deletes the value or list of an id, later.
  @discardableResult
  public func deleteAll<K: StableKey>(_ id: K) -> Future<Void> {
    deleteAll(IdQuery(id))
  }

  /// Deletes the values or lists of several ids, later.
  @discardableResult
  public func deleteAll<K: StableKey>(_ ids: [K]) -> Future<Void> {
    deleteAll(IdsQuery(ids))
  }
}
