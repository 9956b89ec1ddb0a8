/// Loads operations into an empty map in groups. A map of a million entries exceeds every cache, and a group waits for
/// memory only once.
///
/// The bytes of keys and values must stay in place until `flush`. Owned by the code that reads a log.
struct BulkLoader {
  @safe
  private struct Pending {
    let key: Key
    let value: UnsafeRawBufferPointer
    /// Nil for a removal.
    let kind: EntryKind?
    let expiry: UInt64
    let revision: UInt64
    var prefetched = EntryMap.PrefetchedKey()
  }

  private static let groupCount = 24

  private var pending: [Pending] = []
  /// The common prefix of all keys; nil before the first key.
  private var commonPrefix: [UInt8]?

  init() { pending.reserveCapacity(Self.groupCount) }

  @inline(__always)
  mutating func put(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64,
    into map: inout EntryMap
  ) throws(StorageError) {
    unsafe updateCommonPrefix(key)
    let key = unsafe Key(start: key.baseAddress!, count: key.count)
    pending.append(unsafe Pending(key: key, value: value, kind: kind, expiry: expiry, revision: revision))
    if pending.count == Self.groupCount { try flush(into: &map) }
  }

  /// Puts an entry whose value is in a file. There are few of them, so each can wait for memory separately.
  mutating func put(
    _ key: UnsafeRawBufferPointer, _ value: SeparatedValue, kind: EntryKind, expiry: UInt64, revision: UInt64,
    into map: inout EntryMap
  ) throws(StorageError) {
    unsafe updateCommonPrefix(key)
    try flush(into: &map)
    try map.load(
      unsafe Key(start: key.baseAddress!, count: key.count), value, kind: kind, expiry: expiry, revision: revision)
  }

  mutating func remove(
    _ key: UnsafeRawBufferPointer, revision: UInt64, from map: inout EntryMap
  ) throws(StorageError) {
    let key = unsafe Key(start: key.baseAddress!, count: key.count)
    let nothing = unsafe UnsafeRawBufferPointer(start: nil, count: 0)
    pending.append(unsafe Pending(key: key, value: nothing, kind: nil, expiry: 0, revision: revision))
    if pending.count == Self.groupCount { try flush(into: &map) }
  }

  mutating func removeAll(revision: UInt64, from map: inout EntryMap) throws(StorageError) {
    try flush(into: &map)
    map.unloadAll(revision: revision)
  }

  /// Executes the pending operations.
  mutating func flush(into map: inout EntryMap) throws(StorageError) {
    let count = pending.count
    do {
      var pending = pending.mutableSpan
      for index in 0..<count { pending[index].prefetched = map.prefetchIndex(pending[index].key) }
    }
    for index in 0..<count { map.prefetchRecord(pending[index].prefetched) }
    for index in 0..<count {
      let operation = pending[index]
      let hash = operation.prefetched.hash
      if let kind = operation.kind {
        unsafe try map.load(
          operation.key, operation.value, kind: kind, expiry: operation.expiry, revision: operation.revision, hash: hash
        )
      } else {
        map.unload(operation.key, revision: operation.revision, hash: hash)
      }
    }
    pending.removeAll(keepingCapacity: true)
  }

  /// Finishes loading the map.
  mutating func finish(_ map: inout EntryMap, revision: UInt64) throws(StorageError) {
    try flush(into: &map)
    try map.finishLoading(commonPrefix: commonPrefix?.count ?? 0, revision: revision)
  }

  @inline(__always)
  private mutating func updateCommonPrefix(_ key: UnsafeRawBufferPointer) {
    guard let commonPrefix else {
      commonPrefix = unsafe Array(key)
      return
    }
    var index = 0
    let limit = min(commonPrefix.count, key.count)
    while index < limit, unsafe key[index] == commonPrefix[index] { index &+= 1 }
    if index < commonPrefix.count { self.commonPrefix = Array(commonPrefix[..<index]) }
  }
}

/// Fills an empty map faster than puts do: the order is built last and all at once.
///
/// Between `beginLoading` and `finishLoading` only the hash index finds the records, and only these functions may be
/// called.
extension EntryMap {
  /// Reserves space in the hash index for about this number of entries.
  mutating func beginLoading(entries: Int) throws(StorageError) {
    precondition(order.count == 0 && snapshots.isEmpty && !isDropped, "only an empty map can be loaded")
    try hashIndex.reserve(entries: entries, in: arena)
  }

