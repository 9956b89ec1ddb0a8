/// Records the changes of a map: as commits for the commit writer of a durable store, and in a feed while the store is
/// watched.
///
/// Owned by one `EntryMap` and used under its store's lock.
struct ChangeRecorder: ~Copyable {
  /// The maximum size of an operation in a commit beyond its key and value, including the commit's own header.
  private static let operationByteCount = 36

  /// The commits that the commit writer hasn't taken yet.
  private var commits = CommitBuffer()
  /// Whether a commit writer takes the commits.
  private(set) var recordsCommits = false
  /// Whether writes must be checked: for a commit writer, or because a large commit has begun.
  private(set) var checksCommits = false
  /// The record of the large commit that has begun. The commit writer doesn't get it before the end.
  private var largeCommit = CommitBuffer()
  private var largeCommitPhase = LargeCommitPhase.none
  /// Whether a large commit has begun and others must not write.
  private var refusesWrites = false
  /// The latest changes, for watchers; nil if there are none.
  private(set) var feed: ChangeFeed?
  /// Whether anything is recorded, in commits or in the feed.
  private(set) var isRecording = false
  /// The maximum size of `commits` in bytes. A write that would exceed it is refused.
  private var commitLimit = 0
  /// The part of the limit that only commits without puts may use.
  private var removalReserve = 0
  /// The reason why the store refuses writes; nil if it accepts them.
  private var writeError: StorageError?

  private enum LargeCommitPhase {
    case none, begun
    /// There is space for all of it.
    case reserved
  }

  /// The memory of the feed and the waiting commits.
  var memoryBytes: Int { commits.memoryBytes + largeCommit.memoryBytes + (feed?.byteCount ?? 0) }

  /// Checks that there is space for operations. Mutating, because a call that only borrows the recorder copies it.
  mutating func checkCommit(operations: Int, bytes: Int, isRemoval: Bool) throws(StorageError) {
    if refusesWrites { throw .commitPending }
    guard recordsCommits, largeCommitPhase != .reserved else { return }
    if let writeError, writeError != .diskFull { throw writeError }
    let limit = isRemoval ? commitLimit : commitLimit - removalReserve
    guard commits.count + operations * Self.operationByteCount + bytes <= limit else {
      throw writeError ?? .diskTooSlow
    }
  }

  // MARK: Changes

  mutating func recordPut(
    _ key: Key, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64,
    _ effect: ChangeView.Effect
  ) {
    let key = unsafe key.bytes
    unsafe feed?.append(
      kind == .list ? .list : .single, key, value, expiry: expiry, revision: revision, effect: effect)
    guard recordsCommits else { return }
    let kind = kind == .list ? CommitBuffer.Kind.list : .single
    let expiry = expiry == 0 ? 0 : ClockReading.now.wall(ofMonotonic: expiry)
    if largeCommitPhase == .none {
      unsafe commits.put(key, value, kind: kind, expiry: expiry, revision: revision)
    } else {
      unsafe largeCommit.put(key, value, kind: kind, expiry: expiry, revision: revision)
    }
  }

  mutating func recordDelete(_ key: Key, revision: UInt64) {
    let key = unsafe key.bytes
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    unsafe feed?.append(.delete, key, none, expiry: 0, revision: revision)
    guard recordsCommits else { return }
    if largeCommitPhase == .none {
      unsafe commits.delete(key, revision: revision)
    } else {
      unsafe largeCommit.delete(key, revision: revision)
    }
  }

  mutating func recordExpiry(_ key: [UInt8], revision: UInt64) {
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    unsafe key.withUnsafeBytes { unsafe feed?.append(.expiry, $0, none, expiry: 0, revision: revision) }
  }

  mutating func recordDeleteAll(revision: UInt64) {
    let none = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    unsafe feed?.append(.deleteAll, none, none, expiry: 0, revision: revision)
    if recordsCommits { commits.deleteAll(revision: revision) }
  }

  // MARK: Commits

  var hasCommits: Bool { !commits.isEmpty }
  /// Whether there are commits, or one is being made.
  var expectsCommits: Bool { hasCommits || largeCommitPhase != .none }

  mutating func beginCommits(commitLimit: Int, removalReserve: Int) {
    recordsCommits = true
    checksCommits = true
    isRecording = true
    self.commitLimit = commitLimit
    self.removalReserve = removalReserve
  }

