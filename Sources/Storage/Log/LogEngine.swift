import Basics
import Platform

/// The files of one durable store: segments of records in a folder, `Protocol/log-format.md`.
///
/// Commits go to the end of the active segment. When it is full it is sealed, and the one prepared ahead takes its place. All segments but
/// the last are sealed, and together they stand for every number from 1 on. Used by one thread at a time, the journal's, but for `figures`.
///
/// Safe because the journal hands it to no other thread while a call is under way, and what `figures` reads is behind a lock.
package final class LogEngine: Engine, @unchecked Sendable {
  let folder: LogFolder
  /// The same, held open: whoever was promised room must not need a descriptor to get it.
  let openFolder: any Folder
  let identity: UInt64
  let sizes: LogSizes
  /// Oldest first.
  var sealed: [SealedSegment]
  /// Nil after a start on a full disk.
  var active: ActiveSegment?
  var prepared: PreparedSegment?
  /// The revision of the last record that was written, and of the last that is known to be on the disk.
  var lastRevision: UInt64
  var syncedRevision: UInt64
  /// The number of the next segment.
  var nextNumber: UInt64
  let runner: any CompactionRunner
  var compaction: Compaction?
  var survey: LivenessScan?
  /// Whether what the last survey found is still of use.
  var isSurveyed = false
  /// How large the log was when nothing was worth compacting.
  var quietBytes = 0
  /// The space that a compaction may fall back on, as far as it is taken.
  var reserveBytes = 0
  /// Whether a compaction has the reserve's space: nobody else may take it until it is done.
  var isReserveLent = false
  let shared: Lock<LogFigures>

  init(
    _ folder: LogFolder, _ openFolder: any Folder, identity: UInt64, sizes: LogSizes, sealed: [SealedSegment],
    active: ActiveSegment?,
    lastRevision: UInt64, nextNumber: UInt64, cutBytes: Int, runner: any CompactionRunner
  ) {
    self.folder = folder
    self.openFolder = openFolder
    self.identity = identity
    self.sizes = sizes
    self.sealed = sealed
    self.active = active
    self.lastRevision = lastRevision
    self.nextNumber = nextNumber
    self.runner = runner
    syncedRevision = lastRevision
    shared = Lock(LogFigures(cutBytes: cutBytes))
    noteFigures { _ in }
  }

  package var room: Int { max(active?.room ?? 0, prepared?.room ?? 0) }

  package let syncTimes: DurationHistogram? = DurationHistogram()
  package var figures: [(name: String, value: UInt64)] { shared.withLock { $0.named } }

  /// All segments, the active one as far as it is written.
  var byteCount: Int { sealed.reduce(active?.end ?? 0) { $0 + $1.byteCount } }

  package func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [PlacedValue] {
    var rest = unsafe records
    var placed: [PlacedValue] = []
    while rest.count > 0 {
      let fitting = unsafe prefix(of: rest, within: active?.room ?? 0)
      if fitting > 0 {
        let part = unsafe UnsafeRawBufferPointer(rebasing: rest[..<fitting])
        unsafe try append(part)
        if separatedCount > 0, let active {
          unsafe placed += PlacedValue.all(in: part, at: active.end - part.count, of: active.values)
        }
        unsafe rest = UnsafeRawBufferPointer(rebasing: rest[fitting...])
      } else {
        let recordBytes = unsafe rest.recordByteCount(at: 0)
        do throws(EngineError) {
          try advance(toHold: recordBytes)
        } catch {
          // Whoever heeds `room` never comes here.
          throw error == .noSpace ? .failed("the disk is full (\(folder.path))") : error
        }
      }
    }
    lastRevision = max(lastRevision, last)
    let written = records.count
    noteFigures { $0.commitBytes += written }
    if syncs { try sync() }
    return placed
  }

  package func sync() throws(EngineError) {
    guard let active else { return }
    guard active.synced < active.end else {
      syncedRevision = lastRevision
      return
    }
    let begun = monotonicNanoseconds()
    try attempt(folder.segmentPath(active.number)) { () throws(SystemError) in try active.file.sync() }
    syncTimes?.note(nanoseconds: monotonicNanoseconds() - begun)
    self.active?.synced = active.end
    syncedRevision = lastRevision
    noteFigures { $0.syncs += 1 }
  }

  /// How many bytes of whole records fit.
  private func prefix(of records: UnsafeRawBufferPointer, within room: Int) -> Int {
    if records.count <= room { return records.count }
    var place = 0
    while place < records.count {
      let end = unsafe place + records.recordByteCount(at: place)
      if end > room { break }
      place = end
    }
    return place
  }

  /// Writes records that fit.
  private func append(_ records: UnsafeRawBufferPointer) throws(EngineError) {
    guard var active else { preconditionFailure("there is no active segment") }
    let path = folder.segmentPath(active.number)
    if active.synced - active.marked >= sizes.markInterval {
      let revision = max(active.firstRevision, 1) - 1
      let mark = SyncMark(
        revision: max(revision, lastRevisionOfActive), identity: identity, syncedByteCount: active.synced)
      try attempt(path) { () throws(SystemError) in try active.file.write(mark.bytes, at: active.end) }
      active.marked = active.synced
      active.end += SyncMark.byteCount
    }
    try attempt(path) { () throws(SystemError) in unsafe try active.file.write(records, at: active.end) }
    active.end += records.count
    lastRevisionOfActive = unsafe Self.lastRevision(of: records)
    self.active = active
  }

  /// The revision of the last record of the active segment, which a mark repeats.
  var lastRevisionOfActive: UInt64 = 0

  private static func lastRevision(of records: UnsafeRawBufferPointer) -> UInt64 {
    var (place, revision) = (0, UInt64(0))
    while place < records.count {
      revision = unsafe records.integer(at: place + 8, as: UInt64.self)
      place += unsafe records.recordByteCount(at: place)
    }
    return revision
  }

  func noteFigures(_ change: (inout LogFigures) -> Void) {
    let (bytes, segments, room) = (byteCount, sealed.count + (active == nil ? 0 : 1), room)
    shared.withLock { figures in
      change(&figures)
      (figures.bytes, figures.segments, figures.room) = (bytes, segments, room)
    }
  }

  /// Runs calls on a file, and says which file it was when one fails.
  func attempt<Result>(_ path: String, _ body: () throws(SystemError) -> Result) throws(EngineError) -> Result {
    do throws(SystemError) { return try body() } catch { throw .failed("\(error) (\(path))") }
  }
}
