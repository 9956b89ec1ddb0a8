import Storage

/// Writes a snapshot of a store to the shared log, part after part. A snapshot lets a server open the store without reading
/// all of its commits.
struct SnapshotWriter {
  /// The size of the commits after which another snapshot is worth it, however small the store is.
  static let minByteCount = 64 << 20
  /// How much more large values can make that, in bytes.
  private static let maxMoveByteCount = 64 << 20
  private static let partByteCount = 1 << 20
  /// The size of the commits before it is tried again to write a snapshot, in bytes.
  static let pauseByteCount = 1 << 20

  private let snapshot: Snapshot
  private let position: Int64
  private let log: any SharedLog
  private let store: StoreID

  /// - Parameter position: The position of the last commit that the snapshot certainly includes.
  init(_ snapshot: Snapshot, at position: Int64, to log: any SharedLog, of store: StoreID) {
    (self.snapshot, self.position, self.log, self.store) = (snapshot, position, log, store)
  }

  /// Returns the size of the commits after which another snapshot of a store is worth it: twice that of the entries,
  /// without large values, to which a snapshot only refers. If there are large values, it is more, because those that are
  /// replaced soon need not be moved then.
  static func threshold(_ map: borrowing EntryMap) -> Int {
    max(minByteCount, 2 * map.residentByteCount + min(map.storedByteCount / 4, maxMoveByteCount))
  }

  /// There already is a part, of a snapshot at the same position that was not finished, or that another server writes. Both
  /// need not have the same entries in each part.
  private struct Conflict: Error {}

  /// Writes all parts, and makes the snapshot the newest one.
  /// - Parameters:
  ///   - end: A commit that has the snapshot's revision, or a later one.
  ///   - prepare: Called before each part.
  /// - Returns: Whether it is the newest one.
  /// - Throws: Also if the store has ended.
  func write(
    _ context: any MaintenanceContext, in end: LogPlace, beforeEachPart prepare: () throws -> Void = {}
  ) throws -> Bool {
    var (rank, partCount) = (0, 0)
    while rank < snapshot.count {
      try prepare()
      var buffer = CommitBuffer()
      rank = try context.addRecords(of: snapshot, from: rank, to: &buffer, upTo: Self.partByteCount)
      guard try log.add(unsafe Array(buffer.bytes), as: partCount, at: position, in: store) else { throw Conflict() }
      partCount += 1
    }
    let written = LogSnapshot(
      position: position, revision: snapshot.revision, partCount: partCount, entryCount: snapshot.count)
    return try log.finish(written, of: store, in: end)
  }
}
