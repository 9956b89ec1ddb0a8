/// A source without anything: every call fails with `DataSourceError.notImplemented`. It stands in where a source is asked for and
/// none is wanted.
public struct VoidDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  public init() {}

  public func get(_ query: any Query) async throws -> T { throw error(.get) }
  public func getAll(_ query: any Query) async throws -> [T] { throw error(.getAll) }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T { throw error(.put) }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] { throw error(.putAll) }

  public func delete(_ query: any Query) async throws { throw error(.delete) }
  public func deleteAll(_ query: any Query) async throws { throw error(.deleteAll) }

  private func error(_ operation: DataSourceOperation) -> DataSourceError {
    DataSourceError(.notImplemented, "\(Self.self) has no \(operation)")
  }
}
