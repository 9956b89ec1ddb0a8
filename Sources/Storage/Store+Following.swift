import Documents

/// Stores whose changes another server makes.
extension Store {
  /// Creates a store whose changes another server makes, and `replaying` makes them here.
  /// - Parameters:
  ///   - map: What the store has so far.
  ///   - records: Where that server records the store's history and indexes.
  /// - Throws: `engineUnavailable` if nothing is recorded yet.
  package convenience init(
    following name: StoreName, _ specification: StoreSpecification, map: consuming sending EntryMap,
    records: any StoreRecords
  ) throws {
    guard let history = StoreHistory(try records.bytes(of: .history)) else {
      throw StorageError.engineUnavailable("the server that has created it has not recorded its history yet")
    }
    map.skipRevisions(through: history.revision)
    self.init(name: name, specification, map: map, incarnation: history.incarnation, freshness: Freshness())
    try restoreIndexes(try records.indexes())
  }

  /// Returns whether the other server has recorded the history that this store has. After a crash that can have lost
  /// commits which clients have seen, it has another one.
  package func hasHistory(in records: any StoreRecords) throws -> Bool {
    StoreHistory(try records.bytes(of: .history))?.incarnation == incarnation
  }

  /// Makes changes of the other server, and notifies those who watch the store.
  package func replaying<Result: Sendable>(_ body: (inout EntryMap) throws -> Result) throws -> Result {
    let (result, waiters) = try access { map in
      let end = map.feed?.end
      let result = try body(&map)
      return (result, map.feed?.end == end ? [] : map.drainChangeWaiters())
    }
    for waiter in waiters { waiter.storeDidChange() }
    return result
  }

  /// Creates and deletes indexes so that the store has those that the other server has recorded.
  package func followIndexes(in records: any StoreRecords) throws { try restoreIndexes(try records.indexes()) }

  /// Ends the store, and hands what it has over to an empty map. Waits for those who read it without its lock.
  package func endFollowing(into other: inout EntryMap) {
    lockWithoutReaders()
    let waiters = unsafe map.drainChangeWaiters()
    unsafe map.move(
      to: &other, because: .servedElsewhere(name, StoreElsewhere("it is taking the store over; open it again")))
    unlock()
    for waiter in waiters { waiter.storeDidChange() }
  }

  /// Frees the memory of a store that is no longer served, and notifies those who wait for it.
  /// - Parameter error: What they get.
  package func discardContents(because error: StorageError = .storeDropped) {
    let (waiters, commitWaiters) = access { map in
      defer { map.drop(because: error) }
      return (map.drainChangeWaiters(), map.drainCommitWaiters())
    }
    for waiter in waiters { waiter.storeDidChange() }
    for waiter in commitWaiters { waiter() }
  }
}
