import EntryFiles
import Platform

/// The engine `directory`: keeps the entries of a store in a folder, one file each (Protocol/directory-format.md).
///
/// A commit is durable once the write-ahead log has it. A checkpoint later writes the entries' files, when there is
/// time or the log fills up. Every step of a checkpoint can be interrupted and repeated: a pending operation is
/// forgotten only when its file is on disk, and the log is reset only when nothing is pending. One thread at a time
/// uses the engine, the commit thread of its store; only `figures` may be read from any thread.
package final class DirectoryEngine: Engine {
  /// The number of files that one step of maintenance writes.
  private static let filesPerStep = 16
  /// The interval of the search for expired entries, in milliseconds.
  private static let expiryInterval: UInt64 = 60_000

  private let folder: DirectoryFolder
  private(set) var writeAheadLog: WriteAheadLog
  private var pending: PendingOperations
  private var index: DirectoryIndex
  private var nextExpiry: UInt64 = 0
  /// Whether the whole log was reported as available space and nothing was written since.
  private var isLogFullyAvailable = false
  private let publishedFigures = Lock([(name: String, value: UInt64)]())

  private init(
    _ folder: DirectoryFolder, _ writeAheadLog: WriteAheadLog, pending: PendingOperations, index: DirectoryIndex
  ) {
    self.folder = folder
    self.writeAheadLog = writeAheadLog
    self.pending = pending
    self.index = index
  }

  package var reservedByteCount: Int { writeAheadLog.availableByteCount }

  /// Empties the log by a checkpoint. Grows the log only for a caller that needs more than an empty log, because the
  /// log never shrinks and every start reads all of it.
  package func reserveSpace() throws(EngineError) {
    try attempt(WriteAheadLog.name, diskFullIsFatal: false) { () throws(SystemError) in
      if !writeAheadLog.isEmpty {
        try checkpoint()
        try resetLogIfCheckpointed()
      } else if isLogFullyAvailable {
        try writeAheadLog.grow()
      }
      isLogFullyAvailable = true
    }
    publishFigures()
  }

  package func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation] {
    let byteCount = records.count
    guard byteCount > 0 else { return [] }
    isLogFullyAvailable = false
    try attempt(WriteAheadLog.name, diskFullIsFatal: true) { () throws(SystemError) in
      if !writeAheadLog.fits(byteCount) {
        try checkpoint()
        try resetLogIfCheckpointed()
      }
      while !writeAheadLog.fits(byteCount) { try writeAheadLog.grow() }
      let start = unsafe try writeAheadLog.append(records, last: last)
      if syncs { try writeAheadLog.sync() }
      let operationCount = unsafe addPending(records, at: start)
      if writeAheadLog.isHalfFull { try checkpointAhead(of: operationCount) }
    }
    publishFigures()
    return []
  }

  package func sync() throws(EngineError) {
    try attempt(WriteAheadLog.name, diskFullIsFatal: true) { () throws(SystemError) in try writeAheadLog.sync() }
  }

  /// Writes some of the pending files. On a full disk they stay pending.
  package func performMaintenance(_ context: any MaintenanceContext) throws(EngineError) -> Bool {
    try performMaintenance(at: wallMilliseconds())
  }

  package func stopBackgroundWork() {}

  package func close() throws(EngineError) {}

  func performMaintenance(at wall: UInt64) throws(EngineError) -> Bool {
    if wall >= nextExpiry {
      nextExpiry = wall + Self.expiryInterval
      for key in index.expired(at: wall) { pending.deleteUnlessPending(key) }
    }
    guard !pending.isEmpty else { return false }
    do throws(EngineError) {
      try attempt("files", diskFullIsFatal: false) { () throws(SystemError) in
        try checkpoint(limit: Self.filesPerStep)
        try resetLogIfCheckpointed()
      }
    } catch .noSpace {
      return false
    }
    publishFigures()
    return !pending.isEmpty
  }

  package var figures: [(name: String, value: UInt64)] { publishedFigures.withLock { figures in figures } }

  private func publishFigures() {
    let figures = [
      (name: "directory_journal_bytes", value: UInt64(writeAheadLog.end - WriteAheadLog.start)),
      (name: "directory_journal_capacity_bytes", value: UInt64(writeAheadLog.capacity)),
      (name: "directory_files_waiting", value: UInt64(pending.count)),
      (name: "directory_files", value: UInt64(index.count)),
    ]
    publishedFigures.withLock { $0 = figures }
  }

  /// Adds the operations of the records to the pending ones.
  /// - Returns: The number of operations.
  private func addPending(_ records: UnsafeRawBufferPointer, at start: Int) -> Int {
    var reader = unsafe CommitReader(records)
    var count = 0
    do throws(CommitDamage) {
      while let operation = try reader.next() {
        pending.add(operation, at: start)
        count += 1
      }
    } catch {
      fatalError("records that were just made are damaged: \(error)")
    }
    pending.expandDeleteAll(index.keys)
    return count
  }

  /// Runs calls on files, and converts their errors.
  /// - Parameter diskFullIsFatal: Whether a full disk leaves an unknown state.
  private func attempt(
    _ name: String, diskFullIsFatal: Bool, _ body: () throws(SystemError) -> Void
  ) throws(EngineError) {
    do throws(SystemError) { try body() } catch {
      if error.isNoSpace, !diskFullIsFatal { throw .noSpace }
      throw .failed("\(folder.path): \(name): \(error)")
    }
  }

  // MARK: Checkpoints

  /// Writes and removes the files of that many pending keys.
  func checkpoint(limit: Int = .max) throws(SystemError) {
    // A file must never be newer than what the log is certain to have on disk.
    try writeAheadLog.sync()
    let keys = pending.keys(limit: limit)
    // Deletions come first, because they free space for the rest.
    let deleted = keys.filter { pending.isDelete($0) }
    for key in deleted { index.remove(key) }
    try removeObsoleteFiles(of: deleted)
    let written = keys.filter { !pending.isDelete($0) }
    for key in written {
      if let (put, checksum) = pending.put(of: key) { try write(key, put, checksum) }
    }
    if !written.isEmpty { try folder.sync() }
    // The log has the new values, so the old files may be removed in any order. A reader of the folder always finds one
    // of the two.
    try removeObsoleteFiles(of: written)
    for key in keys { pending.forget(key) }
  }

  /// Writes more files than the last commits have added. Under a load that leaves no time for maintenance, nothing is
  /// then pending when the log is full, and no commit waits for all files at once. On a full disk the files stay
  /// pending.
  private func checkpointAhead(of operationCount: Int) throws(SystemError) {
    do throws(SystemError) {
      try checkpoint(limit: 2 * operationCount + Self.filesPerStep)
      try resetLogIfCheckpointed()
    } catch {
      guard error.isNoSpace else { throw error }
    }
  }

  /// Resets the log if nothing is pending.
  private func resetLogIfCheckpointed() throws(SystemError) {
    guard pending.isEmpty, !writeAheadLog.isEmpty else { return }
    try folder.sync()
    try writeAheadLog.reset(after: writeAheadLog.lastRevision)
  }

  private func write(_ key: [UInt8], _ put: PendingOperations.Put, _ checksum: UInt32) throws(SystemError) {
    let name = EntryName(of: key)
    let value = try writeAheadLog.value(at: put.value, checksum: checksum)
    if name.isDigest { try writeKeyFile(key, name) }
    let version = unsafe value.withBytes { value in
      unsafe EntryVersion(of: name, isList: put.kind == .list, revision: put.revision, expiry: put.expiry, value: value)
    }
    try folder.write(version.fileName(name), value)
    // Do this at once: if a later step fails, the next replacement or deletion of the entry must know this file.
    index.set(key, version)
  }

  /// Writes the file with the key. It is on disk before the entry's file, and never changes.
  private func writeKeyFile(_ key: [UInt8], _ name: EntryName) throws(SystemError) {
    if index.contains(key) { return }
    try folder.write(name.keyFileName, key)
  }

  private func removeObsoleteFiles(of keys: [[UInt8]]) throws(SystemError) {
    for key in keys {
      for fileName in index.obsoleteFileNames(of: key) { try folder.removeIfPresent(fileName) }
      let name = EntryName(of: key)
      if name.isDigest, !index.contains(key) { try folder.removeIfPresent(name.keyFileName) }
      index.forgetObsoleteFiles(of: key)
    }
  }

  // MARK: Opening

  /// Opens the store in an existing folder, reads its entries into an empty map, and completes what a crash has
  /// interrupted. The caller ensures that no other process has it open (`DataDirectory`, `FileLock`).
  ///
  /// - Parameters:
  ///   - logByteCount: The size of a new write-ahead log; tests use small ones.
  ///   - progress: Called repeatedly with how many entries have been read, and of how many.
  /// - Throws: `DirectoryError`, with nothing changed in the folder, unless a call failed that changes something.
  package static func open(
    _ path: String, on fileSystem: any FileSystem, logByteCount: Int = WriteAheadLog.initialByteCount,
    progress: (Int, Int) -> Void = { _, _ in }, into map: inout EntryMap, at now: ClockReading = .now
  ) throws(DirectoryError) -> (engine: DirectoryEngine, report: DirectoryReport) {
    let folder = DirectoryFolder(fileSystem: fileSystem, path: path)
    let scan = try scan(folder, progress, into: &map, at: now)
    for issue in scan.report.issues {
      if case .unreadable(let reason) = issue.kind {
        throw .unreadable(path: folder.path(issue.name), reason: reason)
      }
    }
    map.revision = max(map.revision, scan.report.revision)
    do throws(SystemError) {
      let writeAheadLog = try openLog(of: scan, in: folder, logByteCount)
      for name in scan.leftovers { try folder.removeIfPresent(name) }
      var pending = scan.pending
      pending.expandDeleteAll(scan.index.keys)
      let engine = DirectoryEngine(folder, writeAheadLog, pending: pending, index: scan.index)
      try engine.recover(after: scan.report.revision)
      return (engine, scan.report)
    } catch {
      throw .system(path: path, error)
    }
  }

  private static func scan(
    _ folder: DirectoryFolder, _ progress: (Int, Int) -> Void, into map: inout EntryMap, at now: ClockReading
  ) throws(DirectoryError) -> DirectoryScan {
    try DirectoryScan(folder, wall: now.wall, progress: progress) { (key, entry, value) throws(DirectoryError) in
      let expiry = entry.expiry == 0 ? 0 : now.monotonic(ofWall: entry.expiry)
      do throws(StorageError) {
        unsafe try map.put(
          key.span.bytes, value.span.bytes, kind: entry.kind, expiry: expiry, revision: entry.revision)
      } catch {
        throw .storage(error)
      }
    }
  }

  private static func openLog(
    of scan: DirectoryScan, in folder: DirectoryFolder, _ byteCount: Int
  ) throws(SystemError) -> WriteAheadLog {
    guard let contents = scan.log else {
      return try .make(in: folder, after: scan.report.revision, byteCount: byteCount)
    }
    return WriteAheadLog(try folder.open(WriteAheadLog.name, .writing), continuing: contents)
  }

  /// Makes the files match the log and resets the log, so that nothing a crash left in it is ever read again. On a full
  /// disk, the files stay pending and the log continues.
  private func recover(after revision: UInt64) throws(SystemError) {
    do throws(SystemError) {
      try checkpoint()
      try folder.sync()
      try writeAheadLog.reset(after: revision)
    } catch {
      guard error.isNoSpace else { throw error }
      try writeAheadLog.clearRest()
    }
    publishFigures()
  }
}

