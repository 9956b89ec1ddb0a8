import DataSources

// The operations of data sources for code that can't wait: each starts a task, returns immediately, and resolves its
// future when the async operation of the same name ends.
//
// Where both could be called, the compiler must not choose these silently, or an error would vanish with the future.
// In an async function it prefers the async operation. But in the top-level code of a main.swift, and in a task's
// closure without an `await`, it chooses the synchronous one. So these operations are not available in asynchronous
// contexts, and their results can't be discarded silently.

extension GetDataSource {
  /// Returns one value.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func get(_ query: any Query) -> Future<T> {
    Future { try await self.get(query) }
  }

  /// Returns a list of values.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func getAll(_ query: any Query) -> Future<[T]> {
    Future { try await self.getAll(query) }
  }

  /// Returns the single value of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func get<K: StableKey>(_ id: K) -> Future<T> {
    get(IdQuery(id))
  }

  /// Returns the list of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func getAll<K: StableKey>(_ id: K) -> Future<[T]> {
    getAll(IdQuery(id))
  }

  /// Returns the single values of several ids, in the order of the ids.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func getAll<K: StableKey>(_ ids: [K], missing: MissingIds = .fail) -> Future<[T]> {
    getAll(IdsQuery(ids, missing: missing))
  }

  /// Returns the single value of each id, or nil for an id that has none.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func getEach<K: StableKey>(_ ids: [K]) -> Future<[T?]> {
    Future { try await self.getEach(ids) }
  }
}

extension PutDataSource {
  /// Puts one value. The future's value is what was stored.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func put(_ value: T?, in query: any Query) -> Future<T> {
    Future { try await self.put(value, in: query) }
  }

  /// Puts a list of values. The future's value is what was stored.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func putAll(_ array: [T], in query: any Query) -> Future<[T]> {
    Future { try await self.putAll(array, in: query) }
  }

  /// Puts the single value of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func put<K: StableKey>(_ value: T?, forId id: K) -> Future<T> {
    put(value, in: IdQuery(id))
  }

  /// Puts the list of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func putAll<K: StableKey>(_ array: [T], forId id: K) -> Future<[T]> {
    putAll(array, in: IdQuery(id))
  }

  /// Puts one single value per id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func putAll<K: StableKey>(_ array: [T], forId ids: [K]) -> Future<[T]> {
    putAll(array, in: IdsQuery(ids))
  }
}

extension DeleteDataSource {
  /// Deletes what the query addresses.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func delete(_ query: any Query) -> Future<Void> {
    Future { try await self.delete(query) }
  }

  /// Does the same as `delete`.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func deleteAll(_ query: any Query) -> Future<Void> {
    Future { try await self.deleteAll(query) }
  }

  /// Deletes the value or list of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func delete<K: StableKey>(_ id: K) -> Future<Void> {
    delete(IdQuery(id))
  }

  /// Deletes the values or lists of several ids.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func delete<K: StableKey>(_ ids: [K]) -> Future<Void> {
    delete(IdsQuery(ids))
  }

  /// Deletes the value or list of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func deleteAll<K: StableKey>(_ id: K) -> Future<Void> {
    deleteAll(IdQuery(id))
  }

  /// Deletes the values or lists of several ids.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func deleteAll<K: StableKey>(_ ids: [K]) -> Future<Void> {
    deleteAll(IdsQuery(ids))
  }
}
