/// A repository that retries failed calls of another repository by a rule: by default, those whose errors are transient.
/// If all attempts fail, it throws the last error.
public struct RetryRepository<T: Sendable>: GetRepository, PutRepository, DeleteRepository {
  private let getter: any GetRepository<T>
  private let putter: any PutRepository<T>
  private let deleter: any DeleteRepository<T>
  private let rule: RetryRule

  public init<R: GetRepository<T> & PutRepository<T> & DeleteRepository<T>>(_ repository: R, _ rule: RetryRule) {
    getter = repository
    putter = repository
    deleter = repository
    self.rule = rule
  }

  public func get(_ query: any Query, operation: RepositoryOperation) async throws -> T {
    try await rule.run { try await getter.get(query, operation: operation) }
  }

  public func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await rule.run { try await getter.getAll(query, operation: operation) }
  }

  public func getEach(_ query: any Query) async throws -> [T?] {
    try await rule.run { try await getter.getEach(query) }
  }

  @discardableResult
  public func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T {
    try await rule.run { try await putter.put(value, in: query, operation: operation) }
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T] {
    try await rule.run { try await putter.putAll(array, in: query, operation: operation) }
  }

  public func delete(_ query: any Query, operation: RepositoryOperation) async throws {
    try await rule.run { try await deleter.delete(query, operation: operation) }
  }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await rule.run { try await deleter.deleteAll(query, operation: operation) }
  }
}
