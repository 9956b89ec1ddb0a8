/// What resolves a future. The first `set` wins; a resolver that is let go of without any fails its future with
/// `DataSourceError.failed`, so that nobody waits for ever.
public final class FutureResolver<T: Sendable>: Sendable {
  private let future: Future<T>

  init(_ future: Future<T>) {
    self.future = future
  }

  deinit {
    future.resolve(.failure(DataSourceError(.failed, "the future's resolver was let go of without a result")))
  }

  /// Resolves the future with a value.
  /// - Returns: whether this was the first `set`.
  @discardableResult
  public func set(_ value: T) -> Bool { future.resolve(.success(value)) }

  /// Resolves the future with an error.
  /// - Returns: whether this was the first `set`.
  @discardableResult
  public func set(_ error: any Error) -> Bool { future.resolve(.failure(error)) }

  /// Resolves the future with a result.
  /// - Returns: whether this was the first `set`.
  @discardableResult
  public func set(_ result: Result<T, any Error>) -> Bool { future.resolve(result) }

  /// Resolves the future with whatever another one gets.
  public func set(_ other: Future<T>) {
    other.subscribe { _ = self.future.resolve($0) }
  }
}

extension FutureResolver where T == Void {
  /// Resolves the future.
  /// - Returns: whether this was the first `set`.
  @discardableResult
  public func set() -> Bool { set(()) }
}

extension Future {
  /// A future that `body` resolves, now or later, from any thread.
  public convenience init(resolving body: (FutureResolver<T>) -> Void) {
    self.init()
    body(FutureResolver(self))
  }
}
