/// A source that retries failed calls of another source by a rule: by default, those whose errors are transient. If all
/// attempts fail, it throws the last error.
public struct RetryDataSource<T: Sendable>: GetDataSource, PutDataSource, DeleteDataSource {
  private let source: AnyDataSource<T>
  private let rule: RetryRule

  public init(_ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>, _ rule: RetryRule) {
    self.source = AnyDataSource(source)
    self.rule = rule
  }

  /// Creates a source that retries a call at most `retryCount` times, with the default pauses of a `RetryRule`.
  public init(
    _ source: some GetDataSource<T> & PutDataSource<T> & DeleteDataSource<T>,
    retryCount: Int,
    retryIf: @escaping @Sendable (any Error) -> Bool = RetryRule.ifTransient
  ) {
    self.init(source, RetryRule(retryCount: retryCount, retryIf: retryIf))
  }

  public func get(_ query: any Query) async throws -> T {
    try await rule.run { try await source.get(query) }
  }

  public func getAll(_ query: any Query) async throws -> [T] {
    try await rule.run { try await source.getAll(query) }
  }

  public func getEach(_ query: any Query) async throws -> [T?] {
    try await rule.run { try await source.getEach(query) }
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

/// A rule for which failed calls to retry, and after which pauses.
public struct RetryRule: Sendable {
  /// The maximum number of retries, not counting the first attempt. Not negative.
  public let retryCount: Int
  /// The pause before the first retry. The pause doubles with each retry.
  public let pause: Duration
  /// The maximum pause.
  public let maxPause: Duration
  private let retryIf: @Sendable (any Error) -> Bool

  /// - Parameters:
  ///   - retryCount: The maximum number of retries; at least 0.
  ///   - pause: The pause before the first retry; zero for no pauses. The pause doubles with each retry, up to
  ///     `maxPause`. Every pause is shortened by a random part, at most half of it, so that callers that failed
  ///     together don't return together.
  ///   - retryIf: Returns whether an error is worth a retry; by default `ifTransient`. The cancellation of the task never
  ///     is.
  public init(
    retryCount: Int,
    pause: Duration = .milliseconds(50),
    maxPause: Duration = .seconds(5),
    retryIf: @escaping @Sendable (any Error) -> Bool = RetryRule.ifTransient
  ) {
    precondition(retryCount >= 0, "retryCount is negative")
    self.retryCount = retryCount
    self.pause = pause
    self.maxPause = maxPause
    self.retryIf = retryIf
  }

  /// Returns true for errors that are known to be transient and safe to retry (`RetryAdvice`): a connection that was
  /// lost, a server that is busy, but not a value that doesn't exist.
  @Sendable public static func ifTransient(_ error: any Error) -> Bool {
    guard let advice = error as? any RetryAdvice else { return false }
    return advice.isTransient && advice.isSafeToRetry
  }

  /// Returns true for all errors except those that are known not to be safe to retry: for sources whose errors don't say
  /// what they are.
  @Sendable public static func unlessUnsafe(_ error: any Error) -> Bool {
    (error as? any RetryAdvice)?.isSafeToRetry ?? true
  }

  /// Runs an operation until it succeeds or must not be retried.
  /// - Throws: The operation's last error; `CancellationError` if the task is cancelled during a pause.
  public func run<R>(_ operation: () async throws -> R) async throws -> R {
    for retry in 0..<retryCount {
      do {
        return try await operation()
      } catch {
        guard !(error is CancellationError), retryIf(error) else { throw error }
        try await Task.sleep(for: pauseLength(before: retry))
      }
    }
    return try await operation()
  }

  /// Returns the pause before a retry; the first retry is 0.
  func pauseLength(before retry: Int) -> Duration {
    let doubled = min(pause * (1 << min(retry, 30)), maxPause)
    return doubled * Double.random(in: 0.5...1)
  }
}
