import Wire

extension RemoteStore {
  /// Returns all entries in the order of their keys' bytes, as the store was at one point in time. The server sends
  /// them as they are consumed: a slow consumer makes the server wait, and no other call. Releasing the iterator before
  /// the end cancels the reply.
  ///
  /// The store's timeout applies to each wait for more entries. A server ends the reply with `answerExpired` if the
  /// consumer takes nothing for long, by default 30 seconds. If the connection is lost, the sequence throws.
  public func all(
    prefix: String = "", after: String? = nil, reverse: Bool = false, keysOnly: Bool = false
  ) -> All {
    All(store: self, range: ScanRange(prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly))
  }

  /// The entries of a store, streamed.
  public struct All: AsyncSequence, Sendable {
    public typealias Element = Entry
    private let store: RemoteStore
    private let range: ScanRange

    fileprivate init(store: RemoteStore, range: ScanRange) {
      self.store = store
      self.range = range
    }

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(store: store, range: range)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private let store: RemoteStore
      private let range: ScanRange
      private var phase = Phase.initial
      /// The body of the current frame, and the offset of the next record in it.
      private var body: [UInt8] = []
      private var offset = 0

      private enum Phase {
        case initial
        case streaming(ReplyStreamReader)
        case finished
      }

      fileprivate init(store: RemoteStore, range: ScanRange) {
        self.store = store
        self.range = range
      }

      public mutating func next() async throws(LarderError) -> Entry? {
        try await next(isolation: nil)
      }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> Entry? {
        while offset == body.count {
          guard try await nextFrame(isolation: actor) else { return nil }
        }
        guard let (entry, end) = Self.entry(in: body, at: offset, keysOnly: range.keysOnly) else {
          phase = .finished
          offset = body.count
          throw .malformedReply
        }
        offset = end
        return entry
      }

      private static func entry(in body: [UInt8], at offset: Int, keysOnly: Bool) -> (Entry, end: Int)? {
        let bytes = unsafe body.span.bytes
        guard let record = EntryRecord(bytes, at: offset), let entry = Entry(record, in: bytes, keysOnly: keysOnly)
        else {
          return nil
        }
        return (entry, record.end)
      }

      /// Receives the next frame.
      /// - Returns: Whether there is one.
      private mutating func nextFrame(isolation actor: isolated (any Actor)?) async throws(LarderError) -> Bool {
        offset = 0
        body = []
        switch phase {
        case .finished: return false
        case .initial:
          phase = .finished
          let (first, rest) = try await store.stream(AllRequest(range: range), deadline: store.deadline)
          body = first
          if let rest { phase = .streaming(rest) }
        case .streaming(let stream):
          phase = .finished
          let (next, hasMore) = try await stream.next(deadline: store.deadline.instant)
          body = next
          if hasMore { phase = .streaming(stream) }
        }
        return true
      }
    }
  }
}
