import Basics
import Platform

/// The engine `log`: keeps a store in segments of records in a folder (`Protocol/log-format.md`).
///
/// `LogWriter` owns the segments, `LogMaintenance` allocates space and compacts. One thread at a time uses the engine,
/// the commit thread of its store, except for `figures` and `syncTimes`.
///
/// Safe because the commit writer hands the engine to no other thread during a call, and what `figures` reads is behind
/// a lock.
package final class LogEngine: Engine, @unchecked Sendable {
  private(set) var writer: LogWriter
  private var maintenance: LogMaintenance
  private let folder: LogFolder
  /// The number of bytes of unfinished writes that opening has truncated.
  private let truncatedByteCount: Int
  /// The number of bytes of commits.
  private var committedByteCount = 0
  private let publishedFigures = Lock([(name: String, value: UInt64)]())
  package let syncTimes: DurationHistogram?

  private init(
    _ folder: LogFolder, writer: LogWriter, maintenance: LogMaintenance, truncatedByteCount: Int,
    syncTimes: DurationHistogram
  ) {
    self.folder = folder
    self.writer = writer
    self.maintenance = maintenance
    self.truncatedByteCount = truncatedByteCount
    self.syncTimes = syncTimes
    publishFigures()
  }

  package var reservedByteCount: Int { writer.availableByteCount }

  package var removalReserveByteCount: Int { writer.removalReserveByteCount }

  package func reserveSpace() throws(EngineError) {
    defer { publishFigures() }
    do throws(EngineError) { try writer.reserveSpace() } catch {
      if error == .noSpace { maintenance.noteSpace(isMissing: true) }
      throw error
    }
    maintenance.noteSpace(isMissing: false)
  }

  package func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation] {
    let locations = unsafe try writer.write(records, separatedCount: separatedCount, syncs: syncs)
    committedByteCount += records.count
    publishFigures()
    return locations
  }

  package func sync() throws(EngineError) {
    try writer.sync()
    publishFigures()
  }

  package func performMaintenance(_ context: any MaintenanceContext) throws(EngineError) -> Bool {
    let hasMore = try maintenance.perform(on: &writer, context)
    publishFigures()
    return hasMore
  }

  package func stopBackgroundWork() { maintenance.stop() }

  /// Seals the log, and notes its end, so that the next start notices if anything is missing.
  package func close() throws(EngineError) { try writer.close() }

  /// Seals the log with at least that revision as its last.
  func seal(lastRevision: UInt64) throws(EngineError) { try writer.seal(lastRevision: lastRevision) }

  /// Allocates a segment and continues in it.
  func startSegment() throws(EngineError) {
    try writer.reserveSpace()
    try writer.startSegment(fitting: 0)
    publishFigures()
  }

  var isCompacting: Bool { maintenance.isCompacting }

  /// Starts the compaction of neighboring sealed segments, whether they are worth it or not.
  func compact(_ run: Range<Int>, revision: UInt64, _ context: any MaintenanceContext) throws(EngineError) {
    _ = try maintenance.compact(run, revision: revision, on: &writer, context)
  }

  // MARK: Figures

  package var figures: [(name: String, value: UInt64)] { publishedFigures.withLock { figures in figures } }

  private func publishFigures() {
    let (bytes, live) = (writer.byteCount, maintenance.liveByteCount)
    let compacted = maintenance.compactedByteCount
    let figures = [
      (name: "log_bytes", value: UInt64(bytes)), ("log_live_bytes", UInt64(min(live, bytes))),
      ("log_dead_bytes", UInt64(max(0, bytes - live))), ("log_segments", UInt64(writer.segmentCount)),
      ("log_room_bytes", UInt64(writer.availableByteCount)),
      ("log_written_bytes_total", UInt64(committedByteCount + compacted)),
      ("log_compaction_bytes_total", UInt64(compacted)),
      ("log_compactions_total", UInt64(maintenance.compactionCount)),
      ("log_syncs_total", UInt64(writer.syncCount)), ("log_cut_bytes", UInt64(truncatedByteCount)),
    ]
    publishedFigures.withLock { $0 = figures }
  }
}

// MARK: Opening

