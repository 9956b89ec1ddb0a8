import Platform

/// The times when entries expire.
///
/// Every live entry with an expiry has at least one item under its hash that isn't later than that expiry. An item may
/// be too early or its entry gone, because overwriting or deleting an entry leaves its item in the queue: the code that
/// pops an item looks the entry up, and pushes it again if it expires later. If many items are not needed any more, a
/// compaction examines all of them, a few with every change. Owned by one `EntryMap` and used under its store's lock.
struct ExpiryQueue: ~Copyable {
  typealias Item = ExpiryHeap.Item

  private var heap = ExpiryHeap()
  /// The items that a compaction is yet to examine; empty between two compactions.
  private var unexamined = ExpiryHeap()
  /// The hashes of the items that the compaction has kept.
  private var keptHashes: Set<UInt32> = []
  /// The number of live entries with an expiry.
  private(set) var entryCount = 0
  /// Whether an item was pushed, since `forgetSooner`, that is sooner than all others.
  private(set) var hasSooner = false

  var count: Int { heap.count + unexamined.count }
  /// The soonest item.
  var first: Item? {
    guard let next = unexamined.first else { return heap.first }
    return heap.first.map { min($0, next) } ?? next
  }
  /// The bytes of the items, without spare capacity.
  var usedBytes: Int { heap.usedBytes + unexamined.usedBytes }
  var memoryBytes: Int {
    heap.memoryBytes + unexamined.memoryBytes + keptHashes.capacity * MemoryLayout<UInt32>.stride
  }

  mutating func push(expiry: UInt64, hash: UInt32) {
    if expiry < first?.expiry ?? .max { hasSooner = true }
    heap.push(Item(expiry: expiry, hash: hash))
  }

  mutating func forgetSooner() { hasSooner = false }

  /// Removes and returns the soonest item.
  /// - Precondition: The queue isn't empty.
  mutating func pop() -> Item {
    guard let next = unexamined.first else { return heap.popFirst() }
    if let first = heap.first, first < next { return heap.popFirst() }
    defer { endCompactionIfComplete() }
    return unexamined.popFirst()
  }

  /// Notes that an entry now expires at another time than before; 0 means never.
  mutating func update(_ expiry: UInt64, hash: UInt32, replacing old: UInt64) {
    entryCount += (expiry == 0 ? 0 : 1) - (old == 0 ? 0 : 1)
    if expiry != 0, old == 0 || expiry < old { push(expiry: expiry, hash: hash) }
  }

  /// Notes that an entry with an expiry is gone. Its item stays.
  mutating func noteRemoval() { entryCount -= 1 }

  // MARK: Compaction

  /// Whether the queue has many more items than there are entries, or a compaction goes on.
  var needsCompaction: Bool { !unexamined.isEmpty || heap.count > 2 * entryCount + 1_024 }

  /// Takes an item that a compaction examines, the first one if none goes on: `keep` adds it again.
  /// - Returns: The hash of the item; nil if another one with this hash was kept.
  mutating func takeUnexamined() -> UInt32? {
    if unexamined.isEmpty {
      swap(&heap, &unexamined)
      // Reserved at once, so that it never grows.
      keptHashes.reserveCapacity(min(unexamined.count, entryCount + unexamined.count / 4))
    }
    let hash = unexamined.popLast().hash
    defer { endCompactionIfComplete() }
    return keptHashes.contains(hash) ? nil : hash
  }

  private mutating func endCompactionIfComplete() {
    if unexamined.isEmpty { keptHashes = [] }
  }

  /// Adds an item that `takeUnexamined` has returned, with the soonest expiry among the entries with its hash.
  mutating func keep(_ hash: UInt32, expiry: UInt64) {
    heap.push(Item(expiry: expiry, hash: hash))
    if !unexamined.isEmpty { keptHashes.insert(hash) }
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
  mutating func takeSoonerExpiry() -> UInt64? {
    guard expiryQueue.hasSooner else { return nil }
    expiryQueue.forgetSooner()
    return nextExpiry
  }

  /// The time that `expireBriefly` takes at most, in nanoseconds, but for its last few entries.
  private static var briefNanoseconds: UInt64 { 300_000 }
  /// The number of queue items that it examines before it looks at the clock again.
  private static var briefLimit: Int { 16 }

  /// Removes expired entries for a fraction of a millisecond, because others wait for the store's lock meanwhile.
  ///
  /// - Returns: Whether there are more that can be removed now: none can during a large commit.
  package mutating func expireBriefly(now: UInt64) -> Bool {
    guard isExpiryDue(now: now), !isDiverted else { return false }
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
    guard let first = expiryQueue.first, first.expiry <= now, !isDiverted else { return 0 }
    return expireDue(now: now, limit: limit)
  }

  private mutating func expireDue(now: UInt64, limit: Int) -> Int {
    var (removed, left) = (0, limit)
    while left > 0, let first = expiryQueue.first, first.expiry <= now {
      let hash = expiryQueue.pop().hash
      var next = soonest(hash: hash)
      while let (handle, expiry, isOnly) = next {
        let key = changes.feed == nil ? nil : unsafe Array(record(handle).key.bytes)
        guard expiry <= now, (try? remove(handle, hash: hash)) != nil else {
          // The expiry was extended since. Or the system has no memory for the copy of a node, and the entry must wait.
          expiryQueue.push(expiry: max(expiry, now + 1), hash: hash)
          break
        }
        completeIndexChange()
        if let key { changes.recordExpiry(key, revision: revisions.last) }
        removed += 1
        counts.didExpire()
        next = isOnly ? nil : soonest(hash: hash)
      }
      left -= 1
    }
    return removed
  }

  /// Returns the live entry that expires soonest among those with this hash, and whether it is the only one with an
  /// expiry.
  private func soonest(hash: UInt32) -> (handle: UInt32, expiry: UInt64, isOnly: Bool)? {
    var found: (handle: UInt32, expiry: UInt64)?
    var count = 0
    hashIndex.visitCandidates(hash: hash) { handle in
      let record = record(handle)
      guard record.hasExpiry, hashIndex.hash(record.key) == hash else { return true }
      count += 1
      if record.expiry < found?.expiry ?? .max { found = (handle, record.expiry) }
      return true
    }
    return found.map { ($0.handle, $0.expiry, count == 1) }
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

  /// How many items of the queue a change examines during a compaction, which is then over before the queue has grown
  /// by half.
  private static var examinedItemCount: Int { 4 }

  /// Keeps the queue from filling up with items whose entries are gone or expire later. Call it after changes that leave
  /// such items.
  @inline(__always)
  mutating func compactExpiryQueue() {
    if expiryQueue.needsCompaction { examineItems() }
  }

  private mutating func examineItems() {
    for _ in 0..<Self.examinedItemCount where expiryQueue.needsCompaction {
      guard let hash = expiryQueue.takeUnexamined(), let next = soonest(hash: hash) else { continue }
      expiryQueue.keep(hash, expiry: next.expiry)
    }
  }
}
