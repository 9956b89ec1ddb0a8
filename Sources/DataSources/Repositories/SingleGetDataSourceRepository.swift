/// A repository of one get source, which every operation uses.
public struct SingleGetDataSourceRepository<T: Sendable>: GetRepository {
  private let source: AnyGetDataSource<T>

  public init(_ source: some GetDataSource<T>) {
    self.source = AnyGetDataSource(source)
  }

  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> T {
    try await source.get(query)
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await source.getAll(query)
  }

  public func getEach(_ query: any Query) async throws -> [T?] {
    try await source.getEach(query)
  }
}

/// A repository of one put source, which every operation uses.
public struct SinglePutDataSourceRepository<T: Sendable>: PutRepository {
  private let source: AnyPutDataSource<T>

  public init(_ source: some PutDataSource<T>) {
    self.source = AnyPutDataSource(source)
  }

  @discardableResult
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    try await source.put(value, in: query)
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await source.putAll(array, in: query)
  }
}

/// A repository of one delete source, which every operation uses.
public struct SingleDeleteDataSourceRepository<T: Sendable>: DeleteRepository {
  private let source: AnyDeleteDataSource<T>

  public init(_ source: some DeleteDataSource<T>) {
    self.source = AnyDeleteDataSource(source)
  }

  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await source.delete(query)
  }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await source.deleteAll(query)
  }
}
