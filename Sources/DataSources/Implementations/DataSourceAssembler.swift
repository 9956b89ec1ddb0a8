/// A source made of up to three others: one to get from, one to put into and one to delete from. Operations of a
/// missing part fail with `DataSourceError.notImplemented`.
public struct DataSourceAssembler<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let getter: any GetDataSource<T>
  private let putter: any PutDataSource<T>
  private let deleter: any DeleteDataSource<T>

  public init(
    get: any GetDataSource<T> = VoidDataSource<T>(),
    put: any PutDataSource<T> = VoidDataSource<T>(),
    delete: any DeleteDataSource<T> = VoidDataSource<T>()
  ) {
    getter = get
    putter = put
    deleter = delete
  }

  public func get(_ query: any Query) async throws -> T { try await getter.get(query) }
  public func getAll(_ query: any Query) async throws -> [T] { try await getter.getAll(query) }
  public func getEach(_ query: any Query) async throws -> [T?] { try await getter.getEach(query) }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T { try await putter.put(value, in: query) }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await putter.putAll(array, in: query)
  }

  public func delete(_ query: any Query) async throws { try await deleter.delete(query) }
  public func deleteAll(_ query: any Query) async throws { try await deleter.deleteAll(query) }
}

/// A source that has nothing: every call fails with `DataSourceError.notImplemented`. It fills a place that requires a
/// source but doesn't need one.
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
