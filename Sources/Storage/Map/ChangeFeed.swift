/// The latest changes of a store in the order of their revisions, for its watchers.
///
/// The changes of every commit lie end to end. Each has an offset that never changes: the number of bytes appended
/// before it. The feed drops the oldest changes once it exceeds its limit, but never those of the last commit. A store
/// has a feed only while it is watched and for a minute afterwards. Owned by the `ChangeRecorder` of an `EntryMap` and
/// used under the store's lock.
package struct ChangeFeed {
  /// How long the feed waits for watchers to return, in milliseconds.
  private static let retentionMilliseconds: UInt64 = 60_000
  private static let chunkByteCount = 64 << 10

  /// A run of changes, none of which extends beyond the chunk.
  private struct Chunk {
    let start: UInt64
    let firstRevision: UInt64
    var lastRevision: UInt64
    var bytes: [UInt8] = []

    var end: UInt64 { start + UInt64(bytes.count) }
  }

  private var chunks: [Chunk] = []
  /// The changes of a large commit that hasn't ended; nil if there is none. Nobody reads them yet.
  private var heldChunks: [Chunk]?
  /// The size of all changes in the feed.
  private(set) var byteCount = 0
  /// The offset of the next change.
  package private(set) var end: UInt64 = 0
  /// The newest revision with a change that isn't in the feed.
  package private(set) var lastDroppedRevision: UInt64
  /// The size in bytes beyond which the feed drops its oldest changes.
  private let limit: Int

  package private(set) var watcherCount = 0
  /// The time since when nobody watches; nil if somebody does.
  private var unwatchedSince: UInt64?
  /// The waiters to notify of the next change.
  package private(set) var waiters: [any ChangeWaiter] = []
  /// Whether the waiters are to be notified now.
  private(set) var needsNotification = false
  /// Whether waiters may be notified of changes at once. Otherwise the commit writer notifies them when the changes are
  /// durable.
  private let notifiesImmediately: Bool

  init(after revision: UInt64, limit: Int, notifiesImmediately: Bool) {
    lastDroppedRevision = revision
    self.limit = limit
    self.notifiesImmediately = notifiesImmediately
  }

  /// The offset of the oldest change in the feed.
  package var start: UInt64 { chunks.first?.start ?? end }

  // MARK: Writing

  mutating func append(
    _ kind: ChangeView.Kind, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, expiry: UInt64,
    revision: UInt64, effect: ChangeView.Effect = .all
  ) {
    let size = ChangeView.headerByteCount + key.count + value.count
    if heldChunks != nil {
      byteCount += size
      let start = heldChunks!.last?.end ?? end
      return unsafe Self.append(
        kind, key, value, expiry: expiry, revision: revision, effect, at: start, to: &heldChunks!)
    }
    if chunks.isEmpty || chunks[chunks.count - 1].bytes.count + size > Self.chunkByteCount {
      dropOldest(keeping: revision)
    }
    unsafe Self.append(kind, key, value, expiry: expiry, revision: revision, effect, at: end, to: &chunks)
    end += UInt64(size)
    byteCount += size
    if notifiesImmediately || kind == .expiry, !waiters.isEmpty { needsNotification = true }
  }

  private static func append(
    _ kind: ChangeView.Kind, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, expiry: UInt64,
    revision: UInt64, _ effect: ChangeView.Effect, at start: UInt64, to chunks: inout [Chunk]
  ) {
    let size = ChangeView.headerByteCount + key.count + value.count
    if chunks.isEmpty || chunks[chunks.count - 1].bytes.count + size > chunkByteCount {
      var chunk = Chunk(start: start, firstRevision: revision, lastRevision: revision)
      chunk.bytes.reserveCapacity(max(size, chunkByteCount))
      chunks.append(chunk)
    }
    let last = chunks.count - 1
    chunks[last].lastRevision = revision
    unsafe ChangeView.append(kind, key, value, expiry: expiry, revision: revision, effect, to: &chunks[last].bytes)
  }

  /// Keeps the following changes from readers until `releaseChanges`.
  mutating func holdChanges() { heldChunks = [] }

  mutating func releaseChanges() {
    guard let held = heldChunks.take(), let last = held.last else { return }
    dropOldest(keeping: last.lastRevision)
    chunks += held
    end = last.end
    if notifiesImmediately, !waiters.isEmpty { needsNotification = true }
  }

  private mutating func dropOldest(keeping revision: UInt64) {
    var dropped = 0
    while dropped < chunks.count, byteCount - chunks[dropped].bytes.count >= limit,
      chunks[dropped].lastRevision < revision
    {
      byteCount -= chunks[dropped].bytes.count
      lastDroppedRevision = chunks[dropped].lastRevision
      dropped += 1
    }
    chunks.removeFirst(dropped)
  }

  // MARK: Reading

  /// Returns the offset of the first change with this revision or a newer one.
  /// - Precondition: `revision` is newer than every revision with a change that isn't in the feed.
  package func position(of revision: UInt64) -> UInt64 {
    precondition(revision > lastDroppedRevision)
    guard let index = chunks.firstIndex(where: { $0.lastRevision >= revision }) else { return end }
    var offset = chunks[index].start
    visit(from: offset) { change in
      if change.revision >= revision { return false }
      offset += UInt64(change.byteCount)
      return true
    }
    return offset
  }

  /// Calls `body` with the changes from an offset on until it returns false.
  /// - Precondition: The change at the offset is in the feed.
  package func visit(from position: UInt64, _ body: (ChangeView) -> Bool) {
    precondition(position >= start && position <= end)
    var (low, high) = (0, chunks.count)
    while low < high {
      let middle = (low + high) / 2
      if chunks[middle].end <= position { low = middle + 1 } else { high = middle }
    }
    var offset = low < chunks.count ? Int(position - chunks[low].start) : 0
    for index in low..<chunks.count {
      let wantsMore = unsafe chunks[index].bytes.withUnsafeBytes { bytes in
        while offset < bytes.count {
          let change = unsafe ChangeView(bytes, at: offset)
          guard body(change) else { return false }
          offset += change.byteCount
        }
        return true
      }
      guard wantsMore else { return }
      offset = 0
    }
  }

  // MARK: Watchers

  mutating func addWatcher() {
    watcherCount += 1
    unwatchedSince = nil
  }

  mutating func removeWatcher() { watcherCount -= 1 }

  /// Registers a waiter to notify of the next change, once. A listener waits at most once at a time, because waiters of
  /// a feed whose commit writer notifies them stay registered for as long as the store lives.
  mutating func addWaiter(_ waiter: any ChangeWaiter) {
    if !waiters.contains(where: { $0.listener == waiter.listener }) { waiters.append(waiter) }
  }

  /// Removes and returns the waiters. The caller notifies them after it releases the store's lock.
  mutating func drainWaiters() -> [any ChangeWaiter] {
    needsNotification = false
    defer { waiters = [] }
    return waiters
  }

  /// Returns whether nobody has watched for so long that the feed isn't needed anymore.
  mutating func isAbandoned(now: UInt64) -> Bool {
    guard watcherCount == 0 else { return false }
    guard let since = unwatchedSince else {
      unwatchedSince = now
      return false
    }
    return now >= since + Self.retentionMilliseconds
  }
}

