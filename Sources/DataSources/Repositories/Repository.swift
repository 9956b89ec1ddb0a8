/// Which of a repository's sources a call is for, and what it does with the others.
public enum RepositoryOperation: Hashable, Sendable {
  /// What the repository does when nothing else is said.
  case standard
  /// The main source only.
  case main
  /// The cache only.
  case cache
  /// The main source, and what it answers goes to the cache. When it fails the cache stays as it is.
  case mainSync
  /// The cache first. What isn't there or isn't valid any more is got from the main source and goes to the cache. With `fallback` a value
  /// that isn't valid any more is better than none when the main source fails.
  case cacheSync(fallback: Bool = false)
}

/// A source whose calls may say where the answer is to come from. Calls that say nothing are `standard`.
public protocol GetRepository<T>: GetDataSource {
  /// One value. Throws what the source in question throws.
  func get(_ query: any Query, operation: RepositoryOperation) async throws -> T
  /// A list of values. Throws what the source in question throws.
  func getAll(_ query: any Query, operation: RepositoryOperation) async throws -> [T]
}

/// A source whose calls may say where the value is to go. Calls that say nothing are `standard`.
public protocol PutRepository<T>: PutDataSource {
  /// Puts one value; returns what was stored. Throws what the sources in question throw.
  @discardableResult
  func put(_ value: T?, in query: any Query, operation: RepositoryOperation) async throws -> T
  /// Puts a list of values; returns what was stored. Throws what the sources in question throw.
  @discardableResult
  func putAll(_ array: [T], in query: any Query, operation: RepositoryOperation) async throws -> [T]
}

/// A source whose calls may say where it is to be deleted. Calls that say nothing are `standard`.
public protocol DeleteRepository<T>: DeleteDataSource {
  /// Deletes what the query addresses. Throws what the sources in question throw.
  func delete(_ query: any Query, operation: RepositoryOperation) async throws
  /// Behaves as `delete`.
  func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws
}

extension GetRepository {
  public func get(_ query: any Query) async throws -> T { try await get(query, operation: .standard) }
  public func getAll(_ query: any Query) async throws -> [T] { try await getAll(query, operation: .standard) }
}

extension PutRepository {
  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T {
    try await put(value, in: query, operation: .standard)
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await putAll(array, in: query, operation: .standard)
  }
}

extension DeleteRepository {
  public func delete(_ query: any Query) async throws { try await delete(query, operation: .standard) }
  public func deleteAll(_ query: any Query) async throws { try await deleteAll(query, operation: .standard) }

  public func deleteAll(_ query: any Query, operation: RepositoryOperation) async throws {
    try await delete(query, operation: operation)
  }
}
