import DataSources

/// What a cache keeps by key, up to a number of keys. A new key evicts one that was not used recently.
///
/// A plain value without a lock or a clock.
struct CacheSlots: Sendable {
  /// What is known about a key.
  struct Entry: Sendable {
    /// The revision of the store's entry; 0 if the content says that there is no entry.
    let revision: UInt64
    /// When the store's entry expires, in nanoseconds of the monotonic clock; `.max` for never.
    let expiry: UInt64
    let content: CachedContent
  }

  private struct Slot: Sendable {
    let key: EntryKey
    var entry: Entry
    var wasUsed: Bool
  }

  private var indices: [EntryKey: Int] = [:]
  private var slots: [Slot?] = []
  private var freeIndices: [Int] = []
  /// The slot to look at next when a key must make room.
  private var hand = 0
  let limit: Int

  /// - Parameter limit: The maximum number of keys, at least 1.
  init(limit: Int) {
    self.limit = limit
  }

  var count: Int { indices.count }

  /// Returns the content of a key, if there is one that has not expired, and counts that as a use.
  /// - Complexity: O(1).
  mutating func use(_ key: EntryKey, now: UInt64) -> Entry? {
    guard let index = indices[key], let entry = slots[index]?.entry else { return nil }
    guard now < entry.expiry else {
      remove(index)
      return nil
    }
    slots[index]?.wasUsed = true
    return entry
  }

  /// Stores what is known about a key, unless something newer is known.
  /// - Complexity: O(1) on average.
  mutating func insert(_ entry: Entry, for key: EntryKey) {
    if let index = indices[key] {
      if entry.revision >= slots[index]!.entry.revision { slots[index]?.entry = entry }
      return
    }
    let index = freeSlot()
    slots[index] = Slot(key: key, entry: entry, wasUsed: false)
    indices[key] = index
  }

  private mutating func freeSlot() -> Int {
    if let index = freeIndices.popLast() { return index }
    guard slots.count == limit else {
      slots.append(nil)
      return slots.count - 1
    }
    // All slots are taken. Skip a slot once if it was used since the hand last passed it.
    while true {
      defer { hand = (hand + 1) % limit }
      guard slots[hand]!.wasUsed else {
        indices[slots[hand]!.key] = nil
        return hand
      }
      slots[hand]?.wasUsed = false
    }
  }

  /// Removes what is known about a key, unless it is of this revision or a newer one.
  /// - Complexity: O(1).
  mutating func remove(_ key: EntryKey, olderThan revision: UInt64 = .max) {
    guard let index = indices[key], slots[index]!.entry.revision < revision else { return }
    remove(index)
  }

  private mutating func remove(_ index: Int) {
    if let slot = slots[index] { indices[slot.key] = nil }
    slots[index] = nil
    freeIndices.append(index)
  }

  /// Removes what is known, unless it is of this revision or a newer one.
  /// - Complexity: O(*n*).
  mutating func removeAll(olderThan revision: UInt64) {
    for index in slots.indices where slots[index].map({ $0.entry.revision < revision }) == true { remove(index) }
  }
}
