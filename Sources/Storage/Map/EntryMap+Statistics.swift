/// Figures of one store at one moment.
package struct MapStatistics: Equatable, Sendable {
  /// Entries, those included that have expired but were not yet removed.
  package var entries = 0
  package var revision: UInt64 = 0
  package var keyBytes = 0
  package var valueBytes = 0
  /// Values that are read from files when they are asked for, those included that only snapshots see; and their sizes.
  package var valuesOnDisk = 0
  package var valuesOnDiskBytes = 0
  /// All that the map holds in memory: records, values, indexes, and what is kept for snapshots.
  package var memoryBytes = 0
  /// Entries with an expiry.
  package var expiring = 0
  /// Entries that were removed because their time was over, since the map was made.
  package var expired: UInt64 = 0
  /// Living snapshots, those of the same state counted once.
  package var snapshots = 0
  /// How many bytes the entries may take, and what of it they do; nil and 0 without a limit.
  package var limitBytes: Int?
  package var limitedBytes = 0
  /// Entries that were removed to make room for others, since the map was made.
  package var evicted: UInt64 = 0
}

extension EntryMap {
  package var statistics: MapStatistics {
    MapStatistics(
      entries: order.count, revision: revision, keyBytes: keyBytes, valueBytes: valueBytes,
      valuesOnDisk: externals.storedCount, valuesOnDiskBytes: externals.storedBytes, memoryBytes: memoryBytes,
      expiring: expiringCount, expired: expiredCount, snapshots: snapshots.count, limitBytes: limitBytes,
      limitedBytes: limitBytes == nil ? 0 : limitedBytes, evicted: evictedCount)
  }

  private var memoryBytes: Int {
    arena.memoryBytes + externals.memoryBytes + hashIndex.memoryBytes + order.memoryBytes + expiryQueue.memoryBytes
      + snapshots.reduce(0) { $0 + $1.memoryBytes }
  }
}
