import DataSources

// MARK: - Subscribing

extension Future {
  /// Calls a closure with the value, if the future succeeds.
  /// - Returns: This future, for further calls.
  @discardableResult
  public func then(_ body: @escaping @Sendable (T) -> Void) -> Future<T> {
    subscribe { if case .success(let value) = $0 { body(value) } }
    return self
  }

  /// Calls a closure with the error, if the future fails.
  /// - Returns: This future, for further calls.
  @discardableResult
  public func fail(_ body: @escaping @Sendable (any Error) -> Void) -> Future<T> {
    subscribe { if case .failure(let error) = $0 { body(error) } }
    return self
  }

  /// Calls a closure when the future is resolved, either way.
  /// - Returns: This future, for further calls.
  @discardableResult
  public func onCompletion(_ body: @escaping @Sendable () -> Void) -> Future<T> {
    subscribe { _ in body() }
    return self
  }
}

// MARK: - Transforming

extension Future {
  /// Returns a future with the transformed value; if the closure throws, with its error.
  public func map<U: Sendable>(_ transform: @escaping @Sendable (T) throws -> U) -> Future<U> {
    derived { result, future in future.set(Result { try transform(result.get()) }) }
  }

  /// Returns a future with the transformed error.
  public func mapError(_ transform: @escaping @Sendable (any Error) -> any Error) -> Future<T> {
    derived { result, future in future.set(result.mapError(transform)) }
  }

  /// Returns a future with the result of the future that the closure makes of the value; if the closure throws, with
  /// its error.
  public func flatMap<U: Sendable>(_ transform: @escaping @Sendable (T) throws -> Future<U>) -> Future<U> {
    derived { result, future in
      do {
        try transform(result.get()).subscribe { future.set($0) }
      } catch {
        future.set(.failure(error))
      }
    }
  }

  /// Returns a future with the result of another one, if this one succeeds; otherwise with this one's error.
  public func chain<U: Sendable>(_ next: Future<U>) -> Future<U> {
    flatMap { _ in next }
  }

  /// Returns a future that replaces errors of one type with the result of the future that the closure returns. Other
  /// errors pass through.
  /// - Parameter type: The type of the errors, such as `DataSourceError.self`.
  public func recover<E: Error>(
    if type: E.Type, _ transform: @escaping @Sendable (E) throws -> Future<T>
  ) -> Future<T> {
    recover { error in
      guard let error = error as? E else { throw error }
      return try transform(error)
    }
  }

  /// Returns a future that replaces errors that satisfy a condition with the result of the future that the closure
  /// returns. Other errors pass through.
  public func recover(
    if condition: @escaping @Sendable (any Error) -> Bool,
    _ transform: @escaping @Sendable (any Error) throws -> Future<T>
  ) -> Future<T> {
    recover { error in
      guard condition(error) else { throw error }
      return try transform(error)
    }
  }

  /// Returns a future that replaces any error with the result of the future that the closure returns; if the closure
  /// throws, with its error.
  public func recover(_ transform: @escaping @Sendable (any Error) throws -> Future<T>) -> Future<T> {
    derived { result, future in
      guard case .failure(let error) = result else {
        future.set(result)
        return
      }
      do {
        try transform(error).subscribe { future.set($0) }
      } catch {
        future.set(.failure(error))
      }
    }
  }

  /// Returns a future with the same value, unless the closure rejects it by throwing an error: then with that error.
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