/// A watcher of a store that waits for changes.
package protocol ChangeWaiter: AnyObject, Sendable {
  /// The listener that the waiter notifies. Of several waiters of one listener, one is enough.
  var listener: ObjectIdentifier { get }
  /// Notifies the listener that there are changes, or that the store was dropped. Called on any thread; must return at
  /// once.
  func storeDidChange()
}

/// One change of a store, in place in the feed. Valid until the feed next changes.
///
///     0   u64  revision                  16  u32  length of the value
///     8   u64  expiry, 0 for never       20  u16  length of the key
///                                        22  u8   kind
///                                        23  u8   effect
@safe
package struct ChangeView {
  package enum Kind: UInt8, Sendable {
    case single = 1
    case list = 2
    case delete = 3
    case deleteAll = 4
    /// An entry was removed because it had expired, which is no change of a commit. It has the revision of the commit
    /// before.
    case expiry = 5
  }

  /// What a write has changed of an entry.
  package enum Effect: UInt8, Sendable {
    /// The value, and perhaps the expiry.
    case all = 0
    /// The value. The entry expires when it did before.
    case value = 1
    /// The expiry. The value is what it was before.
    case expiry = 2
  }

  static let headerByteCount = 24

  package let kind: Kind
  package let effect: Effect
  package let revision: UInt64
  /// When the written entry expires, by the clock of the map; 0 for never.
  package let expiry: UInt64
  package let key: UnsafeRawBufferPointer
  package let value: UnsafeRawBufferPointer

  /// The size of the change in the feed.
  package var byteCount: Int { unsafe Self.headerByteCount + key.count + value.count }

  @unsafe
  init(_ bytes: UnsafeRawBufferPointer, at offset: Int) {
    unsafe revision = bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    unsafe expiry = bytes.loadUnaligned(fromByteOffset: offset + 8, as: UInt64.self)
    let valueCount = unsafe Int(bytes.loadUnaligned(fromByteOffset: offset + 16, as: UInt32.self))
    let keyCount = unsafe Int(bytes.loadUnaligned(fromByteOffset: offset + 20, as: UInt16.self))
    unsafe kind = Kind(rawValue: bytes[offset + 22])!
    unsafe effect = Effect(rawValue: bytes[offset + 23])!
    let start = offset + Self.headerByteCount
    unsafe key = UnsafeRawBufferPointer(rebasing: bytes[start..<start + keyCount])
    unsafe value = UnsafeRawBufferPointer(rebasing: bytes[start + keyCount..<start + keyCount + valueCount])
  }

  static func append(
    _ kind: Kind, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, expiry: UInt64, revision: UInt64,
    _ effect: Effect, to bytes: inout [UInt8]
  ) {
    let lengths =
      UInt64(value.count) | UInt64(key.count) << 32 | UInt64(kind.rawValue) << 48 | UInt64(effect.rawValue) << 56
    unsafe withUnsafeBytes(of: (revision, expiry, lengths)) { unsafe bytes.append(contentsOf: $0) }
    unsafe bytes.append(contentsOf: key)
    unsafe bytes.append(contentsOf: value)
  }
}
