import DataSources

// The operations of repositories for code that can't wait. The notes in DataSource+Future.swift apply.

extension GetRepository {
  /// Returns one value.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func get(_ query: any Query, operation: RepositoryOperation) -> Future<T> {
    Future { try await self.get(query, operation: operation) }
  }

  /// Returns a list of values.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func getAll(_ query: any Query, operation: RepositoryOperation) -> Future<[T]> {
    Future { try await self.getAll(query, operation: operation) }
  }

  /// Returns the single value of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func get<K: StableKey>(_ id: K, operation: RepositoryOperation) -> Future<T> {
    get(IdQuery(id), operation: operation)
  }

  /// Returns the list of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func getAll<K: StableKey>(_ id: K, operation: RepositoryOperation) -> Future<[T]> {
    getAll(IdQuery(id), operation: operation)
  }

  /// Returns the single values of several ids, in the order of the ids.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func getAll<K: StableKey>(_ ids: [K], missing: MissingIds = .fail, operation: RepositoryOperation) -> Future<
    [T]
  > {
    getAll(IdsQuery(ids, missing: missing), operation: operation)
  }
}

extension PutRepository {
  /// Puts one value. The future's value is what was stored.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) -> Future<T> {
    Future { try await self.put(value, in: query, operation: operation) }
  }

  /// Puts a list of values. The future's value is what was stored.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) -> Future<[T]> {
    Future { try await self.putAll(array, in: query, operation: operation) }
  }

  /// Puts the single value of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func put<K: StableKey>(_ value: T?, forId id: K, operation: RepositoryOperation) -> Future<T> {
    put(value, in: IdQuery(id), operation: operation)
  }

  /// Puts the list of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func putAll<K: StableKey>(_ array: [T], forId id: K, operation: RepositoryOperation) -> Future<[T]> {
    putAll(array, in: IdQuery(id), operation: operation)
  }

  /// Puts one single value per id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func putAll<K: StableKey>(_ array: [T], forId ids: [K], operation: RepositoryOperation) -> Future<[T]> {
    putAll(array, in: IdsQuery(ids), operation: operation)
  }
}

extension DeleteRepository {
  /// Deletes what the query addresses.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func delete(_ query: any Query, operation: RepositoryOperation) -> Future<Void> {
    Future { try await self.delete(query, operation: operation) }
  }

  /// Does the same as `delete`.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func deleteAll(_ query: any Query, operation: RepositoryOperation) -> Future<Void> {
    Future { try await self.deleteAll(query, operation: operation) }
  }

  /// Deletes the value or list of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func delete<K: StableKey>(_ id: K, operation: RepositoryOperation) -> Future<Void> {
    delete(IdQuery(id), operation: operation)
  }

  /// Deletes the values or lists of several ids.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func delete<K: StableKey>(_ ids: [K], operation: RepositoryOperation) -> Future<Void> {
    delete(IdsQuery(ids), operation: operation)
  }

  /// Deletes the value or list of an id.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func deleteAll<K: StableKey>(_ id: K, operation: RepositoryOperation) -> Future<Void> {
    deleteAll(IdQuery(id), operation: operation)
  }

  /// Deletes the values or lists of several ids.
  @available(*, noasync, message: "use 'try await' in an async function, or Future { try await … }")
  public func deleteAll<K: StableKey>(_ ids: [K], operation: RepositoryOperation) -> Future<Void> {
    deleteAll(IdsQuery(ids), operation: operation)
  }
}
