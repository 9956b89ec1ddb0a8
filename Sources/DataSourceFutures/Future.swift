import DataSources

/// A value, or an error, that becomes available later. A future is resolved once; later attempts have no effect.
///
/// Any number of subscribers get the result, in the order in which they subscribed: on the thread that resolves the
/// future or, if it is already resolved, immediately on their own. No run loop and no main thread are needed.
///
/// Its lock protects the state only: subscribers run outside of it.
public final class Future<T: Sendable>: Sendable {
  typealias Subscriber = @Sendable (Result<T, any Error>) -> Void

  private enum State {
    case pending([Subscriber])
    case resolved(Result<T, any Error>)
  }

  private let state: LockedValue<State>

  /// Creates a pending future, which this module resolves.
  init() {
    state = LockedValue(.pending([]))
  }

  /// Creates a future that already has its result.
  public init(_ result: Result<T, any Error>) {
    state = LockedValue(.resolved(result))
  }

  /// Creates a future that already has its value.
  public convenience init(_ value: T) {
    self.init(.success(value))
  }

  /// Creates a future that has already failed.
  public convenience init(failing error: any Error) {
    self.init(.failure(error))
  }

  /// The result; nil while the future is pending.
  public var result: Result<T, any Error>? {
    state.withLock { if case .resolved(let result) = $0 { result } else { nil } }
  }

  /// Resolves the future if it is pending.
  /// - Returns: Whether it was.
  @discardableResult
  func resolve(_ result: Result<T, any Error>) -> Bool {
    let subscribers: [Subscriber]? = state.withLock {
      guard case .pending(let subscribers) = $0 else { return nil }
      $0 = .resolved(result)
      return subscribers
    }
    guard let subscribers else { return false }
    for subscriber in subscribers { subscriber(result) }
    return true
  }

  /// Calls a subscriber with the result, once. Never calls it under the lock, so that it can use this future as it
  /// likes.
  func subscribe(_ subscriber: @escaping Subscriber) {
    let result: Result<T, any Error>? = state.withLock {
      switch $0 {
      case .resolved(let result): return result
      case .pending(var subscribers):
        // Take the array out of the enum while it grows, or every append would copy it.
        $0 = .pending([])
        subscribers.append(subscriber)
        $0 = .pending(subscribers)
        return nil
      }
    }
    if let result { subscriber(result) }
  }
}

// MARK: - Async

extension Future {
  /// Creates a future that an asynchronous operation resolves. The operation starts immediately, in a task of its own.
  public convenience init(_ operation: @escaping @Sendable () async throws -> T) {
    self.init()
    Task {
      do {
        resolve(.success(try await operation()))
      } catch {
        resolve(.failure(error))
      }
    }
  }

  /// The value, as soon as the future is resolved.
  /// - Throws: The future's error; `CancellationError`, immediately, if the waiting task is cancelled. That doesn't
  ///   cancel the future.
  public var value: T {
    get async throws {
      if let result { return try result.get() }
      // Wait for a future of our own: whatever resolves it first wins, the result or the cancellation.
      let waiter = Future()
      subscribe { waiter.resolve($0) }
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          waiter.subscribe { continuation.resume(with: $0) }
        }
      } onCancel: {
        waiter.resolve(.failure(CancellationError()))
      }
    }
  }
}

// MARK: - Resolver

/// Resolves a future. The first `set` wins. A resolver that is deallocated without a `set` fails its future with
/// `DataSourceError.failed`, so that nobody waits forever.
public final class FutureResolver<T: Sendable>: Sendable {
  private let future: Future<T>

  fileprivate init(_ future: Future<T>) {
    self.future = future
  }

  deinit {
    future.resolve(.failure(DataSourceError(.failed, "the future's resolver was deallocated without a result")))
  }

  /// Resolves the future with a value.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ value: T) -> Bool { future.resolve(.success(value)) }

  /// Resolves the future with an error.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ error: any Error) -> Bool { future.resolve(.failure(error)) }

  /// Resolves the future with a result.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ result: Result<T, any Error>) -> Bool { future.resolve(result) }

  /// Resolves the future with the result of another future, as soon as that has one.
  public func set(_ other: Future<T>) {
    other.subscribe { _ = self.future.resolve($0) }
  }
}

extension FutureResolver where T == Void {
  /// Resolves the future.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set() -> Bool { set(()) }
}

extension Future {
  /// Creates a future that `body` resolves, immediately or later, from any thread.
  public convenience init(resolving body: (FutureResolver<T>) -> Void) {
    self.init()
    body(FutureResolver(self))
  }
}
