/// How much the live entries of a map contain, and how many entries have been changed and why. Owned by one `EntryMap`.
struct MapCounts {
  /// The size of all keys, in bytes.
  private(set) var keyBytes = 0
  /// The size of all values, in bytes.
  private(set) var valueBytes = 0
  /// The number of entries that clients wrote or deleted.
  private(set) var written: UInt64 = 0
  /// The number of entries removed because they expired.
  private(set) var expired: UInt64 = 0
  /// The number of entries removed to make room for others.
  private(set) var evicted: UInt64 = 0

  @inline(__always)
  mutating func add(_ record: Record) {
    keyBytes += record.key.count
    valueBytes += record.valueByteCount
  }

  @inline(__always)
  mutating func remove(_ record: Record) {
    keyBytes -= record.key.count
    valueBytes -= record.valueByteCount
  }

  /// Call this before a record is overwritten, or after another one has replaced it.
  @inline(__always)
  mutating func replaceValue(of record: Record, byteCount: Int) { valueBytes += byteCount - record.valueByteCount }

  /// Call this when all entries are removed.
  mutating func removeContents() { (keyBytes, valueBytes) = (0, 0) }

  @inline(__always)
  mutating func didWrite(_ count: Int = 1) { written &+= UInt64(count) }

  mutating func didExpire() { expired &+= 1 }

  mutating func didEvict() { evicted &+= 1 }
}
