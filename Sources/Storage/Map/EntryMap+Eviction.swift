import Platform

/// Eviction in a map with a memory limit: when its entries exceed the limit, others make room for those just written.
///
/// This is the CLOCK algorithm, an approximation of least recently used. A hand goes around the records in the order of
/// their memory. A record whose reference bit is set, because it was read by its key or overwritten since the hand last
/// passed, gets a second chance: the hand clears the bit and moves on. It evicts the next record whose bit is clear. So
/// entries in regular use stay, a scan of keys that are read once leaves as it came, and the freed memory is
/// contiguous.
extension EntryMap {
  /// The maximum number of second chances in a row, which bounds the work of a write if all entries are in use.
  private static let maxSecondChances = 1_024

  /// The maximum memory of a map beyond its entries: a chunk for every segment of the hash index, and their table.
  static let fixedBytes = 64 << 10
  /// The maximum memory of an entry beyond key and value, without what a large value takes beside its bytes: its record's
  /// header, its places in both indexes, which are sparse at worst, and its item in the expiry queue.
  private static let entryByteCount = 96

  /// The bytes that count toward the limit: records and values, hash and order, the indexes of documents and the expiry
  /// queue. Free space between records doesn't count, nor does anything that only snapshots see.
  var limitedBytes: Int {
    arena.unitsInUse * 8 + externals.memoryBytes + hashIndex.memoryBytes + order.nodesInUse * OrderNode.byteCount
      + expiryQueue.usedBytes + (indexes?.limitedBytes ?? 0) - snapshots.retainedBytes
  }

  /// Checks that `records` entries with `bytes` bytes of keys and values would fit into the empty map. Mutating, because
  /// a call that only borrows the map copies it.
  /// - Throws: `overLimit`.
  mutating func checkLimit(records: Int, bytes: Int) throws(StorageError) {
    guard let limitBytes else { return }
    let large = min(records, bytes / ExternalValues.minimumByteCount) * ExternalValues.maxOverheadByteCount
    guard Self.fixedBytes + records * Self.entryByteCount + bytes + large <= limitBytes else {
      throw .overLimit(limitBytes)
    }
  }

  /// Evicts entries until the limit holds again, but none written with this revision.
  /// - Parameter record: The new record of an entry that existed before; nil for a new entry.
  @inline(never)
  mutating func enforceLimit(after revision: UInt64, overwriting record: Record?, now: UInt64) {
    guard var limitBytes else { return }
    // The end of the deferred change does it.
    if indexes?.hasDeferredChange == true { return }
    if let reduced = room.limit(now: now) { limitBytes = min(limitBytes, reduced) }
    record?.setReferenced(true)
    while limitedBytes > limitBytes {
      if isExpiryDue(now: now) {
        expire(now: now, limit: 16)
      } else if !evictNext(sparing: revision) {
        return
      }
    }
  }

  /// The time that `evictBriefly` takes at most, in nanoseconds, but for its last few entries.
  private static let briefNanoseconds: UInt64 = 200_000
  /// The number of entries that it evicts before it looks at the clock again.
  private static let briefCount = 16

  /// Evicts entries, in a commit of their own, for a put of a large value, for a fraction of a millisecond. What has been
  /// evicted is kept for the put, which is expected soon.
  /// - Returns: Whether more must be evicted before the put. It is right to put at any time, but may take long.
  package mutating func evictBriefly(for value: Int, at rawKey: RawSpan, now: UInt64) -> Bool {
    guard let limitBytes, !isDiverted else { return false }
    let key = Key(rawKey)
    // The put will be refused.
    guard (try? checkLimit(records: 1, bytes: key.count + value)) != nil else { return false }
    let old = find(key, hash: hashIndex.hash(key))
    let replaced = old == 0 ? 0 : record(old).memoryBytes
    let needed = Self.entryByteCount + key.count + value + ExternalValues.maxOverheadByteCount - replaced
    let target = limitBytes - needed
    let deadline = monotonicNanoseconds() + Self.briefNanoseconds
    var (evictsMore, hasEvicted) = (true, false)
    repeat {
      var count = 0
      while evictsMore, count < Self.briefCount, limitedBytes > target {
        if isExpiryDue(now: now) {
          expire(now: now, limit: Self.briefCount)
        } else {
          evictsMore = evictNext(sparing: revisions.last + 1)
          hasEvicted = hasEvicted || evictsMore
        }
        count += 1
      }
    } while evictsMore && limitedBytes > target && monotonicNanoseconds() < deadline
    if hasEvicted { revisions.advance(to: revisions.last + 1) }
    let isIncomplete = evictsMore && limitedBytes > target
    room = isIncomplete ? LargeValueRoom(limit: limitedBytes, now: now) : LargeValueRoom()
    return isIncomplete
  }

