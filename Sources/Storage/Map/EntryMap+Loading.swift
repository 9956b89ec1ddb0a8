/// Filling a map that is empty, faster than by puts: the order comes last and all at once.
///
/// Between `beginLoading` and `finishLoading` the records are found by their hashes only; nothing but the functions here may be called.
extension EntryMap {
  /// Makes room in the hash index for about so many entries.
  mutating func beginLoading(entries: Int) throws(StorageError) {
    precondition(order.count == 0 && snapshots.isEmpty && !isDropped, "only an empty map can be loaded")
    try hashIndex.reserve(entries: entries, in: arena)
  }

  /// Puts an entry, in the place of an older one of that key.
  mutating func load(
    _ key: Key, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64, hash: UInt32
  ) throws(StorageError) {
    let units = Record.units(keyLength: key.count, valueLength: value.count, hasExpiry: expiry != 0)
    let old = find(key, hash: hash)
    if old != 0, value.count < ExternalValues.minimumByteCount {
      let record = record(old)
      if !record.isExternal, record.hasExpiry == (expiry != 0), record.units == units {
        precondition(record.revision <= revision, "a log was read out of order")
        self.revision = revision
        valueBytes += value.count - record.valueByteCount
        let oldExpiry = record.expiry
        unsafe record.overwrite(value: value, external: nil, kind: kind, revision: revision, expiry: expiry)
        noteExpiry(expiry, hash: hash, replacing: oldExpiry)
        return
      }
    }
    let external = value.count < ExternalValues.minimumByteCount ? nil : unsafe try externals.make(copying: value)
    let handle = try arena.allocate(units: units)
    unsafe record(handle).initialize(
      key: key, value: value, external: external, kind: kind, revision: revision, expiry: expiry)
    try load(handle, over: old, hash: hash)
  }

  /// Puts an entry whose value lies in a file, in the place of an older one of that key.
  mutating func load(
    _ key: Key, _ value: StoredValue, kind: EntryKind, expiry: UInt64, revision: UInt64
  ) throws(StorageError) {
    let hash = hashIndex.hash(key)
    let external = unsafe try externals.make(value)
    let handle = try arena.allocate(
      units: Record.units(keyLength: key.count, valueLength: value.byteCount, hasExpiry: expiry != 0))
    unsafe record(handle).initialize(
      key: key, value: UnsafeRawBufferPointer(start: nil, count: 0), external: external, kind: kind,
      revision: revision, expiry: expiry)
    try load(handle, over: find(key, hash: hash), hash: hash)
  }

  /// Takes in a new record, in the place of an old one of its key unless that is 0.
  private mutating func load(_ handle: UInt32, over old: UInt32, hash: UInt32) throws(StorageError) {
    let record = record(handle)
    revision = record.revision
    valueBytes += record.valueByteCount
    guard old != 0 else {
      try hashIndex.insert(handle, hash: hash, in: arena)
      keyBytes += record.key.count
      noteExpiry(record.expiry, hash: hash, replacing: 0)
      return
    }
    let replaced = self.record(old)
    precondition(replaced.revision <= revision, "a log was read out of order")
    valueBytes -= replaced.valueByteCount
    let oldExpiry = replaced.expiry
    hashIndex.replace(old, with: handle, hash: hash)
    free(old)
    noteExpiry(record.expiry, hash: hash, replacing: oldExpiry)
  }

  /// Removes the entry of that key, if there is one.
  mutating func unload(_ key: Key, revision: UInt64, hash: UInt32) {
    self.revision = revision
    let handle = find(key, hash: hash)
    guard handle != 0 else { return }
    let record = record(handle)
    hashIndex.remove(handle, hash: hash, in: arena)
    keyBytes -= key.count
    valueBytes -= record.valueByteCount
    if record.hasExpiry { expiringCount -= 1 }
    free(handle)
  }

  /// Removes every entry. Hashes that were computed before mean nothing afterwards.
  mutating func unloadAll(revision: UInt64) {
    self.revision = revision
    discardContents()
  }

  /// Puts what was loaded in order; the map is then as puts would have made it.
  ///
  /// - Parameters:
  ///   - common: how many first bytes all keys have in common, at least.
  ///   - revision: the store's revision, if it is beyond that of the last record.
  mutating func finishLoading(commonPrefix common: Int, revision: UInt64) throws(StorageError) {
    self.revision = max(self.revision, revision)
    hashIndex.shrinkSparseSegments(in: arena)
    var keys = SortedKeys(commonPrefix: common)
    arena.visitBlocks { handle in unsafe keys.append(handle, Record(at: arena.address(handle)).key) }
    keys.sort(in: arena)
    try order.build(keys)
    changeCount &+= 1
  }
}
