import Platform
import Wire

/// Keeps a live cache right: reports the store's changes to it, and for how long it may be trusted.
///
/// A task follows the store's changes from the first use of the cache on, over one connection after another. Releasing
/// the feed ends the task, which doesn't keep the feed.
final class LiveCacheFeed: Sendable {
  let cache: LiveCache
  private let follower: Follower
  private let task = Lock<Task<Void, Never>?>(nil)

  /// - Parameter maxSilence: How long the cache is trusted after the last reply to a ping, in nanoseconds.
  init(_ store: RemoteStore, prefix: String, limit: Int, maxSilence: UInt64) {
    cache = LiveCache(prefix: prefix, limit: limit)
    follower = Follower(store: store, prefix: prefix, cache: cache, maxSilence: maxSilence)
  }

  deinit { task.withLock { $0?.cancel() } }

  /// Begins to follow the changes, unless it has begun.
  func start() {
    task.withLock { [follower] task in
      if task == nil { task = Task.detached(priority: .high) { await follower.run() } }
    }
  }
}

/// The work of the feed's task.
private struct Follower: Sendable {
  let store: RemoteStore
  let prefix: String
  let cache: LiveCache
  let maxSilence: UInt64

  /// How far the changes are known, and the incarnation of the store that they belong to.
  private struct Track {
    var changes = CommitAssembly(keysOnly: true)
    var incarnation: UInt64?
  }

  /// What the server says about the store.
  private struct Position {
    let revision: UInt64
    /// Nil for a server that doesn't tell.
    let incarnation: UInt64?

    init(of store: RemoteStore) async throws(LarderError) {
      let figures = try await store.stats()
      (revision, incarnation) = (figures["revision"] ?? .max, figures["incarnation"])
    }
  }

  /// Follows the changes until the task is cancelled or the client is closed.
  func run() async {
    var track = Track()
    var failures = 0
    while true {
      do throws(LarderError) {
        try await follow(&track) { failures = 0 }
      } catch {
        cache.disconnect()
        // After other errors, the next connection delivers the changes that are missing.
        if !error.isTemporary {
          cache.endTrack()
          track = Track()
        }
        if Task.isCancelled || error.kind == .closed { return }
      }
      failures += 1
      let pause = store.core.configuration.backoff.milliseconds(afterFailures: failures)
      try? await Task.sleep(for: .milliseconds(pause))
    }
  }

  /// Follows the changes until they can't be followed.
  /// - Parameter didConnect: Called when all changes up to now are known.
  private func follow(_ track: inout Track, _ didConnect: () -> Void) async throws(LarderError) {
    let before = track.changes.through == nil ? nil : try await Position(of: store)
    track.changes.restart()
    let (body, stream) = try await store.beginWatch(
      from: track.changes.through.map { $0 + 1 } ?? 0, incarnation: track.changes.incarnation, prefix: prefix,
      keysOnly: true)
    try add(body, to: &track.changes)

    // If another store takes this one's place from here on, the stream ends.
    var incarnation = track.changes.incarnation
    if incarnation == nil { incarnation = try await Position(of: store).incarnation }
    var isComplete = false
    if before == nil || incarnation == nil || incarnation != track.incarnation {
      track.incarnation = incarnation
      cache.beginTrack(after: track.changes.through ?? 0)
      isComplete = true
    }
    var heartbeat: Task<Void, Never>?
    defer { heartbeat?.cancel() }
    while true {
      while let commit = track.changes.popFirst() { cache.apply(commit) }
      if heartbeat == nil, isComplete || track.changes.through! >= before!.revision {
        let connection = cache.connect()
        heartbeat = Task.detached(priority: .high) { await beat(of: stream, connection) }
        didConnect()
      }
      let frame = try await stream.next(deadline: .max)
      guard frame.hasMore else { throw .malformedReply }
      try add(frame.body, to: &track.changes)
    }
  }

  private func add(_ body: [UInt8], to changes: inout CommitAssembly) throws(LarderError) {
    guard unsafe changes.add(body.span.bytes) else { throw .malformedReply }
    if changes.lostRevision != nil { throw LarderError(.changesLost, "the server no longer keeps the changes") }
  }

  /// Trusts the cache for as long as the server responds on the stream's connection, and all changes that have arrived
  /// are known. Returns when the task is cancelled.
  private func beat(of stream: ReplyStreamReader, _ connection: UInt64) async {
    while !Task.isCancelled {
      let time = monotonicNanoseconds()
      let isUpToDate = await stream.isUpToDate(timeout: maxSilence / 1_000_000)
      if isUpToDate { cache.trust(until: time + maxSilence, on: connection) }
      try? await Task.sleep(for: .nanoseconds(maxSilence / (isUpToDate ? 2 : 32)))
    }
  }
}
