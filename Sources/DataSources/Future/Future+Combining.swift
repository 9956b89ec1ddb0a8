extension Future {
  /// A future with the values of both, or the first error of either.
  public func zip<U: Sendable>(_ other: Future<U>) -> Future<(T, U)> {
    flatMap { value in other.map { (value, $0) } }.failing(with: other)
  }

  /// A future with the values of all three, or the first error of any.
  public func zip<U: Sendable, V: Sendable>(_ second: Future<U>, _ third: Future<V>) -> Future<(T, U, V)> {
    zip(second).zip(third).map { ($0.0.0, $0.0.1, $0.1) }
  }

  /// A future with the values of many in their order, or the first error of any. None give an empty list.
  public static func batch(_ futures: [Future<T>]) -> Future<[T]> {
    guard !futures.isEmpty else { return Future<[T]>([]) }
    let gathered = Gathered<T>(count: futures.count)
    let all = Future<[T]>()
    for (index, future) in futures.enumerated() {
      future.subscribe { result in
        switch result {
        case .success(let value): if let values = gathered.set(value, at: index) { all.resolve(.success(values)) }
        case .failure(let error): all.resolve(.failure(error))
        }
      }
    }
    return all
  }

  /// A future with the values of many in their order, or the first error of any. None give an empty list.
  public static func batch(_ futures: Future<T>...) -> Future<[T]> {
    batch(futures)
  }

  /// A future with the value of an optional one; with `DataSourceError.notFound` when it is nil.
  public func unwrap<W: Sendable>() -> Future<W> where T == W? {
    map { value in
      guard let value else { throw DataSourceError(.notFound, "the future's value is nil") }
      return value
    }
  }

  /// This future, which also fails as soon as another one does.
  private func failing<U: Sendable>(with other: Future<U>) -> Future<T> {
    let future = Future<T>()
    other.fail { future.resolve(.failure($0)) }
    subscribe { future.resolve($0) }
    return future
  }
}

/// The values of a batch as they come, at their places.
private final class Gathered<T: Sendable>: Sendable {
  private let state: Locked<(values: [T?], missing: Int)>

  init(count: Int) {
    state = Locked((Array(repeating: nil, count: count), count))
  }

  /// - Returns: all values, when this was the last of them.
  func set(_ value: T, at index: Int) -> [T]? {
    state.withLock { state in
      state.values[index] = .some(value)
      state.missing -= 1
      return state.missing == 0 ? state.values.map { $0! } : nil
    }
  }
}
