extension EntryMap {
  /// Reserves memory for `records` puts with `bytes` bytes of keys and values in all: for their records and their
  /// places in the order.
  ///
  /// - Throws: `storeDropped`, `revisionsUsedUp`, `storeFull`, `memoryLimit`, `outOfMemory` or `overLimit`, with nothing
  ///   changed.
  package mutating func reserve(records: Int, bytes: Int) throws(StorageError) {
    guard !isDropped else { throw removalError }
    try checkCommit(operations: records, bytes: bytes)
    try checkLimit(records: records, bytes: bytes)
    try reserveEvicting(records: records, bytes: bytes)
    try order.reserve(insertions: records)
  }

  /// Checks whether puts that are made later would be refused now.
  ///
  /// - Parameters:
  ///   - records: The number of puts.
  ///   - bytes: The size of their keys and values.
  ///   - last: The size of the last one.
  /// - Throws: As `reserve`, and the errors of `checkCommit`.
  package mutating func checkRoom(records: Int, bytes: Int, last: Int) throws(StorageError) {
    guard !isDropped else { throw .storeDropped }
    try checkCommit(operations: records, bytes: bytes)
    try checkLimit(records: records, bytes: bytes)
    // Others are evicted.
    if limitBytes != nil { return }
    if last < ExternalValues.minimumByteCount { return try reserveMemory(records: 1, bytes: last) }
    if let memoryBudget, !memoryBudget.hasRoom(for: last) { throw .memoryLimit }
  }

  /// Reserves memory for records and values. At the process's memory limit, evicts entries of a map with a limit.
  private mutating func reserveEvicting(records: Int, bytes: Int) throws(StorageError) {
    var evictions = 0
    while true {
      do throws(StorageError) { return try reserveMemory(records: records, bytes: bytes) } catch {
        guard error == .memoryLimit, evictions < Self.maxEvictionsForWrite,
          makeRoom(for: bytes, before: revisions.last + 1)
        else { throw error }
        evictions += 1
      }
    }
  }

  /// Reserves memory for records and values, without evicting anything.
  mutating func reserveMemory(records: Int, bytes: Int) throws(StorageError) {
    // Each record has a header, an expiry and rounding.
    let units = (bytes + records * (12 + 8 + 7)) / 8 + 1
    try arena.reserve(units: min(units, records * Int(Record.maxUnits)), largest: Record.maxUnits)
    // Large values are not in records.
    if bytes >= ExternalValues.minimumByteCount { try externals.reserve(bytes) }
  }

