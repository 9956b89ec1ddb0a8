import DataSources

// A source that is written with futures. Its async operations call them.

/// A get source whose operations return futures. It gets its `async` operations from this module.
public protocol FutureGetDataSource<T>: GetDataSource {
  associatedtype T

  /// Returns one value. Fails as `GetDataSource.get` does.
  func get(_ query: any Query) -> Future<T>
  /// Returns a list of values. Fails as `GetDataSource.getAll` does.
  func getAll(_ query: any Query) -> Future<[T]>
}

/// A put source whose operations return futures. It gets its `async` operations from this module.
public protocol FuturePutDataSource<T>: PutDataSource {
  associatedtype T

  /// Puts one value. The future's value is what was stored.
  func put(_ value: T?, in query: any Query) -> Future<T>
  /// Puts a list of values. The future's value is what was stored.
  func putAll(_ array: [T], in query: any Query) -> Future<[T]>
}

/// A delete source whose operation returns a future. It gets its `async` operations from this module.
public protocol FutureDeleteDataSource<T>: DeleteDataSource {
  /// Deletes what the query addresses.
  func delete(_ query: any Query) -> Future<Void>
}

// The unavailable methods hide those of GetDataSource, PutDataSource and DeleteDataSource, which call the async
// operations: a type that doesn't implement a requirement fails to compile, instead of calling itself forever.

extension FutureGetDataSource {
  public func get(_ query: any Query) async throws -> T {
    let future: Future<T> = get(query)
    return try await future.value
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    let future: Future<[T]> = getAll(query)
    return try await future.value
  }

  @available(*, unavailable, message: "the source must implement it")
  public func get(_ query: any Query) -> Future<T> { Future(DataSourceError.notImplemented) }

  @available(*, unavailable, message: "the source must implement it")
  public func getAll(_ query: any Query) -> Future<[T]> { Future(DataSourceError.notImplemented) }
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

  @available(*, unavailable, message: "the source must implement it")
  public func put(_ value: T?, in query: any Query) -> Future<T> { Future(DataSourceError.notImplemented) }

  @available(*, unavailable, message: "the source must implement it")
  public func putAll(_ array: [T], in query: any Query) -> Future<[T]> {
    Future(DataSourceError.notImplemented)
  }
}

extension FutureDeleteDataSource {
  public func delete(_ query: any Query) async throws {
    let future: Future<Void> = delete(query)
    try await future.value
  }

  @available(*, unavailable, message: "the source must implement it")
  public func delete(_ query: any Query) -> Future<Void> { Future(DataSourceError.notImplemented) }
}

extension Query {
  /// Ends the process with a message that names the query, the operation and the source.
  ///
  /// It exists so that code written for Harmony compiles. A service should throw `notSupported(_:_:)` instead: a query
  /// that comes from outside must not end the process.
  public func fatalError<D: DataSource>(_ operation: DataSourceOperation, _ source: D) -> Never {
    Swift.fatalError(notSupported(operation, source).message)
  }
}
