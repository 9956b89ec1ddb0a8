/// When a failed call is tried again, and after how long.
public struct RetryRule: Sendable {
  /// How often at most a call is tried again; it is tried once more than that in all. Not negative.
  public let retryCount: Int
  /// The pause before the first retry; each later one is twice as long.
  public let pause: Duration
  /// The longest pause.
  public let maxPause: Duration
  private let retryIf: @Sendable (any Error) -> Bool

  /// - Parameters:
  ///   - retryCount: how often at most a call is tried again; at least 0.
  ///   - pause: the pause before the first retry, and zero for none. Each later one is twice as long, up to `longestPause`. Of every pause a
  ///     random part of at most half is left out, so that callers that failed together don't come back together.
  ///   - retryIf: whether an error is worth another try. All are by default but those that say they aren't safe (`RetryAdvice`). The
  ///     cancellation of the task never is.
  public init(
    retryCount: Int,
    pause: Duration = .milliseconds(50),
    maxPause: Duration = .seconds(5),
    retryIf: @escaping @Sendable (any Error) -> Bool = RetryRule.unlessUnsafe
  ) {
    precondition(retryCount >= 0, "retryCount is negative")
    self.retryCount = retryCount
    self.pause = pause
    self.maxPause = maxPause
    self.retryIf = retryIf
  }

  /// Whether an error is worth another try: all are but those that say they aren't safe.
  @Sendable public static func unlessUnsafe(_ error: any Error) -> Bool {
    (error as? any RetryAdvice)?.isSafeToRetry ?? true
  }

  /// Runs an operation until it succeeds or may not be tried again.
  /// - Throws: the operation's last error; `CancellationError` when the task is cancelled during a pause.
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

  /// The pause before a retry, of which the first is 0: doubled each time, up to the longest, less up to half.
  func pauseLength(before retry: Int) -> Duration {
    let doubled = min(pause * (1 << min(retry, 30)), maxPause)
    return doubled * Double.random(in: 0.5...1)
  }
}

/// An error that knows whether the call that it ended may be sent again without harm.
public protocol RetryAdvice: Error {
  /// Whether the call is known not to have been carried out, or changes nothing however often it is.
  var isSafeToRetry: Bool { get }
}
