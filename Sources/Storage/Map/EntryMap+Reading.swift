extension EntryMap {
  /// The entry of that key; nil when there is none or it has expired. Expected O(1). Changes nothing but the mark of an entry that was
  /// used, in a map with a limit; see also `aheadOfIndex`.
  package mutating func get(_ key: RawSpan, now: UInt64) -> EntryView? {
    let key = Key(key)
    let handle = find(key, hash: hashIndex.hash(key))
    guard handle != 0 else { return nil }
    let record = record(handle)
    if record.isExpired(at: now) { return nil }
    if limitBytes != nil { record.setUsed(true) }
    return record.view
  }

  /// Whether a write of that key under that condition would go through.
  package mutating func meets(_ condition: WriteCondition, _ key: RawSpan, now: UInt64) -> Bool {
    let entry = get(key, now: now)
    if condition.ifAbsent, entry != nil { return false }
    if let revision = condition.ifRevision { return entry?.revision == revision }
    return true
  }

  /// How many entries there are. Removes what has expired first, as do all functions that count.
  package mutating func count(now: UInt64) -> Int {
    expire(now: now)
    return order.count
  }

  /// How many entries have keys that begin with the prefix. O(log n).
  package mutating func count(prefix: RawSpan, now: UInt64) -> Int {
    ranks(prefix: prefix, after: nil, reverse: false, now: now).count
  }

  /// The ranks of the entries whose keys begin with the prefix (all when it is empty) and come after the key `after`,
  /// or before it when the reading goes backwards. The key itself need not exist. O(log n).
  ///
  /// They are ranks of the live map, good until its next change, and of a snapshot taken in between.
  package mutating func ranks(prefix: RawSpan, after: RawSpan?, reverse: Bool, now: UInt64) -> Range<Int> {
    expire(now: now)
    return ranks(prefix: prefix, after: after, reverse: reverse, root: order.root, count: order.count)
  }

  private func ranks(prefix: RawSpan, after: RawSpan?, reverse: Bool, root: UInt32, count: Int) -> Range<Int> {
    var (lower, upper) = (0, count)
    if !prefix.isEmpty {
      lower = order.rank(Key(prefix), .lower, root: root, in: arena)
      upper = order.rank(Key(prefix), .prefixEnd, root: root, in: arena)
    }
    if let after {
      if reverse {
        upper = min(upper, order.rank(Key(after), .lower, root: root, in: arena))
      } else {
        lower = max(lower, order.rank(Key(after), .upper, root: root, in: arena))
      }
    }
    return lower..<max(lower, upper)
  }

  /// Calls `body` with the entries of those ranks, from the first on or, in reverse, from the last back, until it
  /// returns false. Entries that have expired are passed over, though their ranks count. O(log n) and the entries read.
  ///
  /// - Parameter snapshot: The view to read; nil for the live map.
  /// - Returns: How many ranks were consumed: the caller goes on behind them.
  /// - Throws: `snapshotEnded`, or `storeDropped`.
  package func scan(
    ranks: Range<Int>, reverse: Bool, in snapshot: Snapshot? = nil, now: UInt64, _ body: (EntryView) -> Bool
  ) throws(StorageError) -> Int {
    var (root, count) = (order.root, order.count)
    if let snapshot {
      let view = try view(of: snapshot)
      (root, count) = (view.root, view.count)
    }
    precondition(ranks.lowerBound >= 0 && ranks.upperBound <= count, "ranks beyond the end of the view")
    return order.visit(ranks, reverse: reverse, root: root, in: arena) { handle in
      let record = record(handle)
      return record.isExpired(at: now) || body(record.view)
    }
  }

  /// A name for the entry of that key, by which a snapshot taken before the next change can find it again.
  package func handle(of key: RawSpan, now: UInt64) -> UInt32? {
    let key = Key(key)
    let handle = find(key, hash: hashIndex.hash(key))
    if handle == 0 || record(handle).isExpired(at: now) { return nil }
    if limitBytes != nil { record(handle).setUsed(true) }
    return handle
  }

  /// The entry that had that handle when a snapshot was taken that still lives, whatever happened since.
  ///
  /// - Precondition: that the snapshot lives was checked under this hold of the lock.
  package func entry(at handle: UInt32) -> EntryView {
    let record = record(handle)
    precondition(record.isInUse, "a handle of no record")
    return record.view
  }
}
