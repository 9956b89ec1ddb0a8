/// The latest changes of a store, in the order of their revisions, for those who watch it.
///
/// Every commit's changes stand end to end, and each has a place that never changes: the number of bytes that were ever noted before it. The
/// oldest are forgotten once there are too many, but never those of the last commit. A store has a feed only while it is watched, and for a
/// while after. Owned by its `EntryMap` and used under the store's lock.
package struct ChangeFeed {
  /// How long changes are kept for a watcher that may come back, in milliseconds.
  static let keptMilliseconds: UInt64 = 60_000
  private static let chunkByteCount = 64 << 10

  /// Changes end to end. None reaches over the end of its chunk.
  private struct Chunk {
    let start: UInt64
    let firstRevision: UInt64
    var lastRevision: UInt64
    var bytes: [UInt8] = []

    var end: UInt64 { start + UInt64(bytes.count) }
  }

  private var chunks: [Chunk] = []
  private var byteCount = 0
  /// Where the next change will stand.
  package private(set) var end: UInt64 = 0
  /// The newest revision of which a change is not at hand.
  package private(set) var lostRevision: UInt64
  /// How many bytes are kept, if there are so many.
  private let limit: Int

  package private(set) var watcherCount = 0
  /// Since when nobody watches.
  private var unwatchedSince: UInt64?
  /// Who is to be told of the next change, and whether there has been one.
  package private(set) var waiters: [any ChangeWaiter] = []
  package private(set) var hasNews = false
  /// Whether changes may be told of at once; otherwise the journal tells of them when they are durable.
  private let tellsAtOnce: Bool

  init(after revision: UInt64, limit: Int, tellsAtOnce: Bool) {
    lostRevision = revision
    self.limit = limit
    self.tellsAtOnce = tellsAtOnce
  }

  /// Where the oldest change stands that is at hand.
  package var start: UInt64 { chunks.first?.start ?? end }

  // MARK: Writing

  mutating func note(
    _ kind: ChangeView.Kind, _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, expiry: UInt64,
    revision: UInt64
  ) {
    let size = ChangeView.headerByteCount + key.count + value.count
    if chunks.isEmpty || chunks[chunks.count - 1].bytes.count + size > Self.chunkByteCount {
      dropOldest(keeping: revision)
      var chunk = Chunk(start: end, firstRevision: revision, lastRevision: revision)
      chunk.bytes.reserveCapacity(max(size, Self.chunkByteCount))
      chunks.append(chunk)
    }
    let last = chunks.count - 1
    chunks[last].lastRevision = revision
    unsafe ChangeView.append(kind, key, value, expiry: expiry, revision: revision, to: &chunks[last].bytes)
    end += UInt64(size)
    byteCount += size
    if tellsAtOnce, !waiters.isEmpty { hasNews = true }
  }

  private mutating func dropOldest(keeping revision: UInt64) {
    var dropped = 0
    while dropped < chunks.count, byteCount - chunks[dropped].bytes.count >= limit,
      chunks[dropped].lastRevision < revision
    {
      byteCount -= chunks[dropped].bytes.count
      lostRevision = chunks[dropped].lastRevision
      dropped += 1
    }
    chunks.removeFirst(dropped)
  }

  // MARK: Reading

  /// Where the first change stands that is not older than `revision`, all of which since then are at hand.
  /// - Precondition: `revision` is beyond `lostRevision`.
  package func place(of revision: UInt64) -> UInt64 {
    precondition(revision > lostRevision)
    guard let index = chunks.firstIndex(where: { $0.lastRevision >= revision }) else { return end }
    var place = chunks[index].start
    visit(from: place) { change in
      if change.revision >= revision { return false }
      place += UInt64(change.byteCount)
      return true
    }
    return place
  }

  /// Calls `body` with the changes from a place on that is at hand, until it returns false.
  package func visit(from place: UInt64, _ body: (ChangeView) -> Bool) {
    precondition(place >= start && place <= end)
    var (low, high) = (0, chunks.count)
    while low < high {
      let middle = (low + high) / 2
      if chunks[middle].end <= place { low = middle + 1 } else { high = middle }
    }
    var offset = low < chunks.count ? Int(place - chunks[low].start) : 0
    for index in low..<chunks.count {
      let goesOn = unsafe chunks[index].bytes.withUnsafeBytes { bytes in
        while offset < bytes.count {
          let change = unsafe ChangeView(bytes, at: offset)
          guard body(change) else { return false }
          offset += change.byteCount
        }
        return true
      }
      guard goesOn else { return }
      offset = 0
    }
  }

  // MARK: Watchers

  mutating func addWatcher() {
    watcherCount += 1
    unwatchedSince = nil
  }

  mutating func removeWatcher() { watcherCount -= 1 }

  /// Has `waiter` told of the next change, once. Who waits already is told once for all: where a journal tells of changes, nobody is taken
  /// from here as long as the store lives.
  package mutating func wait(_ waiter: any ChangeWaiter) {
    if !waiters.contains(where: { $0.listener == waiter.listener }) { waiters.append(waiter) }
  }

  /// Whoever is to be told now, by the caller, once it has let go of the store.
  package mutating func takeWaiters() -> [any ChangeWaiter] {
    hasNews = false
    defer { waiters = [] }
    return waiters
  }

  /// Whether nobody has watched for so long that the changes need not be kept.
  mutating func isForgotten(now: UInt64) -> Bool {
    guard watcherCount == 0 else { return false }
    guard let since = unwatchedSince else {
      unwatchedSince = now
      return false
    }
    return now >= since + Self.keptMilliseconds
  }
}

/// Who watches a store.
package protocol ChangeWaiter: AnyObject, Sendable {
  /// Whom it tells. Of several waiters of one listener, one is enough.
  var listener: ObjectIdentifier { get }
  /// There are changes, or the store was dropped. On any thread: return at once.
  func storeHasChanged()
}
