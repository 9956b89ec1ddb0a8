@testable import DataSources

/// A source that counts its calls and fails those that it is told to, before they reach another source.
final class ScriptedDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let state = Locked<(calls: [DataSourceOperation], failures: [any Error])>(([], []))

  init(over source: AnyDataSource<T> = AnyDataSource(InMemoryDataSource())) { self.source = source }

  var calls: [DataSourceOperation] { state.withLock { $0.calls } }

  /// The next calls fail with these errors, one after the other.
  func fail(with errors: any Error...) {
    state.withLock { $0.failures += errors }
  }

  private func called(_ operation: DataSourceOperation) throws {
    let failure: (any Error)? = state.withLock {
      $0.calls.append(operation)
      return $0.failures.isEmpty ? nil : $0.failures.removeFirst()
    }
    if let failure { throw failure }
  }

  func get(_ query: any Query) async throws -> T {
    try called(.get)
    return try await source.get(query)
  }

  func getAll(_ query: any Query) async throws -> [T] {
    try called(.getAll)
    return try await source.getAll(query)
  }

  @discardableResult
  func put(_ value: T?, in query: any Query) async throws -> T {
    try called(.put)
    return try await source.put(value, in: query)
  }

  @discardableResult
  func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try called(.putAll)
    return try await source.putAll(array, in: query)
  }

  func delete(_ query: any Query) async throws {
    try called(.delete)
    try await source.delete(query)
  }

  func deleteAll(_ query: any Query) async throws {
    try called(.deleteAll)
    try await source.deleteAll(query)
  }
}
