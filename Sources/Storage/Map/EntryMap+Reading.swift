import Platform

extension EntryMap {
  /// Returns the entry with this key; nil if there is none or it has expired. Expected O(1).
  ///
  /// In a map with a memory limit it sets the record's reference bit; otherwise it changes nothing. To look up many
  /// keys at once, see `PrefetchedKey`.
  package mutating func get(_ key: RawSpan, now: UInt64) -> EntryView? {
    let key = Key(key)
    let handle = find(key, hash: hashIndex.hash(key))
    guard handle != 0 else { return isDiverted ? attentiveGet(key, handle, now: now) : nil }
    let record = record(handle)
    if !attention.isEmpty { return attentiveGet(key, handle, now: now) }
    return record.isExpired(at: now) ? nil : record.view
  }

  @inline(never)
  private func attentiveGet(_ key: Key, _ handle: UInt32, now: UInt64) -> EntryView? {
    let handle = isDiverted ? divertedFind(key) : handle
    guard handle != 0, !record(handle).isExpired(at: now) else { return nil }
    if limitBytes != nil { record(handle).setReferenced(true) }
    return record(handle).view
  }

  /// Returns whether a write of this key would pass the condition.
  package mutating func satisfies(_ condition: EntryCondition, _ key: RawSpan, now: UInt64) -> Bool {
    let entry = get(key, now: now)
    if condition.ifAbsent, entry != nil { return false }
    if let revision = condition.ifRevision { return entry?.revision == revision }
    return true
  }

  /// Returns the number of entries. Removes expired entries first, as all functions that count do, however many there
  /// are; see `expireBriefly`.
  package mutating func count(now: UInt64) -> Int {
    expire(now: now)
    return visibleTree.count
  }

  /// Returns the number of entries whose keys begin with the prefix. O(log n).
  package mutating func count(prefix: RawSpan, now: UInt64) -> Int {
    ranks(prefix: prefix, after: nil, reverse: false, now: now).count
  }

  /// Returns the ranks of the entries whose keys begin with the prefix and come after the key `after`, or before it
  /// when reading in reverse. An empty prefix matches all keys; the key `after` need not exist. O(log n).
  ///
  /// The ranks are those of the live map until its next change, and of any snapshot taken before that.
  package mutating func ranks(prefix: RawSpan, after: RawSpan?, reverse: Bool, now: UInt64) -> Range<Int> {
    expire(now: now)
    let (root, count) = visibleTree
    return ranks(prefix: prefix, after: after, reverse: reverse, root: root, count: count)
  }

  private func ranks(prefix: RawSpan, after: RawSpan?, reverse: Bool, root: UInt32, count: Int) -> Range<Int> {
    var (lower, upper) = (0, count)
    if !prefix.isEmpty {
      lower = order.rank(Key(prefix), .lower, root: root, in: arena.records)
      upper = order.rank(Key(prefix), .prefixEnd, root: root, in: arena.records)
    }
    if let after {
      if reverse {
        upper = min(upper, order.rank(Key(after), .lower, root: root, in: arena.records))
      } else {
        lower = max(lower, order.rank(Key(after), .upper, root: root, in: arena.records))
      }
    }
    return lower..<max(lower, upper)
  }