  /// Puts an entry, replacing an older one with this key.
  mutating func load(
    _ key: Key, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64, hash: UInt32
  ) throws(StorageError) {
    let units = Record.units(keyLength: key.count, valueLength: value.count, hasExpiry: expiry != 0)
    let old = find(key, hash: hash)
    if old != 0, value.count < ExternalValues.minimumByteCount {
      let record = record(old)
      if !record.isExternal, record.hasExpiry == (expiry != 0), record.units == units {
        precondition(record.revision <= revision, "a log was read out of order")
        revisions.advance(to: revision)
        counts.replaceValue(of: record, byteCount: value.count)
        let oldExpiry = record.expiry
        unsafe record.overwrite(value: value, external: nil, kind: kind, revision: revision, expiry: expiry)
        updateExpiry(expiry, hash: hash, replacing: oldExpiry)
        return
      }
    }
    let external = value.count < ExternalValues.minimumByteCount ? nil : unsafe try externals.make(value)
    let handle = try arena.allocate(units: units)
    unsafe record(handle).initialize(
      key: key, value: value, external: external, kind: kind, revision: revision, expiry: expiry)
    try load(handle, replacing: old, hash: hash)
  }

  /// Puts an entry whose value is in a file, replacing an older one with this key.
  mutating func load(
    _ key: Key, _ value: SeparatedValue, kind: EntryKind, expiry: UInt64, revision: UInt64
  ) throws(StorageError) {
    let hash = hashIndex.hash(key)
    let external = unsafe try externals.make(value)
    let handle = try arena.allocate(
      units: Record.units(keyLength: key.count, valueLength: value.byteCount, hasExpiry: expiry != 0))
    unsafe record(handle).initialize(
      key: key, value: UnsafeRawBufferPointer(start: nil, count: 0), external: external, kind: kind,
      revision: revision, expiry: expiry)
    try load(handle, replacing: find(key, hash: hash), hash: hash)
  }

  /// Adds a new record, replacing an old one with its key unless `old` is 0.
  private mutating func load(_ handle: UInt32, replacing old: UInt32, hash: UInt32) throws(StorageError) {
    let record = record(handle)
    revisions.advance(to: record.revision)
    guard old != 0 else {
      try hashIndex.insert(handle, hash: hash, in: arena)
      counts.add(record)
      updateExpiry(record.expiry, hash: hash, replacing: 0)
      return
    }
    let replaced = self.record(old)
    precondition(replaced.revision <= record.revision, "a log was read out of order")
    counts.replaceValue(of: replaced, byteCount: record.valueByteCount)
    let oldExpiry = replaced.expiry
    hashIndex.replace(old, with: handle, hash: hash)
    free(old)
    updateExpiry(record.expiry, hash: hash, replacing: oldExpiry)
  }

  /// Removes the entry with this key, if there is one.
  mutating func unload(_ key: Key, revision: UInt64, hash: UInt32) {
    revisions.advance(to: revision)
    let handle = find(key, hash: hash)
    guard handle != 0 else { return }
    let record = record(handle)
    hashIndex.remove(handle, hash: hash, in: arena)
    counts.remove(record)
    if record.hasExpiry { expiryQueue.noteRemoval() }
    free(handle)
  }

  /// Removes every entry. Hashes computed before are invalid afterwards.
  mutating func unloadAll(revision: UInt64) {
    revisions.advance(to: revision)
    discardContents()
  }

  /// Builds the order of the loaded records. The map is then as puts would have made it.
  ///
  /// - Parameters:
  ///   - commonPrefix: The number of leading bytes that all keys have in common, at least.
  ///   - revision: The store's revision, if it is greater than that of the last record.
  mutating func finishLoading(commonPrefix: Int, revision: UInt64) throws(StorageError) {
    revisions.advance(to: revision)
    hashIndex.releaseUnusedReservation(in: arena)
    var keys = SortedKeys(commonPrefix: commonPrefix)
    arena.visitBlocks { handle in unsafe keys.append(handle, Record(at: arena.address(handle)).key) }
    keys.sort(in: arena.records)
    try order.build(keys)
    revisions.didChange()
  }
}
