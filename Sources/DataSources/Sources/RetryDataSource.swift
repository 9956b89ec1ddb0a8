/// A source that tries failed calls of another again, as its rule says. The last error surfaces.
public struct RetryDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let rule: RetryRule

  public init(_ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>, _ rule: RetryRule) {
    self.source = AnyDataSource(source)
    self.rule = rule
  }

  /// A source that tries a call at most `retryCount` times more, with the pauses of a `RetryRule`.
  public init(
    _ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    retryCount: Int,
    retryIf: @escaping @Sendable (any Error) -> Bool = RetryRule.unlessUnsafe
  ) {
    self.init(source, RetryRule(retryCount: retryCount, retryIf: retryIf))
  }

  public func get(_ query: any Query) async throws -> T {
    try await rule.run { try await source.get(query) }
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    try await rule.run { try await source.getAll(query) }
  }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T {
    try await rule.run { try await source.put(value, in: query) }
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await rule.run { try await source.putAll(array, in: query) }
  }

  public func delete(_ query: any Query) async throws {
    try await rule.run { try await source.delete(query) }
  }

  public func deleteAll(_ query: any Query) async throws {
    try await rule.run { try await source.deleteAll(query) }
  }
}
