/// A value, or an error, that comes later. It is resolved once; what is tried after that has no effect.
///
/// Any number of subscribers get the result, in the order in which they subscribed, on whichever thread resolves the future, or at once
/// on their own when it is resolved already. No run loop and no main thread are needed.
public final class Future<T: Sendable>: Sendable {
  typealias Subscriber = @Sendable (Result<T, any Error>) -> Void

  private enum State {
    case pending([Subscriber])
    case resolved(Result<T, any Error>)
  }

  private let state: Locked<State>

  /// A future that something within the library resolves.
  init() {
    state = Locked(.pending([]))
  }

  /// A future with its result.
  public init(_ result: Result<T, any Error>) {
    state = Locked(.resolved(result))
  }

  /// A future with its value.
  public convenience init(_ value: T) {
    self.init(.success(value))
  }

  /// A future with its error.
  public convenience init(failing error: any Error) {
    self.init(.failure(error))
  }

  /// The result; nil as long as there is none.
  public var result: Result<T, any Error>? {
    state.withLock { if case .resolved(let result) = $0 { result } else { nil } }
  }

  /// Resolves the future, if nobody has yet.
  /// - Returns: whether this was the first.
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

  /// Calls a subscriber with the result, once. Never under the lock: it may do with this future whatever it likes.
  func subscribe(_ subscriber: @escaping Subscriber) {
    let result: Result<T, any Error>? = state.withLock {
      switch $0 {
      case .resolved(let result): return result
      case .pending(var subscribers):
        // Out of the enum while it grows: it would be copied for every subscriber otherwise.
        $0 = .pending([])
        subscribers.append(subscriber)
        $0 = .pending(subscribers)
        return nil
      }
    }
    if let result { subscriber(result) }
  }
}
