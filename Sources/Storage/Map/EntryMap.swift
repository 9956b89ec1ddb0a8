/// The ordered map at the heart of every store: records in an arena, found by the hash of their keys and by their
/// order.
///
/// Every live record is in both indexes exactly once. A record that a snapshot may see (its revision isn't above
/// `snapshots.newestRevision`) is never written, and not freed before the snapshot ends. Times are milliseconds of a
/// monotonic clock that the caller reads, always the same one.
///
/// Owned by one `Store` and used under its lock.
///
/// Safe because it uniquely owns its memory and hands out pointers only as `EntryView`s, which are valid only while the
/// caller holds the lock.
@safe
package struct EntryMap: ~Copyable, @unchecked Sendable {
  var arena: Arena
  var externals: ExternalValues
  var hashIndex = HashIndex()
  var order = OrderTree<Records>()
  var expiryQueue = ExpiryQueue()
  var snapshots: SnapshotTable
  /// The indexes of the map's documents; nil if there are none.
  var indexes: MapIndexes?
  package internal(set) var revisions = MapRevisions()
  var counts = MapCounts()
  /// Whether the store was dropped. The map is then empty, refuses writes and has no snapshots.
  package private(set) var isDropped = false
  /// What those get who use a dropped map: `storeDropped`, or `servedElsewhere` if the store lives on in another server.
  package private(set) var removalError = StorageError.storeDropped
  /// What look-ups must consider.
  var attention: Attention
  /// The large commit that has begun; nil if there is none.
  var largeCommit: LargeCommit?

  /// The changes that the commit writer or watchers still have to read.
  var changes = ChangeRecorder()
  /// The memory limit of the entries, in bytes; nil for no limit. See `EntryMap+Eviction.swift`.
  let limitBytes: Int?
  /// What other writes leave of the limit to a large value, for which entries are evicted in slices.
  var room = LargeValueRoom()

  /// What the process may take from the system.
  let memoryBudget: MemoryBudget?
  /// What the map held before its entries were removed, while others read it without the lock.
  private var discardedContents: [DiscardedContents] = []

  /// Creates an empty map.
  /// - Parameters:
  ///   - limitBytes: The memory limit of the entries; nil for no limit.
  ///   - budgets: What this map and others may use together.
  package init(limitBytes: Int? = nil, budgets: StoreBudgets = StoreBudgets()) {
    self.limitBytes = limitBytes
    attention = limitBytes == nil ? [] : .limited
    memoryBudget = budgets.memory
    arena = Arena(budgets.memory)
    externals = ExternalValues(budgets.memory)
    snapshots = SnapshotTable(budgets.snapshots)
  }

  @inline(__always)
  func record(_ handle: UInt32) -> Record { unsafe Record(at: arena.address(handle)) }

  /// Returns the live record with this key, expired or not; 0 if there is none.
  @inline(__always)
  func find(_ key: Key, hash: UInt32) -> UInt32 { hashIndex.find(key, hash: hash, in: arena) }

  /// Frees a record that is in neither index: now, or when the last snapshot that sees it ends.
  @inline(__always)
  mutating func retire(_ handle: UInt32) {
    if record(handle).revision > snapshots.newestRevision {
      free(handle)
    } else {
      snapshots.retain(record: handle, byteCount: record(handle).memoryBytes)
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
  mutating func retireReplacedNodes() {
    guard !order.replacedNodes.isEmpty else { return }
    snapshots.retain(nodes: order.replacedNodes)
    order.forgetReplacedNodes()
  }

  /// The revision of the last commit, which may be a large one that hasn't ended.
  package var commitRevision: UInt64 {
    if isDiverted, let largeCommit { return max(largeCommit.hidden.last, revisions.lastCommit) }
    return revisions.lastCommit
  }

  /// Skips revisions that lost commits may have had.
  mutating func skipRevisions(through last: UInt64) { revisions.skip(through: last, after: commitRevision) }

  /// Removes all records. Much memory is freed on a thread of its own.
  /// - Precondition: There is no snapshot.
  mutating func discardContents() {
    snapshots.forgetEnded()
    let contents = DiscardedContents(memoryBudget, hashIndex: hashIndex.makeEmpty())
    swap(&arena, &contents.arena)
    swap(&externals, &contents.externals)
    swap(&hashIndex, &contents.hashIndex)
    swap(&order, &contents.order)
    discardedContents.append(contents)
    if snapshots.readerCount == 0 { freeDiscardedContents() }
    expiryQueue = ExpiryQueue()
    indexes?.removeAll()
    counts.removeContents()
    revisions.didChange()
  }

  mutating func freeDiscardedContents() {
    guard !discardedContents.isEmpty else { return }
    for contents in discardedContents { contents.free(memoryBudget) }
    discardedContents = []
  }

  /// Ends the map's life: frees its memory and ends its snapshots, so that their readers get an error.
  package mutating func drop(because error: StorageError = .storeDropped) {
    abandonLargeCommit()
    snapshots.removeAll()
    discardContents()
    indexes?.discard()
    indexes = nil
    updateSnapshotShare()
    changes.discardFeed()
    (isDropped, removalError) = (true, error)
  }
}

/// How much a map contains after a commit.
package struct MapContents: Equatable, Sendable {
  /// The number of entries, including those that have expired but aren't removed yet.
  package var entries = 0
  package var revision: UInt64 = 0
  package var keyBytes = 0
  package var valueBytes = 0
  /// The number of entries with an expiry.
  package var expiring = 0

  package init() {}
}

/// The statistics of a store at a point in time.
package struct MapStatistics: Equatable, Sendable {
  package var contents = MapContents()
  /// The number of entries that clients wrote or deleted, since the map was created or loaded.
  package var written: UInt64 = 0
  /// The number of values that are read from files on demand, including those that only snapshots see.
  package var valuesOnDisk = 0
  package var valuesOnDiskBytes = 0
  /// The memory of records, values, indexes, and everything kept for snapshots.
  package var memoryBytes = 0
  /// The number of entries removed because they expired, since the map was created.
  package var expired: UInt64 = 0
  /// The number of living snapshots; snapshots of the same state count once.
  package var snapshots = 0
  /// The number of snapshots that were ended because all of them kept too much, since the map was created.
  package var endedSnapshots: UInt64 = 0
  /// The memory limit of the entries; nil for no limit.
  package var limitBytes: Int?
  /// The bytes that count toward the limit; 0 without one.
  package var limitedBytes = 0
  /// The number of entries removed to make room for others, since the map was created.
  package var evicted: UInt64 = 0
}

/// What the memory of a map is used for, in bytes. Each byte is counted once.
package struct MapMemory: Equatable, Sendable {
  /// Records and large values, with the free space between records.
  package private(set) var records = 0
  package private(set) var hash = 0
  package private(set) var order = 0
  /// The indexes of documents.
  package private(set) var indexes = 0
  package private(set) var expiry = 0
  /// Snapshots, and the records and order nodes that only they see.
  package private(set) var snapshots = 0
  /// The changes for watches, and the commits that the commit writer hasn't taken.
  package private(set) var changes = 0
  /// How much of all this is in pages of its own. The rest is in the heap.
  package private(set) var pagedBytes = 0

  package init() {}

  fileprivate init(
    records: Int, hash: Int, order: Int, indexes: Int, expiry: Int, snapshots: Int, changes: Int, pagedBytes: Int
  ) {
    (self.records, self.hash, self.order, self.indexes) = (records, hash, order, indexes)
    (self.expiry, self.snapshots, self.changes, self.pagedBytes) = (expiry, snapshots, changes, pagedBytes)
  }

  /// The memory of the entries: everything but the changes.
  package var entryBytes: Int { records + hash + order + indexes + expiry + snapshots }

  package static func += (left: inout MapMemory, right: MapMemory) {
    left.records += right.records
    left.hash += right.hash
    left.order += right.order
    left.indexes += right.indexes
    left.expiry += right.expiry
    left.snapshots += right.snapshots
    left.changes += right.changes
    left.pagedBytes += right.pagedBytes
  }
}

extension EntryMap {
  package var contents: MapContents {
    if isDiverted, let largeCommit { return largeCommit.contents }
    var contents = MapContents()
    (contents.entries, contents.revision, contents.expiring) = (order.count, revisions.last, expiryQueue.entryCount)
    (contents.keyBytes, contents.valueBytes) = (counts.keyBytes, counts.valueBytes)
    return contents
  }

  /// The size of keys and values, in bytes, without the values that are read on demand.
  package var residentByteCount: Int { max(0, counts.keyBytes + counts.valueBytes - externals.storedBytes) }
  /// The size of the values that are read on demand, in bytes.
  package var storedByteCount: Int { externals.storedBytes }

  package var statistics: MapStatistics {
    MapStatistics(
      contents: contents, written: counts.written, valuesOnDisk: externals.storedCount,
      valuesOnDiskBytes: externals.storedBytes,
      memoryBytes: memory.entryBytes, expired: counts.expired, snapshots: snapshots.count,
      endedSnapshots: snapshots.endedForBudgetCount, limitBytes: limitBytes,
      limitedBytes: limitBytes == nil ? 0 : limitedBytes, evicted: counts.evicted)
  }

  /// The memory of the map. O(indexes + snapshots).
  package var memory: MapMemory {
    MapMemory(
      records: arena.memoryBytes + externals.memoryBytes - snapshots.retainedRecordBytes,
      hash: hashIndex.memoryBytes, order: order.memoryBytes - snapshots.retainedNodeBytes,
      indexes: indexes?.memoryBytes ?? 0, expiry: expiryQueue.memoryBytes,
      snapshots: snapshots.memoryBytes + snapshots.retainedBytes, changes: changes.memoryBytes,
      pagedBytes: arena.memoryBytes + hashIndex.pagedBytes + order.memoryBytes + (indexes?.pagedBytes ?? 0))
  }
}
