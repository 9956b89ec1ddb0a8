import DataSources

extension RemoteDataSource {
  /// All entries in the order of their keys' bytes, as the store was at one moment, sent as they are used: for stores that are larger than
  /// one would have in memory. Fails as the source's calls do. See `RemoteStore.all`.
  public var all: All { All(source: self) }

  /// The entries of a source, streamed.
  public struct All: AsyncSequence, Sendable {
    public typealias Element = KeyValueEntry<T>
    let source: RemoteDataSource

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(source: source, entries: source.store.all().makeAsyncIterator())
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      let source: RemoteDataSource
      var entries: RemoteStore.All.AsyncIterator
      private var mayTryAgain = true

      init(source: RemoteDataSource, entries: RemoteStore.All.AsyncIterator) {
        self.source = source
        self.entries = entries
      }

      public mutating func next() async throws -> KeyValueEntry<T>? {
        do {
          let entry = try await entries.next()
          mayTryAgain = false
          return try entry.map(source.decoded)
        } catch let error as LarderError {
          guard mayTryAgain else { throw error.ofDataSource }
          mayTryAgain = false
          try await source.prepareAnotherTry(after: error)
          entries = source.store.all().makeAsyncIterator()
          return try await next()
        }
      }
    }
  }
}
