/// A repository of one source, which every operation uses.
public struct SingleDataSourceRepository<T: Sendable>: GetRepository, PutRepository, DeleteRepository {
  private let source: AnyDataSource<T>

  public init(_ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>) {
    self.source = AnyDataSource(source)
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

  @discardableResult
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    try await source.put(value, in: query)
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await source.putAll(array, in: query)
  }

  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await source.delete(query)
  }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await source.deleteAll(query)
  }
}
