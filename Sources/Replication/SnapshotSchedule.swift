import Storage

/// When a store's snapshots are written, and how far the current one has come. A snapshot lets a server open the store
/// without reading all of its commits, which are then removed.
struct SnapshotSchedule: ~Copyable {
  private enum State {
    case idle
    case writing(Writing)
    /// Removing what the newest snapshot has made superfluous.
    case trimming(before: Int64)
  }

  private struct Writing {
    let snapshot: Snapshot
    let position: Int64
    /// The size of the commits that the snapshot certainly includes.
    let byteCount: Int
    var rank = 0
    var partCount = 0
    /// The part that is to be written.
    var part: [UInt8]?
  }

  /// The size of the commits after which another snapshot is worth it, however small the store is.
  private static let minByteCount = 8 << 20
  private static let partByteCount = 1 << 20

  private let leadership: Leadership
  private let log: any SharedLog
  private var state = State.idle
  /// The size of the commits since the newest snapshot, in bytes.
  private(set) var byteCount: Int
  private(set) var count = 0

  init(of leadership: Leadership, in log: any SharedLog, byteCount: Int) {
    (self.leadership, self.log, self.byteCount) = (leadership, log, byteCount)
  }

  mutating func didAppend(_ byteCount: Int) { self.byteCount += byteCount }

  /// What is left of the work that was due.
  enum Progress {
    case nothing, unfinished
    /// Another node leads the store.
    case deposed
  }

  /// Does a piece of the work that is due.
  /// - Parameters:
  ///   - position: The position of the last commit.
  ///   - lastRevision: Its last revision.
  mutating func advance(
    position: Int64, lastRevision: UInt64, _ context: any MaintenanceContext
  ) throws(SharedLogError) -> Progress {
    switch state {
    case .idle:
      guard byteCount >= Self.minByteCount else { return .nothing }
      let contents = context.read { $0.contents }
      guard byteCount >= contents.keyBytes + contents.valueBytes, let snapshot = context.takeSnapshot() else {
        return .nothing
      }
      state = .writing(Writing(snapshot: snapshot, position: position, byteCount: byteCount))
      return .unfinished
    case .writing(let writing): return try advance(writing, lastRevision: lastRevision, context)
    case .trimming(let position):
      if try !log.trim(leadership.store, before: position) { state = .idle }
      return .unfinished
    }
  }

  private mutating func advance(
    _ current: Writing, lastRevision: UInt64, _ context: any MaintenanceContext
  ) throws(SharedLogError) -> Progress {
    var writing = current
    if writing.part == nil, writing.rank < writing.snapshot.count {
      var buffer = CommitBuffer()
      do throws(StorageError) {
        writing.rank = try context.addRecords(
          of: writing.snapshot, from: writing.rank, to: &buffer, upTo: Self.partByteCount)
      } catch {
        // The store was dropped.
        state = .idle
        return .nothing
      }
      writing.part = unsafe Array(buffer.bytes)
      state = .writing(writing)
    }
    if let part = writing.part {
      try log.add(part, as: writing.partCount, at: writing.position, in: leadership.store)
      writing.part = nil
      writing.partCount += 1
      state = .writing(writing)
      return .unfinished
    }
    // The snapshot may include commits that are not in the log yet.
    guard lastRevision >= writing.snapshot.revision || !context.read({ $0.hasCommits }) else {
      return .unfinished
    }
    let finished = LogSnapshot(
      position: writing.position, revision: writing.snapshot.revision, partCount: writing.partCount,
      entryCount: writing.snapshot.count)
    let isNewest = try log.finish(finished, under: leadership)
    context.endSnapshot(writing.snapshot)
    guard isNewest else {
      // The commits before it are still needed.
      state = .idle
      return .deposed
    }
    count += 1
    byteCount -= writing.byteCount
    state = .trimming(before: writing.position)
    return .unfinished
  }
}
