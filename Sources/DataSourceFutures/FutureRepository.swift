import DataSources

// A repository that is written with futures. Its async operations call them, as in FutureDataSource.swift.

/// A get repository whose operations return futures. It gets its `async` operations from this module.
public protocol FutureGetRepository<T>: GetRepository {
  associatedtype T

  /// Returns one value. Fails as `GetRepository.get` does.
  func get(_ query: any Query, operation: RepositoryOperation) -> Future<T>
  /// Returns a list of values. Fails as `GetRepository.getAll` does.
  func getAll(_ query: any Query, operation: RepositoryOperation) -> Future<[T]>
}

/// A put repository whose operations return futures. It gets its `async` operations from this module.
public protocol FuturePutRepository<T>: PutRepository {
  associatedtype T

  /// Puts one value. The future's value is what was stored.
  func put(_ value: T?, in query: any Query, operation: RepositoryOperation) -> Future<T>
  /// Puts a list of values. The future's value is what was stored.
  func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) -> Future<[T]>
}

/// A delete repository whose operation returns a future. It gets its `async` operations from this module.
public protocol FutureDeleteRepository<T>: DeleteRepository {
  /// Deletes what the query addresses.
  func delete(_ query: any Query, operation: RepositoryOperation) -> Future<Void>
}

// The unavailable methods do what those in FutureDataSource.swift do.

extension FutureGetRepository {
  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> T {
    let future: Future<T> = get(query, operation: operation)
    return try await future.value
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T] {
    let future: Future<[T]> = getAll(query, operation: operation)
    return try await future.value
  }

  @available(*, unavailable, message: "the repository must implement it")
  public func get(_ query: any Query, operation: RepositoryOperation) -> Future<T> {
    Future(DataSourceError.notImplemented)
  }

  @available(*, unavailable, message: "the repository must implement it")
  public func getAll(_ query: any Query, operation: RepositoryOperation) -> Future<[T]> {
    Future(DataSourceError.notImplemented)
  }
}

extension FuturePutRepository {
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    let future: Future<T> = put(value, in: query, operation: operation)
    return try await future.value
  }

  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    let future: Future<[T]> = putAll(array, in: query, operation: operation)
    return try await future.value
  }

  @available(*, unavailable, message: "the repository must implement it")
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) -> Future<T> {
    Future(DataSourceError.notImplemented)
  }

  @available(*, unavailable, message: "the repository must implement it")
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) -> Future<[T]> {
    Future(DataSourceError.notImplemented)
  }
}

extension FutureDeleteRepository {
  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    let future: Future<Void> = delete(query, operation: operation)
    try await future.value
  }

  @available(*, unavailable, message: "the repository must implement it")
  public func delete(_ query: any Query, operation: RepositoryOperation) -> Future<Void> {
    Future(DataSourceError.notImplemented)
  }
}
