import Wire

extension RemoteStore {
  /// Returns the changes of the store as they are made, commit by commit, each exactly once. A slow consumer makes the
  /// server wait; the server keeps the latest changes only. Releasing the iterator ends the watch.
  ///
  /// If the connection is lost, the watch continues after the last commit as soon as there is a new connection, however
  /// long that takes. It throws `changesLost` if the server no longer keeps the changes that it needs: because the
  /// consumer was too slow, or because the server was restarted and there were writes before the watch continued. It
  /// throws `changesLost`, too, if the store is not the one that it was: a store in memory whose server was restarted, a
  /// store that was dropped and created again, or one with a durability other than `always` after a crash, which can
  /// lose changes that the watch has already returned. In all these cases, read the store, and watch it again. An
  /// expiration is not a change: the entry that was put says when it expires.
  ///
  /// To continue a watch in another process, keep the revision of the last commit with the iterator's `incarnation`.
  ///
  /// - Parameters:
  ///   - revision: The first revision to return changes of, at most one more than the store's revision; nil for changes
  ///     from now on, which is when the iterator's `start` returns or its first `next` has reached the server.
  ///   - incarnation: The incarnation of the store that `revision` belongs to. The watch throws `changesLost` if the
  ///     store has another one by now. Nil to watch the store whatever it is.
  ///   - prefix: Returns only changes of keys that begin with it, and deletions of everything.
  ///   - keysOnly: Whether values are left out.
  public func watch(
    from revision: UInt64? = nil, incarnation: UInt64? = nil, prefix: String = "", keysOnly: Bool = false
  ) -> Watch {
    Watch(store: self, from: revision ?? 0, incarnation: incarnation, prefix: prefix, keysOnly: keysOnly)
  }

  /// Begins a watch of one incarnation of the store.
  /// - Parameter incarnation: Nil for any.
  /// - Returns: The first frame, which has the incarnation if the server supports incarnations, and the others.
  func beginWatch(
    from revision: UInt64, incarnation: UInt64?, prefix: String, keysOnly: Bool
  ) async throws(LarderError) -> (body: [UInt8], stream: ReplyStreamReader) {
    let (body, rest): ([UInt8], ReplyStreamReader?)
    do throws(LarderError) {
      let request = WatchIncarnationRequest(
        from: revision, incarnation: incarnation ?? 0, prefix: prefix, keysOnly: keysOnly)
      (body, rest) = try await stream(request, deadline: deadline)
    } catch {
      guard error.kind == .unknownOperation else { throw error }
      guard incarnation == nil else {
        throw LarderError(
          .changesLost, "this server can't confirm that the store is still the same; read it, and watch it again")
      }
      let request = WatchStoreRequest(from: revision, prefix: prefix, keysOnly: keysOnly)
      (body, rest) = try await stream(request, deadline: deadline)
    }
    guard let stream = rest else { throw .malformedReply }
    return (body, stream)
  }

  /// The changes of a store. The sequence ends only with an error: `storeUnknown` if the store is dropped,
  /// `changesLost`, or `cancelled`.
  public struct Watch: AsyncSequence, Sendable {
    public typealias Element = Commit
    private let store: RemoteStore
    private let from: UInt64
    private let incarnation: UInt64?
    private let prefix: String
    private let keysOnly: Bool

    fileprivate init(store: RemoteStore, from: UInt64, incarnation: UInt64?, prefix: String, keysOnly: Bool) {
      self.store = store
      self.from = from
      self.incarnation = incarnation
      self.prefix = prefix
      self.keysOnly = keysOnly
    }

    public func makeAsyncIterator() -> AsyncIterator { AsyncIterator(self) }

    public struct AsyncIterator: AsyncIteratorProtocol {
      private let watch: Watch
      private var stream: ReplyStreamReader?
      private var assembly: CommitAssembly
      private var isFinished = false

      fileprivate init(_ watch: Watch) {
        self.watch = watch
        assembly = CommitAssembly(keysOnly: watch.keysOnly)
      }

      /// The incarnation of the store that is watched, which is the identity of its history; nil if the watch has not
      /// begun and none was given, or if the server is too old to tell.
      public var incarnation: UInt64? { assembly.incarnation ?? watch.incarnation }

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
        let hasBegun = assembly.through != nil
        var attempts = 0
        while true {
          do throws(LarderError) {
            let body = try await nextFrame(isolation: actor)
            guard unsafe assembly.add(body.span.bytes) else { throw .malformedReply }
            // If changes are lost, the next frame is the error.
            if assembly.lostRevision == nil { return }
          } catch {
            stream = nil
            assembly.restart()
            guard hasBegun, error.isTemporary else {
              isFinished = true
              if !hasBegun { assembly = CommitAssembly(keysOnly: watch.keysOnly) }
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
        let (body, stream) = try await watch.store.beginWatch(
          from: assembly.through.map { $0 + 1 } ?? watch.from, incarnation: incarnation, prefix: watch.prefix,
          keysOnly: watch.keysOnly)
        self.stream = stream
        return body
      }
    }
  }
}

extension LarderError {
  /// Whether the server, or its successor, may do better soon.
  var isTemporary: Bool {
    switch kind {
    case .disconnected, .connectFailed, .timedOut, .shuttingDown, .serverTimedOut, .tooManyConnections, .notLeader:
      true
    default: false
    }
  }
}
