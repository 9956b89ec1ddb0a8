// A durable put on a replicated store:
//
// 1. The worker writes the entry to the map and its record to the store's `CommitBuffer`, as for every durable store.
// 2. The commit thread takes all records and calls `write`, which appends them at the next position of the store's log:
//    `SharedLog.append`. It waits until the database, and its synchronous standby, has them.
// 3. Nobody else can have appended there unless another node leads the store now. Then this one is deposed, and nothing
//    that it has not acknowledged counts.
// 4. If the outcome is unknown, the commit thread calls `write` again with the same records. The commit at the position
//    then shows whose it is.

import Basics
import Dispatch
import Platform
import Storage
import Synchronization

/// The engine `replicated`: keeps a store in a shared log (`Protocol/replicated-format.md`).
///
/// Safe because one thread at a time uses the engine, and what others read is atomic or behind a lock.
package final class ReplicatedEngine: Engine, @unchecked Sendable {
  let log: any SharedLog
  private let leadership: Leadership
  private let life: Membership.Life
  /// The last commit.
  private var place: LogPlace
  private var lastRevision: UInt64
  /// How much of the records of a write that has failed was appended all the same, in pieces.
  private var appendedPieceCount = 0
  /// Where the large values are that were appended with these pieces.
  private var appendedLocations: [ValueLocation] = []
  private let values: StoreValues
  private let upkeep: LogUpkeep
  private var writtenByteCount = 0
  private let isDeposed = Atomic(false)
  private let successor = Lock<Int64?>(nil)
  private let publishedFigures = Lock([(name: String, value: UInt64)]())
  package let syncTimes: DurationHistogram? = DurationHistogram()
  package let records: (any StoreRecords)?

  /// The maximum size of the commits that wait for the log, in bytes.
  private static let maxPendingByteCount = 64 << 20
  /// The maximum size of the records of a commit, in bytes, unless it has only one record.
  static let pieceByteCount = 1 << 20

  init(
    _ leadership: Leadership, at place: LogPlace, lastRevision: UInt64, values: StoreValues, as life: Membership.Life,
    in log: any SharedLog, upkeepOn queue: DispatchQueue
  ) {
    (self.leadership, self.place, self.lastRevision) = (leadership, place, lastRevision)
    (self.life, self.log, self.values) = (life, log, values)
    records = ReplicatedRecords(log: log, store: leadership.store, leadership: leadership)
    upkeep = LogUpkeep(of: leadership.store, values, in: log, at: place, lastRevision: lastRevision, on: queue)
    publishFigures()
  }

  package var lease: Lease? { life.lease }

  package var hasLostStore: Bool { isDeposed.load(ordering: .relaxed) || life.lease.isRevoked }

  package var waitsOutside: Bool { true }

  package var reservedByteCount: Int { Self.maxPendingByteCount }

  package func reserveSpace() throws(EngineError) {}

  package func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation] {
    let pieces = unsafe records.recordRuns(upTo: Self.pieceByteCount)
    while appendedPieceCount < pieces.count {
      let piece = pieces[appendedPieceCount]
      let bytes = unsafe Array(records[piece.range])
      try append(
        LogCommit(
          position: place.position + 1, epoch: leadership.epoch, lastRevision: piece.lastRevision, records: bytes))
      appendedPieceCount += 1
      guard separatedCount > 0 else { continue }
      let locations = unsafe bytes.withRecords { records in
        unsafe ValueLocation.all(in: records, ofCommitAt: place.position, in: values)
      }
      values.keep(locations, in: bytes)
      appendedLocations += locations
    }
    defer { appendedLocations = [] }
    appendedPieceCount = 0
    publishFigures()
    return appendedLocations
  }

  private func append(_ commit: LogCommit) throws(EngineError) {
    guard !hasLostStore else { throw Self.deposed }
    let begun = monotonicNanoseconds()
    let isAppended: Bool
    do throws(SharedLogError) {
      isAppended = try log.append(commit, to: leadership.store) ? true : wasAppended(commit)
    } catch { throw EngineError(error) }
    guard isAppended else {
      isDeposed.store(true, ordering: .relaxed)
      throw Self.deposed
    }
    syncTimes?.note(nanoseconds: monotonicNanoseconds() - begun)
    (place.position, place.epoch, lastRevision) = (commit.position, commit.epoch, commit.lastRevision)
    writtenByteCount += commit.records.count
    upkeep.didAppend(commit)
  }

  /// Returns whether a commit that could not be appended was by an earlier attempt.
  /// - Throws: Also if a failover may have undone that, so that it must be tried again.
  private func wasAppended(_ commit: LogCommit) throws(SharedLogError) -> Bool {
    guard try isInLog(commit) else { return false }
    // The database may have shown it before it was safe, and then have failed over to a standby that doesn't have it.
    try log.synchronize()
    return try isInLog(commit)
  }

  /// Returns whether a commit is in the log; false if another leader's is in its place, or the one before it is lost.
  /// - Throws: Also if its position is still free.
  private func isInLog(_ commit: LogCommit) throws(SharedLogError) -> Bool {
    let found = try log.commits(of: leadership.store, from: commit.position - 1, upTo: 1)
    guard found.first?.position == commit.position - 1, found.first?.epoch == commit.epoch else { return false }
    let next = try log.commits(of: leadership.store, from: commit.position, upTo: 1).first
    guard let next else { throw .unavailable("the database has failed over and lost an unacknowledged commit") }
    return next.position == commit.position && next.epoch == commit.epoch
  }

  private static let deposed = EngineError.failed("another server has taken the store over")

  package func sync() throws(EngineError) {}

  package func performMaintenance(_ context: any MaintenanceContext) throws(EngineError) -> Bool {
    if !hasLostStore { upkeep.beginIfDue(at: place, lastRevision: lastRevision, context) }
    return false
  }

  package func stopBackgroundWork() { upkeep.stop() }

  package func close() throws(EngineError) {
    guard !hasLostStore else { return }
    // Otherwise, the next leader would have to wait until the lease expires.
    let successor = successor.withLock { $0 }
    try? log.release(leadership, to: successor)
    if successor != nil { isDeposed.store(true, ordering: .relaxed) }
  }

  /// Chooses the node that is to lead the store when the engine is closed. From any thread.
  func chooseSuccessor(_ node: Int64) { successor.withLock { $0 = node } }

  /// Sets whether another server is to write the store's snapshots. From any thread.
  func expectSnapshots(_ expects: Bool) { upkeep.expectSnapshots(expects) }

  package var figures: [(name: String, value: UInt64)] {
    publishedFigures.withLock { figures in figures } + [
      ("replicated_log_bytes", UInt64(upkeep.byteCount)),
      ("replicated_snapshots_total", UInt64(upkeep.snapshotCount)),
      ("replicated_value_reads_total", UInt64(values.readCount)),
    ]
  }

  private func publishFigures() {
    let figures = [
      (name: "replicated_position", value: UInt64(place.position)),
      ("replicated_written_bytes_total", UInt64(writtenByteCount)),
    ]
    publishedFigures.withLock { $0 = figures }
  }
}

/// What a shared log keeps of a store besides its entries.
struct ReplicatedRecords: StoreRecords {
  let log: any SharedLog
  let store: StoreID
  /// The leadership of this server; nil if it only follows.
  var leadership: Leadership?

  func bytes(of item: StoreRecordItem) throws(EngineError) -> [UInt8] {
    do throws(SharedLogError) { return try log.bytes(of: item.rawValue, in: store) } catch {
      throw EngineError(error)
    }
  }

  func record(_ bytes: [UInt8], as item: StoreRecordItem) throws(EngineError) {
    do throws(SharedLogError) {
      if let leadership, try log.record(bytes, as: item.rawValue, under: leadership) { return }
    } catch { throw EngineError(error) }
    throw .failed("another server has taken the store over")
  }
}

extension EngineError {
  init(_ error: SharedLogError) {
    // Whatever is wrong with the database, the commits are safe until it is put right.
    self = .transient("\(error)")
  }
}