  /// How much is evicted at a time when the process is at its memory limit. What the hand frees is contiguous, so that
  /// it is enough for many writes.
  private static let roomByteCount = 256 << 10
  private static let maxRoomByteCount = 8 << 20
  /// How many times entries are evicted for one write before it is refused: what is free may be in pieces.
  static let maxEvictionsForWrite = 16

  /// Frees memory because the process is at its memory limit: what snapshots that have ended could see, or else entries,
  /// but none written with this revision.
  /// - Parameter byteCount: The size of what is about to be written.
  /// - Returns: Whether anything was freed.
  mutating func makeRoom(for byteCount: Int, before revision: UInt64) -> Bool {
    if reclaim() { return true }
    // The snapshot of a large commit would keep what is evicted.
    guard limitBytes != nil, largeCommit == nil else { return false }
    let shortage = min(memoryBudget?.shortage ?? 0, Self.maxRoomByteCount)
    return makeRoom(max(2 * byteCount, Self.roomByteCount, shortage), before: revision)
  }

  /// Evicts entries of this size in all, but none written with this revision.
  /// - Returns: Whether any entry was evicted.
  private mutating func makeRoom(_ byteCount: Int, before revision: UInt64) -> Bool {
    let target = limitedBytes - byteCount
    var hasEvicted = false
    while limitedBytes > target, evictNext(sparing: revision) { hasEvicted = true }
    // The deletes have this revision, even if nothing is written after all.
    if hasEvicted { revisions.advance(to: revision) }
    return hasEvicted
  }

  /// Evicts some entries, in a commit of their own, because the process needs the memory. Does nothing without a limit.
  /// Takes a fraction of a millisecond.
  /// - Returns: The number of bytes that entries use less.
  package mutating func evictSome() -> Int {
    guard limitBytes != nil, !isDiverted else { return 0 }
    let previous = limitedBytes
    return makeRoom(Self.roomByteCount, before: revisions.last + 1) ? previous - limitedBytes : 0
  }

  /// Evicts some entries, in a commit of their own, if the process lacks the memory for a large commit, whose snapshot
  /// keeps what is evicted after it has begun. Takes a fraction of a millisecond.
  /// - Parameters:
  ///   - records: The number of puts.
  ///   - bytes: The size of their keys and values.
  /// - Returns: Whether more may have to be evicted.
  package mutating func evictSome(forRecords records: Int, bytes: Int) -> Bool {
    guard limitBytes != nil, !isDiverted, (try? checkLimit(records: records, bytes: bytes)) != nil else { return false }
    do throws(StorageError) {
      try reserveMemory(records: records, bytes: bytes)
      return false
    } catch {
      guard error == .memoryLimit else { return false }
      return reclaim() || evictSome() > 0
    }
  }

  /// Evicts one entry.
  /// - Returns: Whether there was an entry to evict, and enough memory to evict it under a snapshot.
  private mutating func evictNext(sparing revision: UInt64) -> Bool {
    // The rest of one round, another in which every record may get a second chance, and one in which none does.
    var (secondChances, rounds) = (0, 0)
    while rounds < 3 {
      guard let handle = arena.nextBlock() else {
        rounds += 1
        continue
      }
      let record = record(handle)
      if record.revision == revision { continue }
      if record.isReferenced, secondChances < Self.maxSecondChances {
        record.setReferenced(false)
        secondChances += 1
        continue
      }
      let hash = hashIndex.hash(record.key)
      // If only a snapshot sees the record, its key has another record or none.
      if find(record.key, hash: hash) != handle { continue }
      return evict(handle, hash: hash, revision: revision)
    }
    return false
  }

  private mutating func evict(_ handle: UInt32, hash: UInt32, revision: UInt64) -> Bool {
    do throws(StorageError) {
      if !snapshots.isEmpty { try order.reserve() }
      recordDelete(record(handle).key, revision: revision)
      try remove(handle, hash: hash)
      completeIndexChange()
      counts.didEvict()
      return true
    } catch {
      return false
    }
  }
}

/// What has been evicted for a large value that is not written yet. Other writes leave it free, so that they can't keep
/// the value waiting forever, for a while: the value may never come.
struct LargeValueRoom {
  private var limit = Int.max
  /// When others may use it, in milliseconds.
  private var end: UInt64 = 0

  private static let milliseconds: UInt64 = 100

  init() {}

  /// - Parameter limit: The size of the entries after the last slice, in bytes.
  init(limit: Int, now: UInt64) {
    self.limit = limit
    end = now + Self.milliseconds
  }

  /// Returns the limit of other writes; nil if there is none.
  func limit(now: UInt64) -> Int? { now < end ? limit : nil }
}