  /// Writes the entry, whatever was there before.
  ///
  /// Overwriting a value with one of about the same size needs no memory and doesn't touch the order, unless a snapshot
  /// sees the old entry. Keys have 1 to 4,096 bytes, and values less than 2 GiB.
  ///
  /// - Parameters:
  ///   - expiry: The time when the entry expires, in milliseconds of the clock of `now`; 0 for never.
  ///   - revision: The revision of this commit, which is the store's next. All entries of a write of many keys share
  ///     it.
  ///   - now: The current time. A map with a memory limit removes expired entries before it evicts others.
  ///   - memory: The memory that a value of 32 KiB or more is in, which the map then shares instead of copying it; nil
  ///     if the value has to be copied.
  ///   - isSameValue: Whether the value is the entry's already, so that only the expiry changes.
  ///   - evictions: How many times entries have been evicted for this write because the process is at its memory limit.
  /// - Throws: `storeDropped`, `revisionsUsedUp`, `storeFull`, `memoryLimit`, `outOfMemory` or `overLimit`, with nothing
  ///   changed. After `reserve` it throws only if there is no memory for a value of 32 KiB or more, or for the growth of
  ///   the hash index.
  package mutating func put(
    _ rawKey: RawSpan, _ rawValue: RawSpan, kind: EntryKind = .single, expiry: UInt64 = 0, revision: UInt64,
    now: UInt64 = 0, in memory: ValueMemory? = nil, isSameValue: Bool = false, evictions: Int = 0
  ) throws(StorageError) {
    let key = Key(rawKey)
    precondition(Key.lengths.contains(key.count) && rawValue.byteCount <= Int32.max, "a key or value beyond the limits")
    precondition(revision > 0, "revisions begin at 1")
    try checkOperation(bytes: key.count + rawValue.byteCount, revision: revision, isRemoval: false)
    let hash = hashIndex.hash(key)
    let old = find(key, hash: hash)
    let units = Record.units(keyLength: key.count, valueLength: rawValue.byteCount, hasExpiry: expiry != 0)
    let effect = effect(ofPutOver: old, expiry: expiry, isSameValue: isSameValue)
    // The bytes stay in place until this returns.
    let value = unsafe rawValue.withUnsafeBytes { bytes in unsafe bytes }
    if old != 0, value.count < ExternalValues.minimumByteCount {
      let record = record(old)
      if record.revision > snapshots.newestRevision, !record.isExternal, record.hasExpiry == (expiry != 0),
        record.units == units
      {
        counts.replaceValue(of: record, byteCount: value.count)
        let oldExpiry = record.expiry
        beginIndexChange(of: old)
        unsafe record.overwrite(value: value, external: nil, kind: kind, revision: revision, expiry: expiry)
        endIndexChange(to: old)
        updateExpiry(expiry, hash: hash, replacing: oldExpiry)
        revisions.advance(to: revision)
        revisions.didChange()
        counts.didWrite()
        unsafe recordPut(key, value, kind: kind, expiry: expiry, revision: revision, effect)
        if limitBytes != nil { enforceLimit(after: revision, overwriting: record, now: now) }
        return
      }
    }
    if limitBytes != nil { try checkLimit(records: 1, bytes: key.count + value.count) }
    let handle: UInt32
    do throws(StorageError) {
      handle = unsafe try putRecord(
        key, value, in: memory, units: units, hash: hash, old: old, kind: kind, expiry: expiry, revision: revision)
    } catch {
      // Nothing has changed. The old record may be among those that are evicted.
      guard error == .memoryLimit, evictions < Self.maxEvictionsForWrite,
        makeRoom(for: key.count + value.count, before: revision)
      else { throw error }
      return try put(
        rawKey, rawValue, kind: kind, expiry: expiry, revision: revision, now: now, in: memory,
        isSameValue: isSameValue, evictions: evictions + 1)
    }
    counts.didWrite()
    unsafe recordPut(key, value, kind: kind, expiry: expiry, revision: revision, effect)
    if limitBytes != nil { enforceLimit(after: revision, overwriting: old == 0 ? nil : record(handle), now: now) }
  }

  /// Returns what a put changes of the entry whose record is `old`, for those who watch the store.
  @inline(__always)
  private func effect(ofPutOver old: UInt32, expiry: UInt64, isSameValue: Bool) -> ChangeView.Effect {
    guard changes.isRecording, old != 0 else { return .all }
    if isSameValue { return .expiry }
    return record(old).expiry == expiry ? .value : .all
  }

  /// Creates a record that replaces the old one, if there is one.
  /// - Returns: The record's handle.
  private mutating func putRecord(
    _ key: Key, _ value: UnsafeRawBufferPointer, in memory: ValueMemory?, units: UInt32, hash: UInt32, old: UInt32,
    kind: EntryKind, expiry: UInt64, revision: UInt64
  ) throws(StorageError) -> UInt32 {
    guard !isDropped else { throw removalError }
    try order.reserve()
    let isExternal = value.count >= ExternalValues.minimumByteCount
    let external = isExternal ? unsafe try externals.make(value, in: memory) : nil
    let handle: UInt32
    do {
      handle = try arena.allocate(units: units)
    } catch {
      if let external = unsafe external { unsafe externals.free(external) }
      throw error
    }
    unsafe record(handle).initialize(
      key: key, value: value, external: external, kind: kind, revision: revision, expiry: expiry)
    if old == 0 {
      do {
        try hashIndex.insert(handle, hash: hash, in: arena)
      } catch {
        free(handle)
        throw error
      }
      order.insert(handle, key: key, in: arena.records)
      counts.add(record(handle))
      revisions.didInsert(in: revision)
      updateExpiry(expiry, hash: hash, replacing: 0)
      endIndexChange(to: handle)
    } else {
      let record = record(old)
      beginIndexChange(of: old)
      hashIndex.replace(old, with: handle, hash: hash)
      order.replace(old, with: handle, key: key, in: arena.records)
      counts.replaceValue(of: record, byteCount: value.count)
      updateExpiry(expiry, hash: hash, replacing: record.expiry)
      endIndexChange(to: handle)
      retire(old)
    }
    retireReplacedNodes()
    enforceSnapshotBudget()
    revisions.advance(to: revision)
    revisions.didChange()
    return handle
  }

