@testable import DataSources

/// Returns the kind of the data source error that a body throws; nil if it doesn't throw one.
func failure<R>(_ body: () async throws -> R) async -> DataSourceError.Kind? {
  do {
    _ = try await body()
    return nil
  } catch {
    return (error as? DataSourceError)?.kind
  }
}

/// A value as a service might store it.
struct Item: Codable, Hashable, Sendable, ExpressibleByStringLiteral {
  let title: String
  let price: Int?

  init(_ title: String, price: Int? = nil) {
    self.title = title
    self.price = price
  }

  init(stringLiteral title: String) {
    self.init(title)
  }
}

/// A list of events in order, from any thread.
final class Recorder<Event: Sendable>: Sendable {
  private let recorded = LockedValue<[Event]>([])

  var events: [Event] { recorded.withLock { $0 } }

  func add(_ event: Event) {
    recorded.withLock { $0.append(event) }
  }
}

/// A source over another one that records its calls and makes some of them fail.
final class ScriptedDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let state = LockedValue<(calls: [DataSourceOperation], failures: [any Error])>(([], []))

  init(over source: AnyDataSource<T> = AnyDataSource(InMemoryDataSource())) { self.source = source }

  var calls: [DataSourceOperation] { state.withLock { $0.calls } }

  /// Makes the next calls fail with these errors, one after the other.
  func fail(with errors: any Error...) {
    state.withLock { $0.failures += errors }
  }

  private func record(_ operation: DataSourceOperation) throws {
    let failure: (any Error)? = state.withLock {
      $0.calls.append(operation)
      return $0.failures.isEmpty ? nil : $0.failures.removeFirst()
    }
    if let failure { throw failure }
  }

  func get(_ query: any Query) async throws -> T {
    try record(.get)
    return try await source.get(query)
  }

  func getAll(_ query: any Query) async throws -> [T] {
    try record(.getAll)
    return try await source.getAll(query)
  }

  @discardableResult
  func put(_ value: T?, in query: any Query) async throws -> T {
    try record(.put)
    return try await source.put(value, in: query)
  }

  @discardableResult
  func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try record(.putAll)
    return try await source.putAll(array, in: query)
  }

  func delete(_ query: any Query) async throws {
    try record(.delete)
    try await source.delete(query)
  }

  func deleteAll(_ query: any Query) async throws {
    try record(.deleteAll)
    try await source.deleteAll(query)
  }
}
