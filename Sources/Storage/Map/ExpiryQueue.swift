import Platform

/// The times when entries expire, soonest first: a binary heap of times and hashes of keys.
///
/// Every live entry with an expiry has at least one item under its hash that isn't later than that expiry. An item may
/// be too early or its entry gone, because overwriting or deleting an entry leaves its item in the queue: the code that
/// pops an item looks the entry up, and pushes it again if it expires later. Owned by one `EntryMap` and used under its
/// store's lock.
struct ExpiryQueue {
  struct Item: Comparable {
    // Two halves keep an item at 12 bytes.
    private let upper: UInt32
    private let lower: UInt32
    let hash: UInt32

    init(expiry: UInt64, hash: UInt32) {
      upper = UInt32(truncatingIfNeeded: expiry >> 32)
      lower = UInt32(truncatingIfNeeded: expiry)
      self.hash = hash
    }

    var expiry: UInt64 { UInt64(upper) << 32 | UInt64(lower) }

    static func < (left: Item, right: Item) -> Bool { left.expiry < right.expiry }
  }

  private var items: [Item] = []
  /// The number of live entries with an expiry.
  private(set) var entryCount = 0
  /// Whether an item was pushed, since `forgetSooner`, that is sooner than all others.
  private(set) var hasSooner = false

  var count: Int { items.count }
  var first: Item? { items.first }
  /// The bytes of the items, without spare capacity.
  var usedBytes: Int { items.count * MemoryLayout<Item>.stride }
  var memoryBytes: Int { items.capacity * MemoryLayout<Item>.stride }
  /// Whether the queue has many more items than there are entries.
  var needsCompaction: Bool { items.count > 2 * entryCount + 1_024 }

  mutating func push(expiry: UInt64, hash: UInt32) {
    items.append(Item(expiry: expiry, hash: hash))
    var index = items.count - 1
    var items = items.mutableSpan
    while index > 0, items[index] < items[(index - 1) / 2] {
      items.swapAt(index, (index - 1) / 2)
      index = (index - 1) / 2
    }
    if index == 0 { hasSooner = true }
  }

  mutating func forgetSooner() { hasSooner = false }

  /// Removes and returns the soonest item.
  /// - Precondition: The queue isn't empty.
  mutating func pop() -> Item {
    items.swapAt(0, items.count - 1)
    let popped = items.removeLast()
    siftDown()
    return popped
  }

  private mutating func siftDown() {
    let count = items.count
    var index = 0
    var items = items.mutableSpan
    while 2 * index + 1 < count {
      var child = 2 * index + 1
      if child + 1 < count, items[child + 1] < items[child] { child += 1 }
      guard items[child] < items[index] else { return }
      items.swapAt(index, child)
      index = child
    }
  }

  /// Notes that an entry now expires at another time than before; 0 means never.
  mutating func update(_ expiry: UInt64, hash: UInt32, replacing old: UInt64) {
    entryCount += (expiry == 0 ? 0 : 1) - (old == 0 ? 0 : 1)
    if expiry != 0, old == 0 || expiry < old { push(expiry: expiry, hash: hash) }
  }

  /// Notes that an entry with an expiry is gone. Its item stays.
  mutating func noteRemoval() { entryCount -= 1 }

  /// Removes the items that no entry needs.
  /// - Parameter soonest: Returns the soonest expiry among the entries with a hash.
  mutating func compact(soonest: (UInt32) -> UInt64?) {
    var kept: [Item] = []
    for item in items.sorted(by: { $0.hash < $1.hash }) where kept.last?.hash != item.hash {
      if let expiry = soonest(item.hash) { kept.append(Item(expiry: expiry, hash: item.hash)) }
    }
    // A sorted array is a heap.
    items = kept.sorted()
  }
}

extension EntryMap {
  /// The time of the next call of `expire`; nil if no entry has an expiry. Nothing expires before that time, but by
  /// then nothing may need to.
  package var nextExpiry: UInt64? { expiryQueue.first?.expiry }

