import Storage

/// Writes a snapshot of a store to the shared log, part after part. A snapshot lets a server open the store without reading
/// all of its commits.
struct SnapshotWriter {
  /// The size of the commits after which another snapshot is worth it, however small the store is.
  static let minByteCount = 64 << 20
  private static let maxMoveByteCount = 64 << 20
  private static let partByteCount = 1 << 20
  /// The size of the commits before it is tried again to write a snapshot, in bytes.
  static let pauseByteCount = 1 << 20

  let snapshot: Snapshot
  /// The position of the last commit that the snapshot certainly includes.
  let position: Int64
  private var rank = 0
  private var partCount = 0

  init(_ snapshot: Snapshot, at position: Int64) { (self.snapshot, self.position) = (snapshot, position) }

  /// Returns the size of the commits after which another snapshot of a store is worth it: twice that of the entries,
  /// without large values, to which a snapshot only refers. If there are large values, it is more, because those that are
  /// replaced soon need not be moved then.
  static func threshold(_ map: borrowing EntryMap) -> Int {
    max(minByteCount, 2 * map.residentByteCount + min(map.storedByteCount / 4, maxMoveByteCount))
  }

  /// There already is a part, of a snapshot at the same position that was not finished, or that another server writes. Both
  /// need not have the same entries in each part.
  struct Conflict: Error {}

  /// Writes the next part.
  /// - Returns: The snapshot if it has all of its parts.
  /// - Throws: `StorageError` if the store has ended, `SharedLogError`, or `Conflict`. The snapshot can't be finished then.
  mutating func writePart(
    _ context: any MaintenanceContext, to log: any SharedLog, of store: StoreID
  ) throws -> LogSnapshot? {
    if rank < snapshot.count {
      var buffer = CommitBuffer()
      rank = try context.addRecords(of: snapshot, from: rank, to: &buffer, upTo: Self.partByteCount)
      guard try log.add(unsafe Array(buffer.bytes), as: partCount, at: position, in: store) else { throw Conflict() }
      partCount += 1
      if rank < snapshot.count { return nil }
    }
    return LogSnapshot(
      position: position, revision: snapshot.revision, partCount: partCount, entryCount: snapshot.count)
  }
}
