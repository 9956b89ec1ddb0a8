/// Loads operations into an empty map, in groups: a map of a million entries is in no cache, and a group waits for memory once.
///
/// The bytes of keys and values must stay where they are until `flush`. Owned by whoever reads a log.
struct BulkLoader {
  @safe
  private struct Pending {
    let key: Key
    let value: UnsafeRawBufferPointer
    /// Nil for a removal.
    let kind: EntryKind?
    let expiry: UInt64
    let revision: UInt64
    var ahead = EntryMap.Ahead()
  }

  private static let groupCount = 24

  private var pending: [Pending] = []
  /// What all keys begin with; nil before the first.
  private var common: [UInt8]?

  init() { pending.reserveCapacity(Self.groupCount) }

  @inline(__always)
  mutating func put(
    _ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer, kind: EntryKind, expiry: UInt64, revision: UInt64,
    into map: inout EntryMap
  ) throws(StorageError) {
    unsafe noteCommon(key)
    let key = unsafe Key(start: key.baseAddress!, count: key.count)
    pending.append(unsafe Pending(key: key, value: value, kind: kind, expiry: expiry, revision: revision))
    if pending.count == Self.groupCount { try flush(into: &map) }
  }

  /// Puts an entry whose value lies in a file. There are few enough of them for each to wait for memory on its own.
  mutating func put(
    _ key: UnsafeRawBufferPointer, _ value: StoredValue, kind: EntryKind, expiry: UInt64, revision: UInt64,
    into map: inout EntryMap
  ) throws(StorageError) {
    unsafe noteCommon(key)
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

  /// Does what was only noted so far.
  mutating func flush(into map: inout EntryMap) throws(StorageError) {
    let count = pending.count
    do {
      var pending = pending.mutableSpan
      for index in 0..<count { pending[index].ahead = map.aheadOfIndex(pending[index].key) }
    }
    for index in 0..<count { map.aheadOfRecord(pending[index].ahead) }
    for index in 0..<count {
      let operation = pending[index]
      let hash = operation.ahead.hash
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

  /// Ends the loading of the map.
  mutating func finish(_ map: inout EntryMap, revision: UInt64) throws(StorageError) {
    try flush(into: &map)
    try map.finishLoading(commonPrefix: common?.count ?? 0, revision: revision)
  }

  @inline(__always)
  private mutating func noteCommon(_ key: UnsafeRawBufferPointer) {
    guard let common else {
      common = unsafe Array(key)
      return
    }
    var index = 0
    let limit = min(common.count, key.count)
    while index < limit, unsafe key[index] == common[index] { index &+= 1 }
    if index < common.count { self.common = Array(common[..<index]) }
  }
}
