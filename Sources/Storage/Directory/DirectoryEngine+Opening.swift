import Platform

extension DirectoryEngine {
  /// Opens the store in a folder that is there, reads its entries into an empty map, and finishes what a crash has cut off. The caller
  /// sees to it that nobody else has it open (`DataDirectory`, `FileLock`).
  ///
  /// - Parameters:
  ///   - journalByteCount: what a journal is made with; tests have small ones.
  ///   - progress: called now and then with how many entries are read, and of how many.
  /// - Throws: with nothing changed in the folder, unless a call failed that changes something.
  package static func open(
    _ path: String, on fileSystem: any FileSystem, journalByteCount: Int = WriteAheadLog.initialByteCount,
    progress: (Int, Int) -> Void = { _, _ in }, into map: inout EntryMap, at moment: ClockReading = .now
  ) throws(DirectoryError) -> (engine: DirectoryEngine, report: DirectoryReport) {
    let folder = DirectoryFolder(fileSystem: fileSystem, path: path)
    let reading = try read(folder, progress, into: &map, at: moment)
    for finding in reading.report.findings {
      if case .unreadable(let reason) = finding.oddity {
        throw .unreadable(path: folder.path(finding.name), reason: reason)
      }
    }
    map.revision = max(map.revision, reading.report.revision)
    do throws(SystemError) {
      let journal = try openJournal(of: reading, journalByteCount)
      for name in reading.leftovers { try folder.removeIfThere(name) }
      let engine = DirectoryEngine(folder, journal, pending: reading.pending, index: reading.index)
      engine.spreadClearing()
      try engine.finishOpening(after: reading.report.revision)
      return (engine, reading.report)
    } catch {
      throw .system(path: path, error)
    }
  }

  private static func read(
    _ folder: DirectoryFolder, _ progress: (Int, Int) -> Void, into map: inout EntryMap, at moment: ClockReading
  ) throws(DirectoryError) -> DirectoryReading {
    try DirectoryReading(folder, wall: moment.wall, progress: progress) { (key, entry, value) throws(DirectoryError) in
      let expiry = entry.expiry == 0 ? 0 : moment.monotonic(ofWall: entry.expiry)
      do throws(StorageError) {
        unsafe try map.put(
          key.span.bytes, value.span.bytes, kind: entry.kind, expiry: expiry, revision: entry.revision)
      } catch {
        throw .storage(error)
      }
    }
  }

  private static func openJournal(
    of reading: DirectoryReading, _ byteCount: Int
  ) throws(SystemError) -> WriteAheadLog {
    let folder = reading.folder
    guard let contents = reading.journal else {
      return try .make(in: folder, after: reading.report.revision, byteCount: byteCount)
    }
    return WriteAheadLog(try folder.fileSystem.open(folder.path(WriteAheadLog.name), .writing), behind: contents)
  }

  /// Has the files be what the journal says, and the journal begin anew, so that nothing a crash left in it is ever read again. On a full
  /// disk the files wait and the journal goes on.
  private func finishOpening(after revision: UInt64) throws(SystemError) {
    do throws(SystemError) {
      try settle()
      try folder.fileSystem.syncFolder(folder.path)
      try journal.startOver(after: revision)
    } catch {
      guard error.isNoSpace else { throw error }
      try journal.clearRest()
    }
    publishFigures()
  }
}
