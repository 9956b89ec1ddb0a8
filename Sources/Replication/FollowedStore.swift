import Platform
import Storage
import Synchronization

/// A store that another server leads, with everything that it has in memory, so that this one can take it over at once.
package final class FollowedStore: Sendable {
  /// What clients may read. It ends when this server takes the store over.
  package let store: Store
  package let id: StoreID
  private let reader: StoreReader
  private let log: any SharedLog
  private let records: any StoreRecords
  /// Locked while changes are made.
  private let place: Lock<LogPlace>
  /// The epoch of the leader whose history is known to be that of the store; 0 for none.
  private let knownEpoch = Atomic<Int64>(0)
  /// The size of the commits since the newest snapshot at which to look again whether another one is due, in bytes.
  private let nextLook = Atomic(0)

  /// Reads the store from the log. May wait for the network, and for long.
  package init(
    _ name: StoreName, _ specification: StoreSpecification, _ id: StoreID, in log: any SharedLog,
    keepingValuesIn cache: ValueCache, budgets: StoreBudgets = StoreBudgets(), at now: ClockReading
  ) throws {
    (self.id, self.log) = (id, log)
    reader = StoreReader(
      log: log, store: id, name: name, durability: specification.durability,
      values: StoreValues(of: id, name, in: log, keptIn: cache))
    records = ReplicatedRecords(log: log, store: id)
    var map = EntryMap(budgets: budgets)
    place = Lock(try reader.load(upTo: nil, into: &map, at: now))
    store = try Store(following: name, specification, map: map, records: records)
  }

  /// What reads the store's large values.
  var values: StoreValues { reader.values }

  /// The position of the last commit that was read.
  package var position: Int64 { place.withLock { $0.position } }

  /// Applies the commits after the last one that was read.
  /// - Parameter commits: That one, and those after it.
  /// - Returns: False if the store has to be read again: the first is another one, because the database was restored, or has
  ///   lost an unacknowledged commit; or another history of the store has begun.
  package func replay(_ commits: [LogCommit], at now: ClockReading) throws -> Bool {
    try place.withLock { place in
      guard reader.continues(at: place, with: commits) else { return false }
      for commit in commits.dropFirst() {
        // A leader records the history before its first change.
        if !commit.records.isEmpty, commit.epoch != knownEpoch.load(ordering: .relaxed) {
          guard try store.hasHistory(in: records) else { return false }
          knownEpoch.store(commit.epoch, ordering: .relaxed)
        }
        let locations = try store.replaying { map in try reader.replay(commit, after: &place, into: &map, at: now) }
        store.updateLocations(locations)
      }
      return true
    }
  }

  /// Removes some of the entries that have expired.
  func expire(at now: ClockReading) throws { try store.replaying { _ = $0.expireBriefly(now: now.monotonic) } }

  /// Creates and deletes indexes as the other server has.
  func followIndexes() throws { try store.followIndexes(in: records) }

  /// Whether a snapshot of the store is worth it.
  var isSnapshotDue: Bool {
    let byteCount = place.withLock { $0.byteCount }
    return byteCount >= max(SnapshotWriter.minByteCount, nextLook.load(ordering: .relaxed))
      && byteCount >= store.read { SnapshotWriter.threshold($0) }
  }

  /// Writes a snapshot of the store to the log, unless another server just has.
  /// - Throws: Also if the store has ended.
  func writeSnapshot() throws {
    defer { nextLook.store(place.withLock { $0.byteCount } + SnapshotWriter.pauseByteCount, ordering: .relaxed) }
    let newest = try log.snapshot(of: id)?.position ?? 0
    let begun = place.withLock { place -> (snapshot: Snapshot, place: LogPlace)? in
      if place.snapshotPosition == newest { return store.takeSnapshot().map { ($0, place) } }
      (place.snapshotPosition, place.byteCount) = (newest, 0)
      return nil
    }
    guard let begun else { return }
    defer { store.endSnapshot(begun.snapshot) }
    let writer = SnapshotWriter(begun.snapshot, at: begun.place.position, to: log, of: id)
    guard try writer.write(store, in: begun.place) else { return }
    place.withLock { place in
      place.snapshotPosition = begun.place.position
      place.byteCount -= begun.place.byteCount
    }
  }

  /// Ends the store, and hands what it has over to a server that leads it now, with the commits that were not read yet.
  /// - Parameters:
  ///   - end: The position of the last commit.
  ///   - map: An empty map.
  /// - Throws: `engineUnavailable` if the log doesn't continue at the last commit. Then it is to be read from the start.
  func takeOver(upTo end: Int64, into map: inout EntryMap, at now: ClockReading) throws -> LogPlace {
    try place.withLock { place in
      store.endFollowing(into: &map)
      try reader.load(after: &place, upTo: end, into: &map, at: now)
      return place
    }
  }

  /// Ends the store.
  func end() {
    store.discardContents(
      because: .servedElsewhere(store.name, StoreElsewhere("it has stopped following the store; ask another server")))
  }
}
