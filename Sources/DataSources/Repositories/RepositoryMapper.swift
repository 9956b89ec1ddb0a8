/// A repository of `Out` over a repository of `In`. Queries and operations pass through unchanged, and so do the errors
/// of the repository and of the two functions.
public struct RepositoryMapper<In: Sendable, Out: Sendable>: GetRepository, PutRepository, DeleteRepository {
  public typealias T = Out

  private let repository: any GetRepository<In> & PutRepository<In> & DeleteRepository<In>
  private let toOut: @Sendable (In) throws -> Out
  private let toIn: @Sendable (Out) throws -> In

  /// - Parameters:
  ///   - toOut: Converts a value of the repository.
  ///   - toIn: Converts a value for the repository. `toOut` must reverse it; otherwise `put` returns something else than
  ///     what was put.
  public init(
    _ repository: some GetRepository<In> & PutRepository<In> & DeleteRepository<In>,
    toOut: @escaping @Sendable (In) throws -> Out,
    toIn: @escaping @Sendable (Out) throws -> In
  ) {
    self.repository = repository
    self.toOut = toOut
    self.toIn = toIn
  }

  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> Out {
    try toOut(await repository.get(query, operation: operation))
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [Out] {
    try await repository.getAll(query, operation: operation).map(toOut)
  }

  public func getEach(_ query: any Query) async throws -> [Out?] {
    try await repository.getEach(query).map { try $0.map(toOut) }
  }

  @discardableResult
  public func put(_ value: Out?, in query: any Query, operation: RepositoryOperation) async throws -> Out {
    try toOut(await repository.put(value.map(toIn), in: query, operation: operation))
  }

  @discardableResult
  public func putAll(_ array: [Out], in query: any Query, operation: RepositoryOperation) async throws -> [Out] {
    try await repository.putAll(array.map(toIn), in: query, operation: operation).map(toOut)
  }

  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await repository.delete(query, operation: operation)
  }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await repository.deleteAll(query, operation: operation)
  }
}
