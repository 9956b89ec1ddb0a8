extension EntryMap {
  /// When to call `expire` next: nothing expires before, though nothing need expire then. Nil when no entry ever does.
  package var nextExpiry: UInt64? { expiryQueue.first?.expiry }

  /// Whether `expire` has something to look at.
  package func isExpiryDue(now: UInt64) -> Bool { nextExpiry ?? .max <= now }

  /// Removes entries whose expiry isn't after `now`; an expiry takes no revision.
  ///
  /// - Parameter limit: How many items of the queue to look at, so that a worker can do a little at a time.
  /// - Returns: How many entries were removed.
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
          // It was prolonged since; or the system has no memory for a copy of a node, and it has to wait.
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

  /// The soonest of the live entries with that hash that have an expiry.
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

  /// Keeps the queue's promise for an entry that now expires at another time than it did (0: never).
  @inline(__always)
  mutating func noteExpiry(_ expiry: UInt64, hash: UInt32, replacing old: UInt64) {
    if expiry != 0 || old != 0 { changeExpiry(expiry, hash: hash, replacing: old) }
  }

  private mutating func changeExpiry(_ expiry: UInt64, hash: UInt32, replacing old: UInt64) {
    expiringCount += (expiry == 0 ? 0 : 1) - (old == 0 ? 0 : 1)
    if expiry != 0, old == 0 || expiry < old { expiryQueue.push(expiry: expiry, hash: hash) }
    tidyExpiryQueue()
  }

  /// Keeps the queue from growing with items whose entries are gone or expire later.
  mutating func tidyExpiryQueue() {
    if expiryQueue.count > 2 * expiringCount + 1_024 {
      expiryQueue = expiryQueue.rebuilt { hash in soonest(hash: hash)?.expiry }
    }
  }
}
