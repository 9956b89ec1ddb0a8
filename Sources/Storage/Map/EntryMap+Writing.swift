extension EntryMap {
  /// Makes sure that so many puts, of so many bytes of keys and values in all, find room for their records and their
  /// places in the order.
  ///
  /// - Throws: `storeDropped`, `storeFull`, `outOfMemory` or `overLimit`, with nothing changed.
  package mutating func reserve(records: Int, bytes: Int) throws(StorageError) {
    guard !isDropped else { throw .storeDropped }
    try checkCommit(operations: records, bytes: bytes)
    try checkLimit(records: records, bytes: bytes)
    // A record's header and rounding, and an expiry for each.
    let units = (bytes + records * (12 + 8 + 7)) / 8 + 1
    try arena.reserve(units: min(units, records * Int(Record.maximumUnits)), largest: Record.maximumUnits)
    try order.reserve(insertions: records)
  }

  /// Writes the entry, whatever was there before.
  ///
  /// Overwriting with a value that takes as much room needs no memory and doesn't touch the order, unless a snapshot
  /// sees the old entry. Keys have 1 to 4,096 bytes; values less than 2 GiB.
  ///
  /// - Parameters:
  ///   - expiry: When it expires, in milliseconds of the clock of `now`; 0 for never.
  ///   - revision: The revision of this commit, the next one: all entries of a write of many keys share it.
  ///   - now: Tells a map with a limit what has expired, and is in the way before anything else.
  /// - Throws: `storeDropped`, `storeFull`, `outOfMemory` or `overLimit`, with nothing changed. After `reserve` only the system's
  ///   refusal of a buffer for a value of 32 KiB or more, or for the growth of the hash index, is left.
  package mutating func put(
    _ key: RawSpan, _ value: RawSpan, kind: EntryKind = .single, expiry: UInt64 = 0, revision: UInt64,
    now: UInt64 = 0
  ) throws(StorageError) {
    let key = Key(key)
    precondition(Key.lengths.contains(key.count) && value.byteCount <= Int32.max, "a key or value beyond the limits")
    precondition(revision > 0, "revisions begin at 1")
    try checkCommit(operations: 1, bytes: key.count + value.byteCount)
    let hash = hashIndex.hash(key)
    let old = find(key, hash: hash)
    let units = Record.units(keyLength: key.count, valueLength: value.byteCount, hasExpiry: expiry != 0)
    // The bytes stay where they are until this returns.
    let value = unsafe value.withUnsafeBytes { bytes in unsafe bytes }
    if old != 0, value.count < ExternalValues.minimumByteCount {
      let record = record(old)
      if record.revision > sharedRevision, !record.isExternal, record.hasExpiry == (expiry != 0), record.units == units
      {
        valueBytes += value.count - record.valueByteCount
        let oldExpiry = record.expiry
        unsafe record.overwrite(value: value, external: nil, kind: kind, revision: revision, expiry: expiry)
        noteExpiry(expiry, hash: hash, replacing: oldExpiry)
        self.revision = max(self.revision, revision)
        changeCount &+= 1
        unsafe notePut(key, value, kind: kind, expiry: expiry, revision: revision)
        if limitBytes != nil { keepLimit(after: revision, overwriting: record, now: now) }
        return
      }
    }
    if limitBytes != nil { try checkLimit(records: 1, bytes: key.count + value.count) }
    let handle = unsafe try putRecord(
      key, value, units: units, hash: hash, old: old, kind: kind, expiry: expiry, revision: revision)
    unsafe notePut(key, value, kind: kind, expiry: expiry, revision: revision)
    if limitBytes != nil { keepLimit(after: revision, overwriting: old == 0 ? nil : record(handle), now: now) }
  }

  /// Makes a new record and puts it in the place of the old one, if there is one.
  /// - Returns: its handle.
  private mutating func putRecord(
    _ key: Key, _ value: UnsafeRawBufferPointer, units: UInt32, hash: UInt32, old: UInt32,
    kind: EntryKind, expiry: UInt64, revision: UInt64
  ) throws(StorageError) -> UInt32 {
    guard !isDropped else { throw .storeDropped }
    try order.reserve()
    let isExternal = value.count >= ExternalValues.minimumByteCount
    let external = isExternal ? unsafe try externals.make(copying: value) : nil
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
      order.insert(handle, key: key, in: arena)
      keyBytes += key.count
      valueBytes += value.count
      lastInsertion = revision
      noteExpiry(expiry, hash: hash, replacing: 0)
    } else {
      let record = record(old)
      hashIndex.replace(old, with: handle, hash: hash)
      order.replace(old, with: handle, key: key, in: arena)
      valueBytes += value.count - record.valueByteCount
      noteExpiry(expiry, hash: hash, replacing: record.expiry)
      retire(old)
    }
    settleNodes()
    self.revision = max(self.revision, revision)
    changeCount &+= 1
    return handle
  }

  /// Removes the entry. False, with nothing changed, when there is none or it has expired.
  ///
  /// - Parameter revision: The revision of this commit: the next one, which all deletes of one commit share.
  package mutating func delete(_ key: RawSpan, revision: UInt64, now: UInt64) throws(StorageError) -> Bool {
    let key = Key(key)
    let hash = hashIndex.hash(key)
    let handle = find(key, hash: hash)
    guard handle != 0, !record(handle).isExpired(at: now) else { return false }
    try checkCommit(operations: 1, bytes: key.count)
    try remove(handle, hash: hash)
    self.revision = max(self.revision, revision)
    noteDelete(key, revision: revision)
    return true
  }

  /// Takes a live record out of both indexes and retires it.
  mutating func remove(_ handle: UInt32, hash: UInt32) throws(StorageError) {
    if !snapshots.isEmpty { try order.reserve() }
    let record = record(handle)
    hashIndex.remove(handle, hash: hash, in: arena)
    order.remove(handle, key: record.key, in: arena)
    keyBytes -= record.key.count
    valueBytes -= record.valueByteCount
    if record.hasExpiry { expiringCount -= 1 }
    retire(handle)
    settleNodes()
    changeCount &+= 1
  }

  /// Removes every entry, and takes one revision for it if there was any. With no snapshot alive the memory goes back
  /// at once, chunk by chunk; otherwise what the newest snapshot sees waits for its end, which is O(n).
  ///
  /// - Returns: How many there were. What has expired is removed first, and neither counts nor takes a revision.
  /// - Throws: `readOnly`, `diskFull` or `diskTooSlow`, with nothing changed.
  package mutating func deleteAll(now: UInt64) throws(StorageError) -> Int {
    expire(now: now)
    let removed = order.count
    guard removed > 0 else { return 0 }
    try checkCommit(operations: 1, bytes: 0)
    if snapshots.isEmpty {
      // The epoch needn't go on: no snapshot is left that could be confused.
      discardContents()
    } else {
      abandonContents()
    }
    revision += 1
    noteDeleteAll(revision: revision)
    return removed
  }

  /// Retires every record and node of the live tree, and begins another.
  private mutating func abandonContents() {
    var (records, nodes): ([UInt32], [UInt32]) = ([], [])
    order.visitNodes(root: order.root) { handle, node in
      nodes.append(handle)
      guard node.isLeaf else { return }
      for index in 0..<node.count { unsafe records.append(node.records[index]) }
    }
    order.root = 0
    order.count = 0
    for node in nodes { order.discard(node) }
    for record in records { retire(record) }
    settleNodes()
    hashIndex = HashIndex()
    expiryQueue = ExpiryQueue()
    (keyBytes, valueBytes, expiringCount) = (0, 0, 0)
    changeCount += 1
  }
}