  /// Removes the entry with this key.
  ///
  /// - Parameter revision: The revision of this commit, which is the store's next. All deletes of one commit share it.
  /// - Returns: False, with nothing changed, if there is no entry or it has expired.
  /// - Throws: `readOnly`, `diskFull`, `diskTooSlow` or `outOfMemory`, with nothing changed.
  package mutating func delete(_ key: RawSpan, revision: UInt64, now: UInt64) throws(StorageError) -> Bool {
    let key = Key(key)
    let hash = hashIndex.hash(key)
    let handle = find(key, hash: hash)
    guard handle != 0, !record(handle).isExpired(at: now) else {
      if isDiverted { throw .commitPending }
      return false
    }
    try checkOperation(bytes: key.count, revision: revision, isRemoval: true)
    try remove(handle, hash: hash)
    revisions.advance(to: revision)
    counts.didWrite()
    recordDelete(key, revision: revision)
    return true
  }

  /// Removes a live record from both indexes and retires it.
  mutating func remove(_ handle: UInt32, hash: UInt32) throws(StorageError) {
    if !snapshots.isEmpty { try order.reserve() }
    let record = record(handle)
    beginIndexChange(of: handle)
    hashIndex.remove(handle, hash: hash, in: arena)
    order.remove(handle, key: record.key, in: arena.records)
    counts.remove(record)
    if record.hasExpiry {
      expiryQueue.noteRemoval()
      compactExpiryQueue()
    }
    endIndexChange(to: nil)
    retire(handle)
    retireReplacedNodes()
    enforceSnapshotBudget()
    revisions.didChange()
  }

  /// Removes every entry, which takes one revision if there are any. If no snapshot is alive, the memory is freed at
  /// once, chunk by chunk. Otherwise everything that the newest snapshot sees is freed when that ends, in O(n).
  ///
  /// - Returns: The number of entries removed. Expired entries are removed first; they neither count nor take a
  ///   revision.
  /// - Throws: `readOnly`, `diskFull` or `diskTooSlow`, with nothing changed.
  package mutating func deleteAll(now: UInt64) throws(StorageError) -> Int {
    if isDiverted { throw .commitPending }
    expire(now: now)
    let removed = order.count
    guard removed > 0 else { return 0 }
    try checkCommit(operations: 1, bytes: 0, isRemoval: true)
    if snapshots.isEmpty {
      // The epoch may start over, because no snapshot is left that it could confuse.
      discardContents()
    } else {
      abandonContents()
    }
    revisions.advance(to: revisions.last + 1)
    counts.didWrite(removed)
    recordDeleteAll(revision: revisions.last)
    return removed
  }

  /// Leaves every record and node of the live tree to the snapshots, and starts an empty one. Those that no snapshot sees
  /// are freed in slices.
  private mutating func abandonContents() {
    let recordBytes = arena.unitsInUse * 8 + externals.memoryBytes - snapshots.retainedRecordBytes
    let nodeCount = order.nodesInUse - snapshots.retainedNodeCount
    snapshots.retain(tree: order.abandon(), recordBytes: recordBytes, nodeCount: nodeCount)
    let contents = DiscardedContents(memoryBudget, hashIndex: hashIndex.makeEmpty())
    swap(&hashIndex, &contents.hashIndex)
    contents.free(memoryBudget)
    expiryQueue = ExpiryQueue()
    indexes?.removeAll()
    counts.removeContents()
    revisions.didChange()
    enforceSnapshotBudget()
  }
}

// MARK: - Values in files

extension EntryMap {
  /// Replaces an entry's external value with its place in a file, and frees the bytes in memory or forgets the value's
  /// previous place. Does nothing if the entry has changed since.
  ///
  /// The entry itself stays the same, and a reader that sees it in a snapshot reads the same value. If there are two
  /// values with one key and revision, the later one counts: it comes first here, and for the other one the entry's
  /// value is in the same file already.
  package mutating func updateLocation(_ placed: ValueLocation) {
    unsafe placed.key.withUnsafeBytes { bytes in
      let key = unsafe Key(start: bytes.baseAddress!, count: bytes.count)
      let handle = find(key, hash: hashIndex.hash(key))
      guard handle != 0 else { return }
      let record = record(handle)
      guard record.revision == placed.revision, record.isExternal else { return }
      let old = unsafe record.external
      guard unsafe ExternalValues.stored(old)?.file !== placed.value.file else { return }
      // Without memory for the new header, everything stays as it is.
      guard let new = unsafe try? externals.make(placed.value) else { return }
      unsafe record.setExternal(new)
      unsafe externals.free(old)
    }
  }
}