  /// Calls `body` with the entries of these ranks in order, or in reverse order, until it returns false. Skips expired
  /// entries, though their ranks count. O(log n) plus the entries read.
  ///
  /// - Parameter snapshot: The snapshot to read; nil for the live map.
  /// - Returns: The number of ranks consumed. The next call continues after them.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func scan(
    ranks: Range<Int>, reverse: Bool, in snapshot: Snapshot? = nil, now: UInt64, _ body: (EntryView) -> Bool
  ) throws(StorageError) -> Int {
    try scanHandles(ranks: ranks, reverse: reverse, in: snapshot, now: now) { _, entry in body(entry) }
  }

  /// Calls `body` with handles and entries as `scan` does with entries. If the snapshot is alive, `entry(at:)` returns
  /// the entry of a handle.
  /// - Returns: The number of ranks consumed.
  /// - Throws: `snapshotEnded` or `storeDropped`.
  @inline(__always)
  package func scanHandles(
    ranks: Range<Int>, reverse: Bool, in snapshot: Snapshot?, now: UInt64, _ body: (UInt32, EntryView) -> Bool
  ) throws(StorageError) -> Int {
    let (root, count) = if let snapshot { try tree(of: snapshot) } else { visibleTree }
    precondition(ranks.lowerBound >= 0 && ranks.upperBound <= count, "ranks beyond the end of the view")
    return order.visit(ranks, reverse: reverse, root: root, in: arena.records) { handle in
      let record = record(handle)
      return record.isExpired(at: now) || body(handle, record.view)
    }
  }

  /// Returns the rank of the first entry in a snapshot whose key comes after this one, which need not exist. O(log n).
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func rank(after key: RawSpan, in snapshot: Snapshot) throws(StorageError) -> Int {
    order.rank(Key(key), .upper, root: try tree(of: snapshot).root, in: arena.records)
  }

  /// Returns a handle for the entry with this key. A snapshot taken before the next change can find the entry by it.
  package func handle(of key: RawSpan, now: UInt64) -> UInt32? {
    let key = Key(key)
    let handle = isDiverted ? divertedFind(key) : find(key, hash: hashIndex.hash(key))
    if handle == 0 || record(handle).isExpired(at: now) { return nil }
    if limitBytes != nil { record(handle).setReferenced(true) }
    return handle
  }

  /// Returns a handle for the entry with this key in a snapshot, expired or not; 0 if there is none. O(log n).
  /// - Throws: `snapshotEnded` or `storeDropped`.
  package func handle(of key: RawSpan, in snapshot: Snapshot) throws(StorageError) -> UInt32 {
    let key = Key(key)
    let handle = order.last(notAfter: key, root: try tree(of: snapshot).root, in: arena.records)
    return handle != 0 && record(handle).key.equals(key) ? handle : 0
  }

  /// Returns the entry that had this handle when a snapshot was taken that is still alive.
  ///
  /// - Precondition: The caller has checked the snapshot since it acquired the lock.
  package func entry(at handle: UInt32) -> EntryView {
    let record = record(handle)
    precondition(record.isAllocated, "the handle refers to no record")
    return record.view
  }
}

// MARK: Prefetching

/// A look-up in a large map is little work and two long waits for memory, one after the other: for the index, then for
/// the record. A batch overlaps the waits of all its keys: it prefetches every chunk of the index, then every record,
/// and only then executes the requests.
///
///     for each key: prefetched[i] = map.prefetchIndex(key)
///     for each key: map.prefetchRecord(prefetched[i])
///     for each key: map.get(key, now: now) …
///
/// Prefetching changes nothing but speed. The functions are `mutating`, as look-ups are, because the compiler copies a
/// large struct that another module's function borrows, and doesn't copy one that it may change.
extension EntryMap {
  /// A key whose part of the index is prefetched.
  package struct PrefetchedKey: BitwiseCopyable, Sendable {
    let hash: UInt32

    /// No key.
    package init() { self.init(hash: 0) }

    init(hash: UInt32) { self.hash = hash }
  }

  /// Prefetches the part of the index where the key belongs.
  package mutating func prefetchIndex(_ key: RawSpan) -> PrefetchedKey { prefetchIndex(Key(key)) }

  @inline(__always)
  func prefetchIndex(_ key: Key) -> PrefetchedKey {
    let hash = hashIndex.hash(key)
    hashIndex.firstChunk(of: hash)?.prefetch()
    return PrefetchedKey(hash: hash)
  }

  /// Prefetches the record that the key most likely has.
  package mutating func prefetchRecord(_ key: PrefetchedKey) {
    guard let chunk = hashIndex.firstChunk(of: key.hash) else { return }
    var slots = chunk.slots(tagged: HashIndex.tag(of: key.hash))
    if let slot = slots.next() { record(chunk.handle(slot)).prefetch() }
  }
}
