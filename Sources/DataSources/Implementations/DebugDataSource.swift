/// A source that makes another one slow, unreliable and verbose, to test how a service copes.
public struct DebugDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let delay: Duration
  private let errorProbability: Double
  private let error: any Error
  private let log: (@Sendable (String) -> Void)?

  /// - Parameters:
  ///   - delay: The additional duration of each call.
  ///   - errorProbability: The share of calls that fail without reaching the source, from 0 for none to 1 for all.
  ///   - error: The error of those calls.
  ///   - log: Receives two lines per call: the query when the call starts, and how the call ended. They don't contain
  ///     values.
  public init(
    _ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    delay: Duration = .zero,
    errorProbability: Double = 0,
    error: any Error = DataSourceError.failed,
    log: (@Sendable (String) -> Void)? = nil
  ) {
    self.source = AnyDataSource(source)
    self.delay = delay
    self.errorProbability = errorProbability
    self.error = error
    self.log = log
  }

  public func get(_ query: any Query) async throws -> T {
    try await run(.get, query) { try await source.get(query) }
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    try await run(.getAll, query) { try await source.getAll(query) }
  }

  public func getEach(_ query: any Query) async throws -> [T?] {
    try await run(.getAll, query) { try await source.getEach(query) }
  }

  @discardableResult
  public func put(_ value: T?, in query: any Query) async throws -> T {
    try await run(.put, query) { try await source.put(value, in: query) }
  }

  @discardableResult
  public func putAll(_ array: [T], in query: any Query) async throws -> [T] {
    try await run(.putAll, query) { try await source.putAll(array, in: query) }
  }

  public func delete(_ query: any Query) async throws {
    try await run(.delete, query) { try await source.delete(query) }
  }

  public func deleteAll(_ query: any Query) async throws {
    try await run(.deleteAll, query) { try await source.deleteAll(query) }
  }

  private func run<R>(
    _ operation: DataSourceOperation, _ query: any Query, _ call: () async throws -> R
  ) async throws -> R {
    log?("\(operation) \(query)")
    let start = ContinuousClock.now
    do {
      if delay > .zero { try await Task.sleep(for: delay) }
      if errorProbability > 0, Double.random(in: 0..<1) < errorProbability { throw error }
      let result = try await call()
      log?("\(operation) \(query): done in \(start.duration(to: .now))")
      return result
    } catch {
      log?("\(operation) \(query): \(error), after \(start.duration(to: .now))")
      throw error
    }
  }
}
