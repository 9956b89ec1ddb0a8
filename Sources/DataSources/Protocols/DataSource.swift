/// A source of values of one type. What it can do is said by `GetDataSource`, `PutDataSource` and `DeleteDataSource`.
///
/// Sources are used from any task. Every operation can also be called where there is no `await`, and gives a `Future` there.
public protocol DataSource<T>: Sendable {
  associatedtype T: Sendable
}

/// A source that values can be got from.
public protocol GetDataSource<T>: DataSource {
  // Declared here again, so that it is inferred from the operations in spite of their twins that give futures.
  associatedtype T

  /// One value.
  /// - Throws: `DataSourceError.notFound` when there is none, `.queryNotSupported` for a query the source doesn't know.
  func get(_ query: any Query) async throws -> T

  /// A list of values.
  /// - Throws: `DataSourceError.notFound` when there is none, which is not the same as an empty list; `.queryNotSupported` for a query
  ///   the source doesn't know.
  func getAll(_ query: any Query) async throws -> [T]
}

/// A source that values can be put into, or that acts on them otherwise.
public protocol PutDataSource<T>: DataSource {
  // As in GetDataSource.
  associatedtype T

  /// Puts one value.
  /// - Parameter value: nil where the query says all that there is to say. Sources that store values throw `.illegalArgument` then.
  /// - Returns: what was stored.
  /// - Throws: `DataSourceError.queryNotSupported` for a query the source doesn't know, whatever the value.
  @discardableResult
  func put(_ value: T?, in query: any Query) async throws -> T

  /// Puts a list of values, which may be empty.
  /// - Returns: what was stored.
  /// - Throws: `DataSourceError.queryNotSupported` for a query the source doesn't know.
  @discardableResult
  func putAll(_ array: [T], in query: any Query) async throws -> [T]
}

/// A source that values can be deleted from.
public protocol DeleteDataSource<T>: DataSource {
  /// Deletes what the query addresses, be it a value or a list. It is no error when there is nothing.
  /// - Throws: `DataSourceError.queryNotSupported` for a query the source doesn't know.
  func delete(_ query: any Query) async throws

  /// Behaves as `delete`.
  func deleteAll(_ query: any Query) async throws
}

extension DeleteDataSource {
  public func deleteAll(_ query: any Query) async throws {
    try await delete(query)
  }
}
