/// What a map with a limit does beside: when its entries take more than that, others make room for those that were just written.
///
/// A hand goes round the records as they lie in memory. An entry that was used since it last passed, read by its key or overwritten, loses the
/// mark of it and is spared; the next one is evicted. So what is asked for again and again stays, a scan of keys that nobody asks for twice
/// goes as it came, and the room that is made lies together.
extension EntryMap {
  /// How many entries are spared in a row before one is evicted all the same: what a write may take, if all have been used.
  private static let mostSpared = 1_024

  /// What a map may take beside its entries: a chunk for every segment of the hash index, and the table of them.
  static let fixedBytes = 64 << 10
  /// The most that an entry takes beside key and value, but for that of a large value: its header, its places in both indexes, which are
  /// sparse at worst, and in the queue of those that expire.
  private static let entryByteCount = 96

  /// What counts towards the limit: records and values, both indexes and the queue of expiries. Not the free space between them, and not what
  /// only snapshots see.
  var limitedBytes: Int {
    arena.unitsInUse * 8 + externals.memoryBytes + hashIndex.memoryBytes + order.pool.nodesInUse * OrderNode.byteCount
      + expiryQueue.usedBytes - heldBytes
  }

  /// Makes sure that so many entries, with so many bytes of keys and values in all, have room if nothing else has.
  func checkLimit(records: Int, bytes: Int) throws(StorageError) {
    guard let limitBytes else { return }
    let large = min(records, bytes / ExternalValues.minimumByteCount) * ExternalValues.headerByteCount
    guard Self.fixedBytes + records * Self.entryByteCount + bytes + large <= limitBytes else {
      throw .overLimit(limitBytes)
    }
  }

  /// Evicts until the limit holds again, but nothing that was written with that revision.
  /// - Parameter record: what an entry became that was there before.
  @inline(never)
  mutating func keepLimit(after revision: UInt64, overwriting record: Record?, now: UInt64) {
    guard let limitBytes else { return }
    record?.setUsed(true)
    while limitedBytes > limitBytes {
      if isExpiryDue(now: now) {
        expire(now: now, limit: 16)
      } else if !evictNext(sparing: revision) {
        return
      }
    }
  }

  /// - Returns: whether there was an entry to evict, and memory to do it under a snapshot.
  private mutating func evictNext(sparing revision: UInt64) -> Bool {
    // The rest of one round, another in which all may be spared, and one in which they aren't.
    var (spared, rounds) = (0, 0)
    while rounds < 3 {
      guard let handle = arena.nextBlock() else {
        rounds += 1
        continue
      }
      let record = record(handle)
      if record.revision == revision { continue }
      if record.isUsed, spared < Self.mostSpared {
        record.setUsed(false)
        spared += 1
        continue
      }
      let hash = hashIndex.hash(record.key)
      // Another one has its key, or none has, if only a snapshot sees it.
      if find(record.key, hash: hash) != handle { continue }
      return evict(handle, hash: hash, revision: revision)
    }
    return false
  }

  private mutating func evict(_ handle: UInt32, hash: UInt32, revision: UInt64) -> Bool {
    do throws(StorageError) {
      if !snapshots.isEmpty { try order.reserve() }
      let record = record(handle)
      let isExpiring = record.hasExpiry
      noteDelete(record.key, revision: revision)
      try remove(handle, hash: hash)
      if isExpiring { tidyExpiryQueue() }
      evictedCount &+= 1
      return true
    } catch {
      return false
    }
  }
}
