/// The ordered map that serves every engine: records in an arena, found by the hash of their keys and by their order.
///
/// Every live record is in both indexes, exactly once. A record that a snapshot may see (its revision isn't above
/// `sharedRevision`) is never written and not freed before the snapshot ends. Time is whatever monotonic clock the
/// caller reads, in milliseconds, always the same one.
///
/// Owned by one `Store` and used under its lock.
///
/// Safe because it uniquely owns its memory and hands out pointers only as `EntryView`s, which end with the lock's
/// hold.
@safe
package struct EntryMap: ~Copyable, @unchecked Sendable {
  var arena = Arena()
  var externals = ExternalValues()
  var hashIndex = HashIndex()
  var order = OrderIndex()
  var expiryQueue = ExpiryQueue()
  /// Living snapshots, the oldest first.
  var snapshots: [LiveSnapshot] = []
  /// The newest revision that a living snapshot sees; 0 when there is none.
  var sharedRevision: UInt64 = 0
  /// Counts everything that makes the map differ from what it was.
  var changeCount: UInt64 = 0
  /// The epoch of the newest snapshot ever taken.
  var lastSnapshotEpoch: UInt64 = 0

  /// The revision of the last commit.
  package internal(set) var revision: UInt64 = 0
  /// Whether the store was dropped: the map is empty then, refuses writes, and knows no snapshot.
  package internal(set) var isDropped = false

  /// The commits that a journal has still to take, for a store that has one.
  var commits = CommitBuffer()
  /// Whether commits are kept for a journal.
  var isJournaled = false
  /// The latest changes, for those who watch the store; nil when nobody does.
  package internal(set) var feed: ChangeFeed?
  /// Whether changes are to be noted, as commits or in the feed.
  var notesChanges = false
  /// Bytes that `commits` may grow to; beyond that a write is refused.
  var commitLimit = 0
  /// Why nothing can be written any more; nil when it can.
  var writeFault: StorageError?
  /// The revision of the last commit that removed anything or set an expiry: what is absent may be so only since then.
  package internal(set) var lastRemoval: UInt64 = 0
  /// The revision of the last commit that made an entry of a key that had none: how many there are may be so only since then.
  package internal(set) var lastInsertion: UInt64 = 0

  var keyBytes = 0
  var valueBytes = 0
  /// How many entries have an expiry.
  var expiringCount = 0
  /// Entries that were removed because their time was over.
  var expiredCount: UInt64 = 0

  /// How many bytes the entries may take; nil without a limit.
  let limitBytes: Int?
  /// Entries that were removed to make room for others.
  var evictedCount: UInt64 = 0
  /// Bytes of records and nodes that only snapshots see.
  var heldBytes = 0

  /// - Parameter limitBytes: how many bytes the entries may take, see `EntryMap+Limit`; nil for as many as there are.
  package init(limitBytes: Int? = nil) { self.limitBytes = limitBytes }

  @inline(__always)
  func record(_ handle: UInt32) -> Record { unsafe Record(at: arena.address(handle)) }

  /// The live record of that key, expired or not; 0 when there is none.
  @inline(__always)
  func find(_ key: Key, hash: UInt32) -> UInt32 { hashIndex.find(key, hash: hash, in: arena) }

  /// Frees a record that is in neither index, now or when the last snapshot that sees it ends.
  @inline(__always)
  mutating func retire(_ handle: UInt32) {
    if record(handle).revision > sharedRevision {
      free(handle)
    } else {
      snapshots[snapshots.count - 1].records.append(handle)
      heldBytes += record(handle).memoryBytes
    }
  }

  mutating func free(_ handle: UInt32) {
    let record = record(handle)
    let units = record.units
    if record.isExternal { unsafe externals.free(record.external) }
    arena.free(handle, units: units)
  }

  /// Hands the nodes that the last change replaced to the newest snapshot.
  @inline(__always)
  mutating func settleNodes() {
    guard !order.replacedNodes.isEmpty else { return }
    snapshots[snapshots.count - 1].nodes += order.replacedNodes
    heldBytes += order.replacedNodes.count * OrderNode.byteCount
    order.replacedNodes.removeAll(keepingCapacity: true)
  }

  /// Forgets all records and gives their memory back at once, whoever may still see them.
  mutating func discardContents() {
    arena = Arena()
    externals = ExternalValues()
    hashIndex = HashIndex()
    order = OrderIndex()
    expiryQueue = ExpiryQueue()
    (keyBytes, valueBytes, expiringCount, heldBytes) = (0, 0, 0, 0)
    changeCount += 1
  }

  /// Ends the map's life: frees all it holds and ends its snapshots, so that their readers get `storeDropped`.
  package mutating func drop() {
    discardContents()
    snapshots = []
    sharedRevision = 0
    feed = nil
    notesChanges = isJournaled
    isDropped = true
  }
}