  mutating func takeCommits(into buffer: inout CommitBuffer) {
    precondition(buffer.isEmpty)
    commits.seal()
    swap(&commits, &buffer)
  }

  mutating func setCommitLimit(_ byteCount: Int, isDiskFull: Bool) {
    commitLimit = byteCount
    if writeError == nil || writeError == .diskFull { writeError = isDiskFull ? .diskFull : nil }
  }

  mutating func disableWrites(_ error: StorageError) {
    writeError = error
    commits.seal()
    commits.removeAll()
  }

  mutating func pauseWrites(_ error: StorageError) { writeError = error }

  mutating func resumeWrites() { writeError = nil }

  // MARK: Large commits

  mutating func beginLargeCommit() {
    largeCommitPhase = .begun
    feed?.holdChanges()
  }

  mutating func reserveLargeCommit(operations: Int, bytes: Int) {
    largeCommitPhase = .reserved
    if recordsCommits { largeCommit.reserveCapacity(operations * Self.operationByteCount + bytes) }
  }

  mutating func refuseWrites(_ refusesWrites: Bool) {
    self.refusesWrites = refusesWrites
    checksCommits = recordsCommits || refusesWrites
  }

  mutating func takeLargeCommit(into buffer: inout CommitBuffer) { swap(&largeCommit, &buffer) }

  /// - Parameter buffer: The sealed record of the commit.
  mutating func finishLargeCommit(_ buffer: inout CommitBuffer) {
    largeCommitPhase = .none
    feed?.releaseChanges()
    guard recordsCommits, !buffer.isEmpty else { return }
    // Nothing is written any more. During an outage, in contrast, it waits with the others.
    if case .readOnly = writeError { return }
    commits.seal()
    if commits.isEmpty { swap(&commits, &buffer) } else { commits.append(buffer) }
  }

  // MARK: The feed

  mutating func beginWatch(after revision: UInt64, limit: Int, notifiesImmediately: Bool) -> ChangeFeed {
    var feed =
      feed.take() ?? ChangeFeed(after: revision, limit: limit, notifiesImmediately: notifiesImmediately)
    feed.addWatcher()
    self.feed = feed
    isRecording = true
    return feed
  }

  /// Keeps a feed for watchers that may come.
  mutating func keepFeed(_ feed: ChangeFeed) {
    self.feed = feed
    isRecording = true
  }

  mutating func endWatch() { feed?.removeWatcher() }

  mutating func discardAbandonedFeed(now: UInt64) {
    if feed?.isAbandoned(now: now) == true { discardFeed() }
  }

  mutating func discardFeed() {
    feed = nil
    isRecording = recordsCommits
  }

  mutating func addWaiter(_ waiter: any ChangeWaiter) { feed?.addWaiter(waiter) }

  mutating func drainWaiters() -> [any ChangeWaiter] { feed?.drainWaiters() ?? [] }
}

// MARK: - Recording

extension EntryMap {
  /// Checks that there is space for a commit with `operations` operations and `bytes` bytes of keys and values.
  /// - Parameter isRemoval: Whether the commit has no puts. On a full disk, there may be space for only such commits.
  /// - Throws: `revisionsUsedUp`, `readOnly`, `diskFull` or `diskTooSlow`.
  @inline(__always)
  package mutating func checkCommit(operations: Int, bytes: Int, isRemoval: Bool = false) throws(StorageError) {
    try checkOperation(count: operations, bytes: bytes, revision: revisions.last + 1, isRemoval: isRemoval)
  }

  /// Checks that there is space for operations of a commit with that revision.
  @inline(__always)
  mutating func checkOperation(
    count operations: Int = 1, bytes: Int, revision: UInt64, isRemoval: Bool
  ) throws(StorageError) {
    guard revision <= CommitBuffer.maxRevision else { throw .revisionsUsedUp }
    guard changes.checksCommits else { return }
    try changes.checkCommit(operations: operations, bytes: bytes, isRemoval: isRemoval)
  }

  @inline(__always)
  mutating func recordPut(
    _ key: Key, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64,
    _ effect: ChangeView.Effect
  ) {
    if changes.isRecording {
      unsafe recordPutOutOfLine(key, value, kind: kind, expiry: expiry, revision: revision, effect)
    }
  }

  private mutating func recordPutOutOfLine(
    _ key: Key, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64,
    _ effect: ChangeView.Effect
  ) {
    if expiry != 0, changes.recordsCommits { revisions.didRemove(in: revision) }
    unsafe changes.recordPut(key, value, kind: kind, expiry: expiry, revision: revision, effect)
  }

