import DataSources
import Dispatch

/// A value, or an error, that becomes available later. The first `set` resolves a future; later ones have no effect.
///
/// Any number of subscribers get the result, once each, in the order in which they subscribed: on the thread that
/// resolves the future or, if it is already resolved, on their own. No run loop and no main thread are needed. A thread
/// calls one subscriber at a time: what a subscriber resolves is delivered after the subscriber has returned. So chains
/// of futures can have any length.
///
/// Keep a reference to a future until you resolve it. A future that is deallocated without a result fails its
/// subscribers with `DataSourceError.failed`, so that nobody waits forever.
///
/// Its lock protects the content only: subscribers run outside of it.
public final class Future<T: Sendable>: Sendable {
  typealias Subscriber = @Sendable (Result<T, any Error>) -> Void

  private struct Content {
    var result: Result<T, any Error>?
    var subscribers: [Subscriber] = []
    /// The threads that wait for the result.
    var waiters: [DispatchSemaphore] = []
    var isDelivered = false
  }

  private let content: LockedValue<Content>

  /// Creates a pending future.
  public init() {
    content = LockedValue(Content())
  }

  /// Creates a future that already has its result.
  public init(_ result: Result<T, any Error>) {
    content = LockedValue(Content(result: result))
  }

  deinit {
    // Nobody else can have the future any more. Make an error only for someone to see.
    guard content.withLock({ !$0.subscribers.isEmpty }) else { return }
    set(.failure(DataSourceError(.failed, "the future was deallocated without a result")))
  }

  /// The progress of a future.
  public enum State: Hashable, Sendable {
    /// There is neither a result nor a subscriber.
    case blank
    /// There are subscribers, but no result.
    case waitingContent
    /// There is a result that nobody has received.
    case waitingThen
    /// The result has been delivered to a subscriber.
    case sent
  }

  /// The progress of the future, which other threads may change at any time.
  public var state: State {
    content.withLock { content in
      if content.result == nil { return content.subscribers.isEmpty ? .blank : .waitingContent }
      return content.isDelivered ? .sent : .waitingThen
    }
  }

  /// The result; nil while the future is pending.
  public var currentResult: Result<T, any Error>? {
    content.withLock { $0.result }
  }

  /// The result. The thread waits until there is one: use it in code that runs on a thread of its own, such as a
  /// command or a test. An async function waits for `value`.
  @available(*, noasync, message: "use 'try await future.value' in an async function")
  public var result: Result<T, any Error> {
    if let result = receivedResult() { return result }
    // The result may depend on subscribers that this thread has yet to call.
    Delivery.finishPending()
    let semaphore = DispatchSemaphore(value: 0)
    let isPending = content.withLock { content in
      if content.result == nil { content.waiters.append(semaphore) }
      return content.result == nil
    }
    if isPending { semaphore.wait() }
    return receivedResult()!
  }

  private func receivedResult() -> Result<T, any Error>? {
    content.withLock { content in
      if content.result != nil { content.isDelivered = true }
      return content.result
    }
  }

  /// Resolves the future with a result.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ result: Result<T, any Error>) -> Bool {
    let receivers: (subscribers: [Subscriber], waiters: [DispatchSemaphore])? = content.withLock { content in
      guard content.result == nil else { return nil }
      content.result = result
      content.isDelivered = !content.subscribers.isEmpty
      let receivers = (content.subscribers, content.waiters)
      content.subscribers = []
      content.waiters = []
      return receivers
    }
    guard let (subscribers, waiters) = receivers else { return false }
    for waiter in waiters { waiter.signal() }
    if !subscribers.isEmpty {
      Delivery.perform { for subscriber in subscribers { subscriber(result) } }
    }
    return true
  }

  /// Calls a subscriber with the result, once. Never calls it under the lock, so that it can use this future as it
  /// likes.
  func subscribe(_ subscriber: @escaping Subscriber) {
    let result: Result<T, any Error>? = content.withLock { content in
      if content.result == nil { content.subscribers.append(subscriber) } else { content.isDelivered = true }
      return content.result
    }
    if let result { Delivery.perform { subscriber(result) } }
  }
}

// MARK: - Resolving

extension Future {
  /// Resolves the future with a value.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ value: T) -> Bool { set(.success(value)) }

  /// Resolves the future with an error.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ error: any Error) -> Bool { set(.failure(error)) }

  /// Resolves the future with the error or, if it is nil, with the value. If both are nil, the future fails with
  /// `DataSourceError.illegalArgument`.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(value: T?, error: (any Error)?) -> Bool {
    if let error { return set(.failure(error)) }
    guard let value else {
      return set(.failure(DataSourceError(.illegalArgument, "a future was set with neither a value nor an error")))
    }
    return set(.success(value))
  }

  /// Resolves the future with the result of another future, as soon as that has one.
  public func set(_ other: Future<T>) {
    other.subscribe { self.set($0) }
  }
}

extension Future where T == Void {
  /// Resolves the future.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set() -> Bool { set(()) }
}

// MARK: - Creating

extension Future {
  /// Creates a future that already has its value.
  public convenience init(_ value: T) {
    self.init(.success(value))
  }

  /// Creates a future that has already failed.
  public convenience init(_ error: any Error) {
    self.init(.failure(error))
  }

  /// Creates a future with the result of another future.
  public convenience init(_ other: Future<T>) {
    self.init()
    set(other)
  }

  /// Creates a future that `body` resolves, immediately or later, from any thread. If `body` throws, the future fails
  /// with the error.
  public convenience init(_ body: (FutureResolver<T>) throws -> Void) {
    self.init()
    let resolver = FutureResolver(self)
    do {
      try body(resolver)
    } catch {
      resolver.set(error)
    }
  }

  /// Creates a future with the value that a closure returns, or with the error that it throws.
  public convenience init(value: () throws -> T) {
    self.init(Result(catching: value))
  }

  /// Creates a future with the result of the future that a closure returns, or with the error that it throws.
  public convenience init(future: () throws -> Future<T>) {
    self.init()
    do {
      set(try future())
    } catch {
      set(.failure(error))
    }
  }

  /// Creates a future that has failed with the error that a closure returns.
  public convenience init(_ error: () -> any Error) {
    self.init(.failure(error()))
  }
}

// MARK: - Async

extension Future {
  /// Creates a future that an asynchronous operation resolves. The operation starts immediately, on the calling thread;
  /// after its first suspension it continues elsewhere.
  public convenience init(_ operation: @escaping @Sendable () async throws -> T) {
    self.init()
    Task.immediate {
      do {
        set(.success(try await operation()))
      } catch {
        set(.failure(error))
      }
    }
  }

  /// The value, as soon as the future is resolved.
  /// - Throws: The future's error; `CancellationError`, immediately, if the waiting task is cancelled. That doesn't
  ///   cancel the future.
  public var value: T {
    get async throws {
      if let result = receivedResult() { return try result.get() }
      // Wait for a future of our own: whatever resolves it first wins, the result or the cancellation.
      let waiter = Future()
      subscribe { waiter.set($0) }
      return try await withTaskCancellationHandler {
        try await withCheckedThrowingContinuation { continuation in
          waiter.subscribe { continuation.resume(with: $0) }
        }
      } onCancel: {
        waiter.set(.failure(CancellationError()))
      }
    }
  }

  /// Does the same as `value`.
  public func async() async throws -> T {
    try await value
  }
}

/// Returns a future that an asynchronous operation resolves, as `Future.init(_:)` does.
public func withFuture<T: Sendable>(body: @escaping @Sendable () async throws -> T) -> Future<T> {
  Future(body)
}