extension LogEngine {
  /// Opens the log in an existing folder, or creates one in it, and loads its entries into an empty map.
  ///
  /// Afterwards nothing is torn: a torn tail has been truncated, and its segment is sealed. A full disk doesn't keep a
  /// log from being opened; the engine then has no space for records until `reserveSpace` finds some.
  ///
  /// - Parameters:
  ///   - path: The absolute path of the folder.
  ///   - now: The time on the clock of the map's expiries, in milliseconds.
  ///   - unixNow: The same time in milliseconds since 1970.
  ///   - progress: Called repeatedly with how many bytes have been read, and of how many.
  /// - Throws: `LogError`. The map is then partly loaded and must not be used.
  package static func open(
    _ path: String, files: any FileSystem, configuration: LogConfiguration = LogConfiguration(), now: UInt64,
    unixNow: UInt64, identity: UInt64 = .random(in: .min ... .max), progress: (Int, Int) -> Void = { _, _ in },
    into map: inout EntryMap
  ) throws(LogError) -> (engine: LogEngine, recovery: LogRecovery) {
    try open(
      path, files: files, configuration: configuration, at: ClockReading(wall: unixNow, monotonic: now),
      identity: identity, runner: BackgroundRunner(), progress: progress, into: &map)
  }

  static func open(
    _ path: String, files: any FileSystem, configuration: LogConfiguration, at now: ClockReading, identity: UInt64,
    runner: any CompactionRunner, progress: (Int, Int) -> Void = { _, _ in }, into map: inout EntryMap
  ) throws(LogError) -> (engine: LogEngine, recovery: LogRecovery) {
    let folder = LogFolder(files: files, path: path)
    let openFolder = try LogError.wrapping(path) { () throws(SystemError) in
      // A process may have died after naming a file and before the name was on disk.
      let openFolder = try files.openFolder(path)
      try openFolder.sync()
      return openFolder
    }
    let reserve = try LogError.wrapping(folder.reservePath) { () throws(SystemError) in
      try files.kind(of: folder.reservePath)
    }
    let manifest = try ManifestFile.open(in: folder, for: .writing)
    let list = try SegmentList(opening: folder, manifest: manifest?.manifest)
    try LogError.wrapping(path) { () throws(SystemError) in
      try folder.removeLeftovers()
      if !list.replacedPaths.isEmpty { try folder.removeSegments(list.replacedPaths) }
    }
    var recovery = LogRecovery()
    var replay = LogReplay(now: now)
    var sealed: [SealedSegment] = []
    try wrappingMemory { () throws(StorageError) in try map.beginLoading(entries: list.estimatedRecordCount) }
    var lastRevision: UInt64 = 0
    var active: ActiveSegment?
    let byteCount = list.segments.reduce(0) { $0 + $1.byteCount }
    for (index, segment) in list.segments.enumerated() {
      let isLast = index == list.segments.count - 1
      let bytesBefore = recovery.bytes
      let end = try replay.read(segment, isLast: isLast, into: &map) { progress(bytesBefore + $0, byteCount) }
      lastRevision = max(lastRevision, end.lastRevision, segment.header.lastRevision)
      recovery.bytes += end.offset
      if isLast,
        let shortage = manifest?.manifest.shortage(of: segment.header, end: end.offset, lastRevision: lastRevision)
      {
        throw .damaged(path: segment.path, offset: end.offset, reason: shortage)
      }
      if !end.isSealed, end.offset == segment.header.byteCount, end.tornByteCount == 0, let salt = segment.header.salt {
        // Nothing was ever written to it, so it is as good as new.
        let file = try LogError.wrapping(segment.path) { () throws(SystemError) in
          try folder.openForWriting(segment.path)
        }
        active = ActiveSegment(
          file, path: segment.path, number: segment.header.number, firstRevision: segment.header.firstRevision,
          salt: salt, capacity: segment.byteCount)
        break
      }
      if isLast, end.isSealed {
        try LogError.wrapping(segment.path) { () throws(SystemError) in
          try completeSealing(segment, at: end.offset, in: folder)
        }
      }
      if !end.isSealed {
        try LogError.wrapping(segment.path) { () throws(SystemError) in
          try seal(segment, at: end, lastRevision: lastRevision, in: folder)
        }
        recovery.truncatedBytes = end.tornByteCount
        if end.tornByteCount > 0 { recovery.truncatedPath = segment.path }
      }
      sealed.append(
        SealedSegment(
          number: segment.header.number, lastNumber: segment.header.lastNumber,
          firstRevision: segment.header.firstRevision, lastRevision: lastRevision,
          sweptRevision: segment.header.sweptRevision, salt: segment.header.salt,
          byteCount: end.offset + SegmentTrailer.byteCount,
          tombstoneByteCount: end.tombstoneByteCount, liveByteCount: end.offset))
    }
    try wrappingMemory { () throws(StorageError) in try replay.finish(&map, revision: lastRevision) }
    recovery.records = replay.recordCount
    recovery.segments = list.segments.count
    var reserveByteCount = 0
    if case .file(let byteCount) = reserve { reserveByteCount = byteCount }
    let syncTimes = DurationHistogram()
    let identity = manifest?.manifest.identity ?? list.segments.first?.header.identity ?? (identity | 1)
    let writer = LogWriter(
      folder, openFolder, identity: identity, configuration: configuration, manifest: manifest, sealed: sealed,
      active: active, lastRevision: lastRevision,
      nextNumber: (list.segments.last?.header.lastNumber ?? 0) + 1, reserveByteCount: reserveByteCount,
      syncTimes: syncTimes)
    let maintenance = LogMaintenance(
      of: folder, runner: runner, maxBytesPerSecond: configuration.compactionBytesPerSecond)
    let engine = LogEngine(
      folder, writer: writer, maintenance: maintenance, truncatedByteCount: recovery.truncatedBytes,
      syncTimes: syncTimes)
    do throws(EngineError) { try engine.startWriting() } catch {
      guard case .failed(let description) = error else { preconditionFailure("starting without space is no failure") }
      throw .failed(path: folder.path, SystemError(description, errno: 5))
    }
    return (engine, recovery)
  }