  @inline(__always)
  mutating func recordDelete(_ key: Key, revision: UInt64) {
    revisions.didRemove(in: revision)
    if changes.isRecording { changes.recordDelete(key, revision: revision) }
  }

  mutating func recordDeleteAll(revision: UInt64) {
    revisions.didRemove(in: revision)
    changes.recordDeleteAll(revision: revision)
  }
}

// MARK: - For the commit writer

extension EntryMap {
  /// Starts recording commits.
  /// - Parameters:
  ///   - commitLimit: The maximum size of the commits that wait to be taken, in bytes.
  ///   - removalReserve: The part of this size, now and later, that only commits without puts may use.
  package mutating func beginCommits(commitLimit: Int, removalReserve: Int) {
    changes.beginCommits(commitLimit: commitLimit, removalReserve: removalReserve)
  }

  /// Whether commits wait to be taken.
  package var hasCommits: Bool { changes.hasCommits }
  /// Whether commits wait to be taken, or a large one is being made.
  var expectsCommits: Bool { changes.expectsCommits }

  /// Hands over the waiting commits, sealed, in exchange for an empty buffer.
  package mutating func takeCommits(into buffer: inout CommitBuffer) { changes.takeCommits(into: &buffer) }

  /// Sets the maximum size of the waiting commits, and whether the disk is full.
  package mutating func setCommitLimit(_ byteCount: Int, isDiskFull: Bool) {
    changes.setCommitLimit(byteCount, isDiskFull: isDiskFull)
  }

  /// Refuses all writes from now on, because the commit writer has failed, and discards the waiting commits.
  package mutating func disableWrites(_ error: StorageError) { changes.disableWrites(error) }

  /// Refuses writes with an error until `resumeWrites`. Only a large commit that has its space may still be made.
  mutating func pauseWrites(_ error: StorageError) { changes.pauseWrites(error) }

  /// Accepts writes again.
  mutating func resumeWrites() { changes.resumeWrites() }
}

// MARK: - For watchers

extension EntryMap {
  /// The latest changes; nil if nobody watches the store.
  package var feed: ChangeFeed? { changes.feed }

  /// Adds a watcher, and starts the feed if there is none. Balance it with `endWatch`.
  /// - Parameters:
  ///   - limit: The size of the feed, in bytes of changes.
  ///   - notifiesImmediately: Whether watchers may see changes before the commit writer has made them durable.
  package mutating func beginWatch(limit: Int, notifiesImmediately: Bool) -> ChangeFeed {
    changes.beginWatch(after: revisions.last, limit: limit, notifiesImmediately: notifiesImmediately)
  }

  package mutating func endWatch() { changes.endWatch() }

  /// Keeps the latest changes of a map that was loaded, for a minute, for watchers that watched the store elsewhere.
  mutating func keepFeed(_ feed: ChangeFeed) { changes.keepFeed(feed) }

  /// Discards the feed if nobody has watched for a while.
  package mutating func discardAbandonedFeed(now: UInt64) { changes.discardAbandonedFeed(now: now) }

  /// Registers a waiter to notify, once, of further changes or the drop of the store.
  package mutating func addChangeWaiter(_ waiter: any ChangeWaiter) { changes.addWaiter(waiter) }

  /// Removes and returns the waiters to notify now. The caller notifies them after it releases the store's lock.
  package mutating func drainChangeWaiters() -> [any ChangeWaiter] { changes.drainWaiters() }

  /// Removes and returns the waiters to notify if there are changes for them.
  @inline(__always)
  package mutating func takeNotifiedWaiters() -> [any ChangeWaiter] {
    changes.isRecording && changes.feed?.needsNotification == true ? drainChangeWaiters() : []
  }
}

/// What is to be done about a map's changes after its store was unlocked.
package struct MapNews {
  /// Whether commits wait to be taken.
  package let hasCommits: Bool
  package let waiters: [any ChangeWaiter]
  /// When an entry expires, sooner than any did before.
  package let soonerExpiry: UInt64?
}

extension EntryMap {
  /// Returns what has changed since this was last called.
  @inline(__always)
  package mutating func takeNews() -> MapNews {
    MapNews(hasCommits: changes.hasCommits, waiters: takeNotifiedWaiters(), soonerExpiry: takeSoonerExpiry())
  }
}
