import Wire

extension RemoteStore {
  /// The changes of the store as they are made, commit by commit, none left out and none twice. A slow consumer makes the server wait,
  /// which keeps the latest changes only; letting go of the iterator ends the watch.
  ///
  /// When the connection is lost, the watch goes on behind the last commit as soon as there is another one, however long that takes. It
  /// throws `changesLost` when changes it needs are not kept any more: by a consumer that was too slow, or over a restart of the server
  /// with writes that it did not see. Then read the store, and watch it from the revision that was read. An expiry is no change: the entry
  /// that was put says how long it lasts. A store with durability other than `always` can lose changes in a crash that were told of.
  ///
  /// - Parameters:
  ///   - revision: the first revision whose changes are wanted, at most one beyond the store's; nil for those that are made from now on,
  ///     which is when the iterator's `start` returns or its first `next` has reached the server.
  ///   - prefix: only changes of keys that begin with it count, and the deletion of everything.
  ///   - keysOnly: whether values are left out.
  public func watch(from revision: UInt64? = nil, prefix: String = "", keysOnly: Bool = false) -> Watch {
    Watch(store: self, from: revision ?? 0, prefix: prefix, keysOnly: keysOnly)
  }

  /// The changes of a store. It ends with an error only: `storeUnknown` when the store is dropped, `changesLost`, `cancelled`.
  public struct Watch: AsyncSequence, Sendable {
    public typealias Element = Commit
    let store: RemoteStore
    let from: UInt64
    let prefix: String
    let keysOnly: Bool

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private let watch: Watch
      private var reader: AnswerReader?
      private var assembly: CommitAssembly
      private var isOver = false

      init(_ watch: Watch) {
        self.watch = watch
        assembly = CommitAssembly(keysOnly: watch.keysOnly)
      }

      /// Begins to watch, unless it has begun. When that has failed it may be tried again.
      /// - Returns: a revision such that all changes beyond it are told of. Whoever then reads the store, and takes up the changes that
      ///   are newer than what was read, misses nothing.
      public mutating func start() async throws(LarderError) -> UInt64 {
        if assembly.through == nil {
          isOver = false
          try await receive(isolation: nil)
        }
        return assembly.through ?? 0
      }

      public mutating func next() async throws(LarderError) -> Commit? {
        try await next(isolation: nil)
      }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> Commit? {
        while true {
          if let commit = assembly.popFirst() { return commit }
          if isOver { return nil }
          try await receive(isolation: actor)
        }
      }

      /// Takes the next frame in, over another connection if need be.
      private mutating func receive(isolation actor: isolated (any Actor)?) async throws(LarderError) {
        var attempts = 0
        while true {
          do throws(LarderError) {
            let body = try await frame(isolation: actor)
            guard unsafe assembly.take(body.span.bytes) else { throw .malformedReply }
            return
          } catch {
            reader = nil
            assembly.restart()
            guard assembly.through != nil, error.isPassing else {
              isOver = true
              throw error
            }
          }
          attempts += 1
          let pause = watch.store.core.configuration.backoff.milliseconds(afterFailures: attempts)
          // A cancellation shows in the next attempt.
          if attempts > 1 { try? await Task.sleep(for: .milliseconds(pause)) }
        }
      }

      private mutating func frame(isolation actor: isolated (any Actor)?) async throws(LarderError) -> [UInt8] {
        if let reader {
          let (body, hasMore) = try await reader.next(deadline: .max)
          guard hasMore else { throw .malformedReply }
          return body
        }
        let store = watch.store
        let connection = store.core.connection
        let request = WatchStoreRequest(
          from: assembly.through.map { $0 + 1 } ?? watch.from, prefix: watch.prefix, keysOnly: watch.keysOnly)
        let reply = try await connection.call(request, store: store.reference, time: store.time)
        guard case .body(let body, let rest?) = reply else { throw .malformedReply }
        reader = AnswerReader(store.core, connection, rest)
        return body
      }
    }
  }
}

extension LarderError {
  /// Whether the server, or another one in its place, may do better in a while.
  fileprivate var isPassing: Bool {
    switch kind {
    case .disconnected, .connectFailed, .timedOut, .shuttingDown, .serverTimedOut, .tooManyConnections: true
    default: false
    }
  }
}
