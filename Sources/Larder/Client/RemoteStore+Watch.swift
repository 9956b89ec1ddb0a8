import Wire

extension RemoteStore {
  /// Returns the changes of the store as they are made, commit by commit, each exactly once. A slow consumer makes the
  /// server wait; the server keeps the latest changes only. Releasing the iterator ends the watch.
  ///
  /// If the connection is lost, the watch continues after the last commit as soon as there is a new connection, however
  /// long that takes. It throws `changesLost` if the server no longer keeps the changes that it needs: because the
  /// consumer was too slow, or because the server was restarted and there were writes before the watch continued. Then
  /// read the store, and watch it from the revision that you read. An expiration is not a change: the entry that was
  /// put says when it expires. A store with a durability other than `always` can lose changes in a crash that the watch
  /// has already returned.
  ///
  /// - Parameters:
  ///   - revision: The first revision to return changes of, at most one more than the store's revision; nil for changes
  ///     from now on, which is when the iterator's `start` returns or its first `next` has reached the server.
  ///   - prefix: Returns only changes of keys that begin with it, and deletions of everything.
  ///   - keysOnly: Whether values are left out.
  public func watch(from revision: UInt64? = nil, prefix: String = "", keysOnly: Bool = false) -> Watch {
    Watch(store: self, from: revision ?? 0, prefix: prefix, keysOnly: keysOnly)
  }

  /// The changes of a store. The sequence ends only with an error: `storeUnknown` if the store is dropped,
  /// `changesLost`, or `cancelled`.
  public struct Watch: AsyncSequence, Sendable {
    public typealias Element = Commit
    private let store: RemoteStore
    private let from: UInt64
    private let prefix: String
    private let keysOnly: Bool

    fileprivate init(store: RemoteStore, from: UInt64, prefix: String, keysOnly: Bool) {
      self.store = store
      self.from = from
      self.prefix = prefix
      self.keysOnly = keysOnly
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private let watch: Watch
      private var stream: ReplyStream?
      private var assembly: CommitAssembly
      private var isFinished = false

      fileprivate init(_ watch: Watch) {
        self.watch = watch
        assembly = CommitAssembly(keysOnly: watch.keysOnly)
      }

      /// Begins to watch, unless the iterator has begun. If it fails, it can be called again.
      /// - Returns: A revision after which the watch returns all changes. A task that reads the store now, and applies
      ///   the changes that are newer than what it read, misses nothing.
      public mutating func start() async throws(LarderError) -> UInt64 {
        if assembly.through == nil {
          isFinished = false
          try await receive(isolation: nil)
        }
        guard let revision = assembly.through else { preconditionFailure("The first frame has a revision.") }
        return revision
      }

      public mutating func next() async throws(LarderError) -> Commit? {
        try await next(isolation: nil)
      }

      public mutating func next(isolation actor: isolated (any Actor)?) async throws(LarderError) -> Commit? {
        while true {
          if let commit = assembly.popFirst() { return commit }
          if isFinished { return nil }
          try await receive(isolation: actor)
        }
      }

      /// Receives the next frame, over another connection if necessary.
      private mutating func receive(isolation actor: isolated (any Actor)?) async throws(LarderError) {
        var attempts = 0
        while true {
          do throws(LarderError) {
            let body = try await nextFrame(isolation: actor)
            guard unsafe assembly.add(body.span.bytes) else { throw .malformedReply }
            return
          } catch {
            stream = nil
            assembly.restart()
            guard assembly.through != nil, error.isTemporary else {
              isFinished = true
              throw error
            }
          }
          attempts += 1
          let pause = watch.store.core.configuration.backoff.milliseconds(afterFailures: attempts)
          // If the task is cancelled, the next attempt throws.
          if attempts > 1 { try? await Task.sleep(for: .milliseconds(pause)) }
        }
      }

      private mutating func nextFrame(isolation actor: isolated (any Actor)?) async throws(LarderError) -> [UInt8] {
        if let stream {
          let (body, hasMore) = try await stream.next(deadline: .max)
          guard hasMore else { throw .malformedReply }
          return body
        }
        let store = watch.store
        let request = WatchStoreRequest(
          from: assembly.through.map { $0 + 1 } ?? watch.from, prefix: watch.prefix, keysOnly: watch.keysOnly)
        let (body, rest) = try await store.stream(request, deadline: store.deadline)
        guard let rest else { throw .malformedReply }
        stream = rest
        return body
      }
    }
  }
}

extension LarderError {
  /// Whether the server, or its successor, may do better soon.
  var isTemporary: Bool {
    switch kind {
    case .disconnected, .connectFailed, .timedOut, .shuttingDown, .serverTimedOut, .tooManyConnections: true
    default: false
    }
  }
}
