/// A repository made of up to three others: one to get from, one to put into and one to delete from. Operations of a
/// missing part fail with `DataSourceError.notImplemented`.
public struct RepositoryAssembler<T: Sendable>: GetRepository, PutRepository, DeleteRepository {
  private let getter: any GetRepository<T>
  private let putter: any PutRepository<T>
  private let deleter: any DeleteRepository<T>

  public init(
    get: any GetRepository<T> = SingleDataSourceRepository(VoidDataSource<T>()),
    put: any PutRepository<T> = SingleDataSourceRepository(VoidDataSource<T>()),
    delete: any DeleteRepository<T> = SingleDataSourceRepository(VoidDataSource<T>())
  ) {
    getter = get
    putter = put
    deleter = delete
  }

  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> T {
    try await getter.get(query, operation: operation)
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await getter.getAll(query, operation: operation)
  }

  public func getEach(_ query: any Query) async throws -> [T?] { try await getter.getEach(query) }

  @discardableResult
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    try await putter.put(value, in: query, operation: operation)
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await putter.putAll(array, in: query, operation: operation)
  }

  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await deleter.delete(query, operation: operation)
  }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await deleter.deleteAll(query, operation: operation)
  }
}
