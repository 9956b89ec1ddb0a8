import DataSources

/// Resolves a future. The first `set` wins. A resolver that is deallocated without a `set` fails its future with
/// `DataSourceError.failed`, so that nobody waits forever.
public final class FutureResolver<T: Sendable>: Sendable {
  private let future: Future<T>

  /// - Parameter future: The future to resolve.
  public init(_ future: Future<T>) {
    self.future = future
  }

  deinit {
    guard future.currentResult == nil else { return }
    future.set(.failure(DataSourceError(.failed, "the future's resolver was deallocated without a result")))
  }

  /// Resolves the future with a value.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ value: T) -> Bool { future.set(.success(value)) }

  /// Resolves the future with an error.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ error: any Error) -> Bool { future.set(.failure(error)) }

  /// Resolves the future with a result.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(_ result: Result<T, any Error>) -> Bool { future.set(result) }

  /// Resolves the future with the error or, if it is nil, with the value. If both are nil, the future fails with
  /// `DataSourceError.illegalArgument`.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set(value: T?, error: (any Error)?) -> Bool { future.set(value: value, error: error) }

  /// Resolves the future with the result of another future, as soon as that has one.
  public func set(_ other: Future<T>) {
    other.subscribe { _ = self.future.set($0) }
  }
}

extension FutureResolver where T == Void {
  /// Resolves the future.
  /// - Returns: Whether this was the first `set`.
  @discardableResult
  public func set() -> Bool { set(()) }
}