  /// Returns whether `expire` has anything to examine.
  package func isExpiryDue(now: UInt64) -> Bool { nextExpiry ?? .max <= now }

  /// Returns the time of the next call of `expire`, once, if a write has made it sooner; otherwise nil.
  @inline(__always)
  package mutating func takeSoonerExpiry() -> UInt64? {
    guard expiryQueue.hasSooner else { return nil }
    expiryQueue.forgetSooner()
    return nextExpiry
  }

  /// The time that `expireBriefly` takes at most, in nanoseconds, but for its last few entries.
  private static var briefNanoseconds: UInt64 { 200_000 }
  /// The number of queue items that it examines before it looks at the clock again.
  private static var briefLimit: Int { 16 }

  /// Removes expired entries for a fraction of a millisecond, because others wait for the store's lock meanwhile.
  ///
  /// - Returns: Whether there are more.
  package mutating func expireBriefly(now: UInt64) -> Bool {
    guard isExpiryDue(now: now) else { return false }
    let deadline = monotonicNanoseconds() + Self.briefNanoseconds
    repeat {
      expire(now: now, limit: Self.briefLimit)
    } while isExpiryDue(now: now) && monotonicNanoseconds() < deadline
    return isExpiryDue(now: now)
  }

  /// Removes the entries whose expiry isn't after `now`. Expiring takes no revision.
  ///
  /// - Parameter limit: The maximum number of queue items to examine, so that a worker can do a little at a time.
  /// - Returns: The number of entries removed.
  @discardableResult
  package mutating func expire(now: UInt64, limit: Int = .max) -> Int {
    guard let first = expiryQueue.first, first.expiry <= now else { return 0 }
    return expireDue(now: now, limit: limit)
  }

  private mutating func expireDue(now: UInt64, limit: Int) -> Int {
    var (removed, left) = (0, limit)
    while left > 0, let first = expiryQueue.first, first.expiry <= now {
      let hash = expiryQueue.pop().hash
      while let (handle, expiry) = soonest(hash: hash) {
        guard expiry <= now, (try? remove(handle, hash: hash)) != nil else {
          // The expiry was extended since. Or the system has no memory for the copy of a node, and the entry must wait.
          expiryQueue.push(expiry: max(expiry, now + 1), hash: hash)
          break
        }
        removed += 1
        expiredCount &+= 1
      }
      left -= 1
    }
    return removed
  }

  /// Returns the live entry that expires soonest among those with this hash.
  private func soonest(hash: UInt32) -> (handle: UInt32, expiry: UInt64)? {
    var found: (handle: UInt32, expiry: UInt64)?
    hashIndex.visitCandidates(hash: hash) { handle in
      let record = record(handle)
      if record.hasExpiry, hashIndex.hash(record.key) == hash, record.expiry < found?.expiry ?? .max {
        found = (handle, record.expiry)
      }
      return true
    }
    return found
  }

  /// Updates the queue for an entry that now expires at another time than before; 0 means never.
  @inline(__always)
  mutating func updateExpiry(_ expiry: UInt64, hash: UInt32, replacing old: UInt64) {
    if expiry != 0 || old != 0 { changeExpiry(expiry, hash: hash, replacing: old) }
  }

  private mutating func changeExpiry(_ expiry: UInt64, hash: UInt32, replacing old: UInt64) {
    expiryQueue.update(expiry, hash: hash, replacing: old)
    compactExpiryQueue()
  }

  /// Keeps the queue from filling up with items whose entries are gone or expire later.
  mutating func compactExpiryQueue() {
    guard expiryQueue.needsCompaction else { return }
    // The entries are looked up in the map, which can't be done while the queue inside it changes.
    var queue = expiryQueue
    queue.compact { hash in soonest(hash: hash)?.expiry }
    expiryQueue = queue
  }
}
