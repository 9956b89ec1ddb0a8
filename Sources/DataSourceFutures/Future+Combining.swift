import DataSources

extension Future {
  /// Returns a future with the values of both, or with the first error of either.
  public func zip<U: Sendable>(_ other: Future<U>) -> Future<(T, U)> {
    flatMap { value in other.map { (value, $0) } }.failing(with: other)
  }

  /// Returns a future with the values of all three, or with the first error of any.
  public func zip<U: Sendable, V: Sendable>(_ second: Future<U>, _ third: Future<V>) -> Future<(T, U, V)> {
    zip(second).zip(third).map { ($0.0.0, $0.0.1, $0.1) }
  }

  /// Returns a future with the values of all four, or with the first error of any.
  public func zip<U: Sendable, V: Sendable, W: Sendable>(
    _ second: Future<U>, _ third: Future<V>, _ fourth: Future<W>
  ) -> Future<(T, U, V, W)> {
    zip(second, third).zip(fourth).map { ($0.0.0, $0.0.1, $0.0.2, $0.1) }
  }

  /// Returns a future with the values of all futures in order, or with the first error of any. No futures result in an
  /// empty list.
  public static func batch(_ futures: [Future<T>]) -> Future<[T]> {
    guard !futures.isEmpty else { return Future<[T]>([]) }
    let values = LockedValue<(values: [T?], missing: Int)>((Array(repeating: nil, count: futures.count), futures.count))
    let all = Future<[T]>()
    for (index, future) in futures.enumerated() {
      future.subscribe { result in
        switch result {
        case .success(let value):
          let complete: [T]? = values.withLock { state in
            state.values[index] = .some(value)
            state.missing -= 1
            return state.missing == 0 ? state.values.map { $0! } : nil
          }
          if let complete { all.set(.success(complete)) }
        case .failure(let error): all.set(.failure(error))
        }
      }
    }
    return all
  }

  /// Returns a future with the values of all futures in order, or with the first error of any. No futures result in an
  /// empty list.
  public static func batch(_ futures: Future<T>...) -> Future<[T]> {
    batch(futures)
  }

  /// Returns this future, which now also fails as soon as another one does.
  private func failing<U: Sendable>(with other: Future<U>) -> Future<T> {
    let future = Future<T>()
    other.fail { future.set(.failure($0)) }
    subscribe { future.set($0) }
    return future
  }
}

/// Returns a future with the values of both, or with the first error of either.
public func + <T: Sendable, U: Sendable>(left: Future<T>, right: Future<U>) -> Future<(T, U)> {
  left.zip(right)
}

// MARK: - Tuples

extension Future {
  /// Returns a future for each part of a pair.
  public func unzip<A: Sendable, B: Sendable>() -> (Future<A>, Future<B>) where T == (A, B) {
    (map(\.0), map(\.1))
  }

  /// Returns a future for each part of a triple.
  public func unzip<A: Sendable, B: Sendable, C: Sendable>() -> (Future<A>, Future<B>, Future<C>) where T == (A, B, C) {
    (map(\.0), map(\.1), map(\.2))
  }

  /// Returns a future with what a closure makes of the parts of a pair.
  public func collapse<A: Sendable, B: Sendable, U: Sendable>(
    _ transform: @escaping @Sendable (A, B) throws -> U
  ) -> Future<U> where T == (A, B) {
    map { try transform($0.0, $0.1) }
  }

  /// Returns a future with what a closure makes of the parts of a triple.
  public func collapse<A: Sendable, B: Sendable, C: Sendable, U: Sendable>(
    _ transform: @escaping @Sendable (A, B, C) throws -> U
  ) -> Future<U> where T == (A, B, C) {
    map { try transform($0.0, $0.1, $0.2) }
  }
}

// MARK: - Optionals

extension Future {
  /// Returns a future with the value of an optional; if it is nil, with `DataSourceError.notFound`.
  public func unwrap<W: Sendable>() -> Future<W> where T == W? {
    map { value in
      guard let value else { throw DataSourceError(.notFound, "the future's value is nil") }
      return value
    }
  }

  /// Returns a future with the same value as an optional.
  public func optional() -> Future<T?> {
    map { $0 }
  }

  /// Returns a future with the value of an optional; if it is nil, with the value that a closure returns.
  public func fill<W: Sendable>(_ value: @escaping @Sendable () throws -> W) -> Future<W> where T == W? {
    map { try $0 ?? value() }
  }

  /// Returns a future with the value of an optional; if it is nil, with the result of the future that a closure
  /// returns.
  public func flatFill<W: Sendable>(_ future: @escaping @Sendable () throws -> Future<W>) -> Future<W> where T == W? {
    flatMap { try $0.map { Future<W>($0) } ?? future() }
  }

  /// Returns a future with the transformed value of an optional; nil stays nil.
  public func unwrappedMap<W: Sendable, U: Sendable>(
    _ transform: @escaping @Sendable (W) throws -> U
  ) -> Future<U?> where T == W? {
    map { try $0.map(transform) }
  }
}
