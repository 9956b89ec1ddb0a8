extension Query {
  /// The error of a source that doesn't support this query: `throw query.notSupported(.get, self)`.
  public func notSupported<D: DataSource>(_ operation: DataSourceOperation, _ source: D) -> DataSourceError {
    DataSourceError(.queryNotSupported, "\(D.self) doesn't support \(Self.self) in \(operation)")
  }

  /// Ends the process with a message that names the query, the operation and the source.
  ///
  /// Code that was written to the older habit compiles with it. A service should throw `notSupported(_:_:)`: a query that comes from
  /// elsewhere must not end the process.
  public func fatalError<D: DataSource>(_ operation: DataSourceOperation, _ source: D) -> Never {
    Swift.fatalError(notSupported(operation, source).message)
  }
}

/// One of the operations of a data source.
public enum DataSourceOperation: String, Hashable, Sendable, CaseIterable {
  case get, getAll, put, putAll, delete, deleteAll
}