extension DirectoryEngine: FileEngine {
  static func openStore(
    in path: String, on files: any FileSystem, at now: ClockReading, into map: inout EntryMap,
    progress: (Int, Int) -> Void
  ) throws -> (engine: any Engine, remarks: [String]) {
    let (engine, report) = try open(path, on: files, progress: progress, into: &map, at: now)
    return (engine, report.issues.map(\.description))
  }

  static func recognizes(fileNames: [String]) -> Bool { fileNames.contains(WriteAheadLog.name) }

  static func checkStore(
    in path: String, on files: any FileSystem, progress: (Int) -> Void
  ) throws -> StoreReport.Files {
    StoreReport.Files(try DirectoryCheck.run(path, on: files, progress: progress), in: path)
  }

  static func salvageStore(
    in path: String, to target: String, on files: any FileSystem, progress: (Int) -> Void
  ) throws -> (files: StoreReport.Files, salvage: StoreReport.SalvageSummary) {
    let report = try DirectoryCheck.salvage(path, to: target, on: files, progress: progress)
    return (
      StoreReport.Files(report, in: path), .init(copied: report.entries, lostEntries: report.lostEntryCount)
    )
  }
}

/// The folder of a directory store, and the names in it that don't belong to an entry.
struct DirectoryFolder: Sendable {
  /// The lock file of a folder outside a data directory. A process locks it before it opens the folder.
  static let lockName = ".lock"
  /// The name of a file while it is being written. One thread writes, so there is only one.
  static let temporaryName = ".new"

