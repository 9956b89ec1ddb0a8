/// A get source that is written with futures. Its `async` operations come by themselves.
public protocol FutureGetDataSource<T>: GetDataSource {
  associatedtype T

  /// One value, later. Fails as `GetDataSource`'s does.
  func get(_ query: any Query) -> Future<T>
  /// A list of values, later. Fails as `GetDataSource`'s does.
  func getAll(_ query: any Query) -> Future<[T]>
}

/// A put source that is written with futures. Its `async` operations come by themselves.
public protocol FuturePutDataSource<T>: PutDataSource {
  associatedtype T

  /// Puts one value; the future has what was stored.
  @discardableResult
  func put(_ value: T?, in query: any Query) -> Future<T>
  /// Puts a list of values; the future has what was stored.
  @discardableResult
  func putAll(_ array: [T], in query: any Query) -> Future<[T]>
}

/// A delete source that is written with futures. Its `async` operations come by themselves.
public protocol FutureDeleteDataSource<T>: DeleteDataSource {
  /// Deletes what the query addresses, later.
  @discardableResult
  func delete(_ query: any Query) -> Future<Void>
}

// The unavailable twins hide those of GetDataSource, PutDataSource and DeleteDataSource, which are written with the `async` operations:
// a type that leaves a requirement out fails to compile instead of calling itself for ever.

extension FutureGetDataSource {
  public func get(_ query: any Query) async throws -> T {
    let future: Future<T> = get(query)
    return try await future.value
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    let future: Future<[T]> = getAll(query)
    return try await future.value
  }

  @available(*, unavailable, message: "the source has to implement it")
  public func get(_ query: any Query) -> Future<T> { Future(failing: DataSourceError.notImplemented) }

  @available(*, unavailable, message: "the source has to implement it")
  public func getAll(_ query: any Query) -> Future<[T]> { Future(failing: DataSourceError.notImplemented) }
}

extension FuturePutDataSource {
  public func put(_ value: T?, in query: any Query) async throws -> T {
    let future: Future<T> = put(value, in: query)
    return try await future.value
  }

  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    let future: Future<[T]> = putAll(array, in: query)
    return try await future.value
  }

  @available(*, unavailable, message: "the source has to implement it")
  public func put(_ value: T?, in query: any Query) -> Future<T> { Future(failing: DataSourceError.notImplemented) }

  @available(*, unavailable, message: "the source has to implement it")
  public func putAll(_ array: [T], in query: any Query) -> Future<[T]> {
    Future(failing: DataSourceError.notImplemented)
  }
}

extension FutureDeleteDataSource {
  public func delete(_ query: any Query) async throws {
    let future: Future<Void> = delete(query)
    try await future.value
  }

  @available(*, unavailable, message: "the source has to implement it")
  public func delete(_ query: any Query) -> Future<Void> { Future(failing: DataSourceError.notImplemented) }
}
