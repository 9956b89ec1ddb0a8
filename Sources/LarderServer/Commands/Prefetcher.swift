import Storage
import Wire

/// Prefetches the memory that the next requests on single keys will read, so that they wait for it together rather than
/// one by one.
///
/// Prefetching takes two steps: `add` prefetches the part of a store's index that a key belongs to, and
/// `prefetchRecords` then prefetches the records of all keys that were added. Only speed depends on it. Every call
/// needs the store's lock. Owned by an `Executor`.
struct Prefetcher: ~Copyable {
  private var keys = InlineArray<16, EntryMap.PrefetchedKey>(repeating: EntryMap.PrefetchedKey())
  private var count = 0

  /// Whether no more keys can be added before `prefetchRecords`.
  @inline(__always)
  var isFull: Bool { count == keys.count }

  /// Adds a key.
  @inline(__always)
  mutating func add(_ key: RawSpan, _ map: inout EntryMap) {
    keys[count] = map.prefetchIndex(key)
    count &+= 1
  }

  /// Prefetches everything that the next keys of a list need.
  /// - Returns: the number of those keys.
  mutating func prefetch(_ keys: KeyList, of body: RawSpan, _ map: inout EntryMap) -> Int {
    var keys = keys
    while !isFull, let key = keys.next(body) { add(body.extracting(key), &map) }
    return prefetchRecords(&map)
  }

  /// Prefetches everything that the next records of a write need.
  /// - Returns: the number of those records.
  mutating func prefetchWrites(in body: RawSpan, at start: Int, _ map: inout EntryMap) -> Int {
    var position = start
    while !isFull, let write = WriteRecord(body, at: position) {
      add(body.extracting(write.key), &map)
      position = write.end
    }
    return prefetchRecords(&map)
  }

  /// Prefetches everything that the next operations of an apply request need.
  /// - Returns: the number of those operations.
  mutating func prefetchOperations(in body: RawSpan, at start: Int, _ map: inout EntryMap) -> Int {
    var position = start
    while !isFull, let record = ApplyRecord(body, at: position) {
      add(body.extracting(record.key), &map)
      position = record.end
    }
    return prefetchRecords(&map)
  }

  /// Prefetches the records of the keys that were added, and forgets the keys.
  /// - Returns: the number of those keys.
  @discardableResult
  mutating func prefetchRecords(_ map: inout EntryMap) -> Int {
    for index in 0..<count { map.prefetchRecord(keys[index]) }
    defer { count = 0 }
    return count
  }
}
