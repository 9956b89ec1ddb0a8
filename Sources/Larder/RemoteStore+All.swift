import Wire

extension RemoteStore {
  /// All entries in the order of their keys' bytes, as the store was at one moment, sent as they are used: a slow consumer makes the
  /// server wait, and nobody else. Letting go of the iterator before the end cancels the answer.
  ///
  /// The store's timeout holds for each wait for more entries, not for the whole. A server lets an answer end (`answerExpired`) whose
  /// consumer takes nothing for long, 30 seconds unless configured. A connection lost on the way ends the sequence with an error.
  public func all(
    prefix: String = "", after: String? = nil, reverse: Bool = false, keysOnly: Bool = false
  ) -> All {
    All(store: self, range: ScanRange(prefix: prefix, after: after, reverse: reverse, keysOnly: keysOnly))
  }

  /// The entries of a store, streamed.
  public struct All: AsyncSequence, Sendable {
    public typealias Element = Entry
    let store: RemoteStore
    let range: ScanRange

    public func makeAsyncIterator() -> AsyncIterator {
      AsyncIterator(store: store, range: range)
    }

    public struct AsyncIterator: AsyncIteratorProtocol {
      let store: RemoteStore
      let range: ScanRange
      private var stage = Stage.fresh
      private var body: [UInt8] = []
      private var place = 0

      private enum Stage {
        case fresh
        case reading(AnswerReader)
        case over
      }

      init(store: RemoteStore, range: ScanRange) {
        self.store = store
        self.range = range
      }

      public mutating func next() async throws(LarderError) -> Entry? {
        try await next(isolation: nil)
      }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> Entry? {
        while place == body.count {
          guard try await nextFrame(isolation: actor) else { return nil }
        }
        guard let (entry, end) = Self.entry(in: body, at: place, keysOnly: range.keysOnly) else {
          stage = .over
          place = body.count
          throw .malformedReply
        }
        place = end
        return entry
      }

      private static func entry(in body: [UInt8], at place: Int, keysOnly: Bool) -> (Entry, end: Int)? {
        let bytes = unsafe body.span.bytes
        guard let record = EntryRecord(bytes, at: place), let entry = Entry(record, in: bytes, keysOnly: keysOnly)
        else {
          return nil
        }
        return (entry, record.end)
      }

      /// - Returns: whether there is one.
      private mutating func nextFrame(isolation actor: isolated (any Actor)?) async throws(LarderError) -> Bool {
        place = 0
        switch stage {
        case .over:
          body = []
          return false
        case .fresh:
          stage = .over
          let connection = store.core.connection
          let reply = try await connection.call(
            AllRequest(range: range), store: store.reference, time: store.time)
          guard case .body(let first, let rest) = reply else { preconditionFailure("an answer has frames") }
          body = first
          if let rest { stage = .reading(AnswerReader(store.core, connection, rest)) }
        case .reading(let reader):
          body = []
          stage = .over
          let (next, hasMore) = try await reader.next(deadline: store.time.deadline)
          body = next
          if hasMore { stage = .reading(reader) }
        }
        return true
      }
    }
  }
}
