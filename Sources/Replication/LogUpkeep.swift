import Storage

/// Keeps the log of a store short that this server leads: makes sure that there are snapshots, moves the large values that
/// are in use out of the commits before the newest snapshot, and removes these commits, and values that are not in use.
///
/// Followers write the snapshots. The leader writes one if none of them has when twice as much has been committed as makes a
/// snapshot worth it.
struct LogUpkeep: ~Copyable {
  private enum State {
    case idle
    case writing(SnapshotWriter)
    case trimming(Trimming)
  }

  /// The removal of what a snapshot makes superfluous.
  private struct Trimming {
    /// The position of the snapshot.
    let position: Int64
    /// The values that were in use, and a revision that includes the changes because of which the others are not.
    let used: [ValueReference: LogValue]
    let revision: UInt64
    /// A commit that has this revision. As long as it is in the log, so are these changes.
    var end: LogPlace?
    /// The values that are still to be moved.
    var moves: [LogValue]
    var hasRemovedCommits = false
    /// The last value that was looked at.
    var lastValue = ValueReference(position: 0, offset: 0)
  }

  /// The size of the commits after which it is looked again whether a follower has written a snapshot.
  private static let lookByteCount = 1 << 20
  /// How much is moved at a time, in bytes, unless a single value is larger, and how many values.
  private static let moveByteCount = 8 << 20
  private static let moveCount = 1_000

  private let store: StoreID
  private let values: StoreValues
  private let log: any SharedLog
  private var state = State.idle
  /// The position of the snapshot before which everything was removed.
  private var trimmedPosition: Int64 = 0
  /// The size of the commits since the newest snapshot that is known, in bytes.
  private(set) var byteCount: Int
  /// Its size when some commits were appended.
  private var marks: [(position: Int64, byteCount: Int)] = []
  /// The size at which to look for a snapshot of a follower.
  private var nextLook = 0
  private(set) var snapshotCount = 0

  init(of store: StoreID, _ values: StoreValues, in log: any SharedLog, byteCount: Int) {
    (self.store, self.values, self.log, self.byteCount) = (store, values, log, byteCount)
  }

  mutating func didAppend(_ commit: LogCommit) {
    byteCount += commit.records.count
    if byteCount >= (marks.last?.byteCount ?? 0) + Self.lookByteCount { marks.append((commit.position, byteCount)) }
  }

  /// Does a piece of the work that is due.
  /// - Parameters:
  ///   - end: The last commit.
  ///   - lastRevision: Its last revision.
  ///   - expectsSnapshots: Whether a follower is to write snapshots.
  /// - Returns: Whether there is more to do.
  mutating func advance(
    at end: LogPlace, lastRevision: UInt64, expectingSnapshots expectsSnapshots: Bool,
    _ context: any MaintenanceContext
  ) throws(SharedLogError) -> Bool {
    switch state {
    case .idle: return try begin(at: end, expectingSnapshots: expectsSnapshots, context)
    case .writing(var writer):
      guard Self.has(writer.snapshot.revision, lastRevision, context) else { return true }
      let snapshot: LogSnapshot?
      do { snapshot = try writer.writePart(context, to: log, of: store) } catch let error as SharedLogError {
        throw error
      } catch {
        // The store has ended.
        state = .idle
        return false
      }
      state = .writing(writer)
      guard let snapshot else { return true }
      let isNewest = try log.finish(snapshot, of: store, in: end)
      context.endSnapshot(writer.snapshot)
      state = .idle
      guard isNewest else { return false }
      snapshotCount += 1
      beginTrimming(before: snapshot.position, context)
      return true
    case .trimming(var trimming):
      guard Self.has(trimming.revision, lastRevision, context) else { return true }
      trimming.end = trimming.end ?? end
      let isComplete = try trim(&trimming)
      state = isComplete ? .idle : .trimming(trimming)
      if isComplete { trimmedPosition = trimming.position }
      return true
    }
  }

  /// Whether the log has a revision.
  private static func has(_ revision: UInt64, _ lastRevision: UInt64, _ context: any MaintenanceContext) -> Bool {
    lastRevision >= revision || !context.read { $0.hasCommits }
  }

  private mutating func begin(
    at end: LogPlace, expectingSnapshots expectsSnapshots: Bool, _ context: any MaintenanceContext
  ) throws(SharedLogError) -> Bool {
    let threshold = context.read { SnapshotWriter.threshold($0) }
    guard byteCount >= max(threshold, nextLook) else { return false }
    if let newest = try log.snapshot(of: store), newest.position > trimmedPosition {
      beginTrimming(before: newest.position, context)
      return true
    }
    if expectsSnapshots, byteCount < 2 * threshold {
      nextLook = byteCount + max(Self.lookByteCount, threshold / 8)
      return false
    }
    guard let snapshot = context.takeSnapshot() else { return false }
    state = .writing(SnapshotWriter(snapshot, at: end.position))
    return true
  }

  private mutating func beginTrimming(before position: Int64, _ context: any MaintenanceContext) {
    let sinceSnapshot = byteCount - (marks.last { $0.position <= position }?.byteCount ?? 0)
    marks = marks.filter { $0.position > position }.map { ($0.position, $0.byteCount - byteCount + sinceSnapshot) }
    (byteCount, nextLook) = (sinceSnapshot, 0)
    // In this order: a value that is no longer in use was replaced by a change that the revision includes.
    let used = values.usedValues
    let revision = context.read { $0.revisions.last }
    let moved = trimmedPosition..<position
    state = .trimming(
      Trimming(
        position: position, used: used, revision: revision,
        moves: used.values.filter { moved.contains($0.reference.position) }))
  }

  /// Does a piece of the removal.
  /// - Returns: Whether it is complete.
  private func trim(_ trimming: inout Trimming) throws(SharedLogError) -> Bool {
    guard let end = trimming.end else { return false }
    if !trimming.moves.isEmpty {
      var (count, size) = (0, 0)
      while count < min(trimming.moves.count, Self.moveCount), size < Self.moveByteCount {
        size += trimming.moves[trimming.moves.count - 1 - count].byteCount
        count += 1
      }
      try log.keep(Array(trimming.moves.suffix(count)), of: store)
      trimming.moves.removeLast(count)
      return false
    }
    if !trimming.hasRemovedCommits {
      trimming.hasRemovedCommits = try !log.trim(store, before: trimming.position, in: end)
      return false
    }
    let found = try log.values(of: store, after: trimming.lastValue, before: trimming.position)
    guard let last = found.last else { return true }
    let unused = found.filter { trimming.used[$0] == nil }
    if !unused.isEmpty { try log.remove(unused, of: store, in: end) }
    trimming.lastValue = last
    return false
  }
}
