import Platform

/// What opening a log found.
package struct LogRecovery: Sendable, Equatable {
  package var segments = 0
  package var bytes = 0
  package var records = 0
  /// What a crash had left behind the last whole record, and was cut off.
  package var cutBytes = 0
  /// The file it was cut off from.
  package var cutPath: String?
}

/// Opening a log: all that is durable becomes the map.
extension LogEngine {
  /// Opens the log in a folder, or makes a new one in it, and loads its entries into an empty map.
  ///
  /// Afterwards nothing is torn: a tail that was has been cut off, and the segment it was in is sealed. A full disk does not keep a log
  /// from being opened; `room` is 0 then until `makeRoom` finds some.
  ///
  /// - Parameters:
  ///   - path: absolute; the folder is made if it is missing.
  ///   - now: milliseconds of the clock that the map's expiries are in.
  ///   - unixNow: the same moment, in milliseconds since 1970.
  ///   - progress: called a piece with how many bytes are read, and of how many.
  /// - Throws: with the map half loaded, and of no more use.
  package static func open(
    _ path: String, files: any FileSystem, sizes: LogSizes = LogSizes(), now: UInt64, unixNow: UInt64,
    identity: UInt64 = .random(in: .min ... .max), progress: (Int, Int) -> Void = { _, _ in },
    into map: inout EntryMap
  ) throws(LogError) -> (engine: LogEngine, recovery: LogRecovery) {
    try open(
      path, files: files, sizes: sizes, now: now, unixNow: unixNow, identity: identity, runner: BackgroundRunner(),
      progress: progress, into: &map)
  }

  static func open(
    _ path: String, files: any FileSystem, sizes: LogSizes, now: UInt64, unixNow: UInt64, identity: UInt64,
    runner: any CompactionRunner, progress: (Int, Int) -> Void = { _, _ in }, into map: inout EntryMap
  ) throws(LogError) -> (engine: LogEngine, recovery: LogRecovery) {
    let folder = LogFolder(files: files, path: path)
    var found = FoundSegments()
    let openFolder = try LogError.on(path) { () throws(SystemError) in
      try folder.make()
      try folder.removeLeftovers()
      // A process may have died between naming a file and having the name on the disk.
      let openFolder = try files.openFolder(path)
      try openFolder.sync()
      return openFolder
    }
    let reserve = try LogError.on(folder.reservePath) { () throws(SystemError) in
      try files.kind(of: folder.reservePath)
    }
    try found.read(folder)
    var recovery = LogRecovery()
    var replay = LogReplay(now: now, unixNow: unixNow)
    var sealed: [SealedSegment] = []
    try memory { () throws(StorageError) in try map.beginLoading(entries: found.estimatedRecords) }
    var lastRevision: UInt64 = 0
    var unfinished: ActiveSegment?
    let byteCount = found.segments.reduce(0) { $0 + $1.byteCount }
    for (index, segment) in found.segments.enumerated() {
      let isLast = index == found.segments.count - 1
      let readBytes = recovery.bytes
      let ending = try replay.read(segment, isLast: isLast, into: &map) { progress(readBytes + $0, byteCount) }
      lastRevision = max(lastRevision, ending.lastRevision, segment.header.lastRevision)
      recovery.bytes += ending.end
      if !ending.isSealed, ending.end == SegmentHeader.byteCount, ending.tornBytes == 0 {
        // Nothing was ever written to it: it is as good as new.
        let file = try LogError.on(segment.path) { () throws(SystemError) in try files.open(segment.path, .writing) }
        unfinished = ActiveSegment(
          values: ValueFile(file, path: segment.path), number: segment.header.number,
          firstRevision: segment.header.firstRevision,
          capacity: segment.byteCount)
        break
      }
      if isLast, ending.isSealed {
        // Nor need the trailer be on the disk when whoever wrote it died.
        try LogError.on(segment.path) { () throws(SystemError) in try files.open(segment.path, .writing).sync() }
      }
      if !ending.isSealed {
        try LogError.on(segment.path) { () throws(SystemError) in try cut(segment, ending, lastRevision: lastRevision) }
        recovery.cutBytes = ending.tornBytes
        if ending.tornBytes > 0 { recovery.cutPath = segment.path }
      }
      sealed.append(
        SealedSegment(
          number: segment.header.number, lastNumber: segment.header.lastNumber,
          firstRevision: segment.header.firstRevision, lastRevision: lastRevision,
          sweptRevision: segment.header.sweptRevision, byteCount: ending.end + SegmentTrailer.byteCount,
          tombstoneBytes: ending.tombstoneBytes, liveBytes: ending.end))
    }
    try memory { () throws(StorageError) in try replay.finish(&map, revision: lastRevision) }
    recovery.records = replay.recordCount
    recovery.segments = found.segments.count
    let engine = LogEngine(
      folder, openFolder, identity: found.segments.first?.header.identity ?? (identity | 1), sizes: sizes,
      sealed: sealed,
      active: unfinished, lastRevision: lastRevision,
      nextNumber: (found.segments.last?.header.lastNumber ?? 0) + 1, cutBytes: recovery.cutBytes, runner: runner)
    if case .file(let byteCount) = reserve { engine.reserveBytes = byteCount }
    if unfinished == nil { try engine.begin() }
    return (engine, recovery)
  }

  /// Makes the first segment after a start, if there is space for it.
  private func begin() throws(LogError) {
    do throws(EngineError) {
      try makeRoom()
      try advance(toHold: 0)
      noteFigures { _ in }
    } catch {
      switch error {
      case .noSpace: return
      case .failed(let what): throw .failed(path: folder.path, SystemError(what, errno: 5))
      }
    }
  }

  /// Seals the segment where its last whole record ends. The trailer comes first: its place on the disk is there already.
  private static func cut(_ segment: FoundSegment, _ ending: LogReplay.Ending, lastRevision: UInt64) throws(SystemError)
  {
    let file = try segment.files.open(segment.path, .writing)
    try file.sync()
    let trailer = SegmentTrailer(offset: ending.end, lastRevision: lastRevision, identity: segment.header.identity)
    try file.write(trailer.bytes, at: ending.end)
    try file.sync()
    try file.truncate(to: ending.end + SegmentTrailer.byteCount)
  }

  private static func memory(_ body: () throws(StorageError) -> Void) throws(LogError) {
    do throws(StorageError) { try body() } catch { throw .noMemory(error) }
  }
}