  private let fileSystem: any FileSystem
  let path: String

  init(fileSystem: any FileSystem, path: String) {
    self.fileSystem = fileSystem
    self.path = path
  }

  func path(_ name: String) -> String { path + "/" + name }

  /// Returns the names of everything in the folder.
  func names() throws(SystemError) -> [String] { try fileSystem.list(path) }

  /// Returns whether there is a regular file with that name.
  func isFile(_ name: String) throws(SystemError) -> Bool {
    if case .file? = try fileSystem.kind(of: path(name)) { true } else { false }
  }

  func open(_ name: String, _ access: FileAccess) throws(SystemError) -> any File {
    try fileSystem.open(path(name), access)
  }

  /// Writes a file atomically.
  func write(_ name: String, _ bytes: [UInt8]) throws(SystemError) {
    try fileSystem.writeFileAtomically(path(name), through: path(Self.temporaryName), bytes)
  }

  /// Creates a temporary file, which `publishTemporaryFile` gives its name.
  func createTemporaryFile() throws(SystemError) -> any File {
    let temporary = path(Self.temporaryName)
    if try fileSystem.kind(of: temporary) != nil { try fileSystem.remove(temporary) }
    return try fileSystem.open(temporary, .creating)
  }

  func publishTemporaryFile(as name: String) throws(SystemError) {
    try fileSystem.rename(path(Self.temporaryName), to: path(name))
    try sync()
  }

  /// Puts the names in the folder on disk.
  func sync() throws(SystemError) { try fileSystem.syncFolder(path) }

  /// Removes a file. Anything that isn't a file stays, because someone else put it there.
  func removeIfPresent(_ name: String) throws(SystemError) {
    if try isFile(name) { try fileSystem.remove(path(name)) }
  }
}
