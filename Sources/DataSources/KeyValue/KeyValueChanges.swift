/// One change of a key-value source.
public enum KeyValueChange<T: Sendable>: Sendable {
  /// An entry was written.
  case put(KeyValueEntry<T>)
  /// The entry of a key was deleted.
  case delete(key: String)
  /// All entries were deleted.
  case deleteAll
}

extension KeyValueChange: Equatable where T: Equatable {}
extension KeyValueChange: Hashable where T: Hashable {}

/// The changes of a key-value source, in their order, for one consumer. See `KeyValueDataSource.changes`.
public struct KeyValueChanges<T: Sendable>: AsyncSequence, Sendable {
  public typealias Element = KeyValueChange<T>
  private let stream: AsyncThrowingStream<KeyValueChange<T>, any Error>

  /// - Parameter stream: What the source sends; it ends by throwing.
  public init(_ stream: AsyncThrowingStream<KeyValueChange<T>, any Error>) {
    self.stream = stream
  }

  public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(stream.makeAsyncIterator()) }

  public struct AsyncIterator: AsyncIteratorProtocol {
    private var iterator: AsyncThrowingStream<KeyValueChange<T>, any Error>.AsyncIterator

    fileprivate init(_ iterator: AsyncThrowingStream<KeyValueChange<T>, any Error>.AsyncIterator) {
      self.iterator = iterator
    }

    /// Returns the next change. Throws `CancellationError` if the task is cancelled.
    public mutating func next() async throws -> KeyValueChange<T>? {
      try await next(isolation: nil)
    }

    public mutating func next(isolation actor: isolated (any Actor)?) async throws -> KeyValueChange<T>? {
      if let change = try await iterator.next(isolation: actor) { return change }
      // A stream says nothing about cancellation.
      try Task.checkCancellation()
      return nil
    }
  }
}