  /// Starts the first segment after opening, unless there is an empty one, or no space for it.
  private func startWriting() throws(EngineError) {
    if !writer.isWritable {
      do throws(EngineError) { return try startSegment() } catch { if error != .noSpace { throw error } }
    }
    try writer.noteOpening()
  }

  /// Seals a segment at the end of its last intact record. The trailer comes first, because its space is already
  /// allocated.
  private static func seal(
    _ segment: SegmentFile, at end: LogReplay.SegmentEnd, lastRevision: UInt64, in folder: LogFolder
  ) throws(SystemError) {
    let file = try folder.openForWriting(segment.path)
    try file.rewrite(end.synced..<end.offset)
    try file.sync()
    let trailer = SegmentTrailer(offset: end.offset, lastRevision: lastRevision, secret: segment.header.secret)
    try file.write(trailer.bytes, at: end.offset)
    try file.sync()
    try file.truncate(to: end.offset + SegmentTrailer.byteCount)
  }

  /// Completes what a process may have died in after it had written the trailer at that offset.
  private static func completeSealing(
    _ segment: SegmentFile, at offset: Int, in folder: LogFolder
  ) throws(SystemError) {
    let (file, end) = (try folder.openForWriting(segment.path), offset + SegmentTrailer.byteCount)
    try file.rewrite(offset..<end)
    try file.sync()
    if segment.byteCount > end { try file.truncate(to: end) }
  }

  private static func wrappingMemory(_ body: () throws(StorageError) -> Void) throws(LogError) {
    do throws(StorageError) { try body() } catch { throw .noMemory(error) }
  }
}

extension LogEngine: FileEngine {
  static func openStore(
    in path: String, on files: any FileSystem, at now: ClockReading, into map: inout EntryMap,
    progress: (Int, Int) -> Void
  ) throws -> (engine: any Engine, remarks: [String]) {
    let (engine, recovery) = try open(
      path, files: files, now: now.monotonic, unixNow: now.wall, progress: progress, into: &map)
    guard recovery.truncatedBytes > 0 else { return (engine, []) }
    let remark = "removed \(recovery.truncatedBytes) bytes of unfinished writes from \(recovery.truncatedPath ?? path)"
    return (engine, [remark])
  }

  static func checkVersion(in path: String, on files: any FileSystem) throws {
    let folder = LogFolder(files: files, path: path)
    _ = try ManifestFile.open(in: folder, for: .reading)
    for number in try folder.segmentNumbers() {
      let path = folder.segmentPath(number)
      let start = try folder.openSegment(path).start
      do throws(SegmentHeader.DecodingError) { _ = try SegmentHeader.decode(start) } catch {
        throw error.logError(path)
      }
    }
  }

  static func recognizes(fileNames: [String]) -> Bool {
    fileNames.contains { $0.hasSuffix(".log") || $0 == ManifestFile.name }
  }

  static func checkStore(
    in path: String, on files: any FileSystem, progress: (Int) -> Void
  ) throws -> StoreReport.Files {
    StoreReport.Files(try LogCheck.check(path, files: files, progress: progress))
  }

  static func salvageStore(
    in path: String, to target: String, on files: any FileSystem, progress: (Int) -> Void
  ) throws -> (files: StoreReport.Files, salvage: StoreReport.SalvageSummary) {
    let (report, records) = try LogCheck.salvage(path, to: target, files: files, progress: progress)
    let lostByteCount = report.segments.reduce(0) { $0 + $1.lostBytes }
    return (
      StoreReport.Files(report),
      .init(
        copied: records, lostBytes: lostByteCount, lostEntries: report.lostOperations, lostFiles: report.missing.count)
    )
  }
}
