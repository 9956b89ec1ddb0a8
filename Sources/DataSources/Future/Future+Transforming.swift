extension Future {
  /// Calls a closure with the value, if there comes one.
  /// - Returns: this future, for more of the kind.
  @discardableResult
  public func then(_ body: @escaping @Sendable (T) -> Void) -> Future<T> {
    subscribe { if case .success(let value) = $0 { body(value) } }
    return self
  }

  /// Calls a closure with the error, if there comes one.
  /// - Returns: this future, for more of the kind.
  @discardableResult
  public func fail(_ body: @escaping @Sendable (any Error) -> Void) -> Future<T> {
    subscribe { if case .failure(let error) = $0 { body(error) } }
    return self
  }

  /// Calls a closure once the future is resolved, either way.
  /// - Returns: this future, for more of the kind.
  @discardableResult
  public func onCompletion(_ body: @escaping @Sendable () -> Void) -> Future<T> {
    subscribe { _ in body() }
    return self
  }

  /// A future with what a closure makes of the value; with its error when it throws.
  public func map<U: Sendable>(_ transform: @escaping @Sendable (T) throws -> U) -> Future<U> {
    derived { result, future in future.resolve(Result { try transform(result.get()) }) }
  }

  /// A future with what a closure makes of the error.
  public func mapError(_ transform: @escaping @Sendable (any Error) -> any Error) -> Future<T> {
    derived { result, future in future.resolve(result.mapError(transform)) }
  }

  /// A future with the result of the one that a closure makes of the value; with the closure's error when it throws.
  public func flatMap<U: Sendable>(_ transform: @escaping @Sendable (T) throws -> Future<U>) -> Future<U> {
    derived { result, future in
      do {
        try transform(result.get()).subscribe { future.resolve($0) }
      } catch {
        future.resolve(.failure(error))
      }
    }
  }

  /// A future with the result of the one that a closure makes of an error of a type; other errors stay as they are.
  /// - Parameter type: `DataSourceError.self`, for example.
  public func recover<E: Error>(
    if type: E.Type, _ transform: @escaping @Sendable (E) throws -> Future<T>
  ) -> Future<T> {
    recover { error in
      guard let error = error as? E else { throw error }
      return try transform(error)
    }
  }

  /// A future with the result of the one that a closure makes of an error that fulfils a condition; others stay as they are.
  public func recover(
    if condition: @escaping @Sendable (any Error) -> Bool,
    _ transform: @escaping @Sendable (any Error) throws -> Future<T>
  ) -> Future<T> {
    recover { error in
      guard condition(error) else { throw error }
      return try transform(error)
    }
  }

  /// A future with the result of the one that a closure makes of the error; with the closure's error when it throws.
  public func recover(_ transform: @escaping @Sendable (any Error) throws -> Future<T>) -> Future<T> {
    derived { result, future in
      guard case .failure(let error) = result else {
        future.resolve(result)
        return
      }
      do {
        try transform(error).subscribe { future.resolve($0) }
      } catch {
        future.resolve(.failure(error))
      }
    }
  }

  /// A future with the same value, unless the closure rejects it by throwing: with that error then.
  public func filter(_ check: @escaping @Sendable (T) throws -> Void) -> Future<T> {
    map { value in
      try check(value)
      return value
    }
  }

  private func derived<U: Sendable>(
    _ body: @escaping @Sendable (Result<T, any Error>, Future<U>) -> Void
  ) -> Future<U> {
    let future = Future<U>()
    subscribe { body($0, future) }
    return future
  }
}
