import EntryFiles
import Platform

/// The engine `directory`: keeps the entries of a store in a folder, one file each (Protocol/directory-format.md).
///
/// A commit is durable once a journal has it. `JournalWriter` writes it there on the store's commit thread, which uses
/// the engine and does nothing else. `DirectorySettler` writes the entries' files on a thread of its own, and creates
/// and removes journals; the two threads share a `JournalExchange`.
package final class DirectoryEngine: Engine {
  private let folder: DirectoryFolder
  private let exchange: JournalExchange
  private var writer: JournalWriter
  private let settler: DirectorySettler
  /// Runs the settler; nil if `performMaintenance` does.
  private let thread: SettlingThread?
  /// The size of a new journal, if nothing needs a larger one.
  private let journalByteCount: Int
  /// Whether a caller waits for a journal that was requested.
  package private(set) var isReservingSpace = false
  /// A journal to leave if it still ends there when there is a next one, because all of its entries have their files.
  private var settled: (number: Int, end: Int)?
  /// Whether all the space of the next journal was reported as available and nothing was written since.
  private var isNextJournalAvailable = false

  private init(
    _ folder: DirectoryFolder, _ exchange: JournalExchange, writer: JournalWriter, settler: DirectorySettler,
    thread: SettlingThread?, journalByteCount: Int
  ) {
    (self.folder, self.exchange, self.writer) = (folder, exchange, writer)
    (self.settler, self.thread, self.journalByteCount) = (settler, thread, journalByteCount)
  }

  package var reservedByteCount: Int { writer.availableByteCount }

  /// Requests the next journal from the settling thread; a larger one, if the whole next one isn't enough. The context
  /// of `performMaintenance` is notified when there is one.
  package func reserveSpace() throws(EngineError) {
    try checkSettling()
    if isReservingSpace {
      guard let answer = exchange.takeAnswer() else { return }
      isReservingSpace = false
      switch answer {
      case .noSpace: throw .noSpace
      case .journal(let journal): writer.accept(journal)
      }
    } else {
      acceptJournal()
      let nextCapacity = writer.nextCapacity ?? 0
      if nextCapacity == 0 || isNextJournalAvailable {
        guard nextCapacity < Journal.maxByteCount else { throw .noSpace }
        request(byteCount: min(Journal.maxByteCount, max(2 * nextCapacity, journalByteCount)))
        isReservingSpace = true
        return
      }
    }
    isNextJournalAvailable = true
  }

  private func request(byteCount: Int) {
    exchange.request(byteCount: byteCount)
    thread?.wakeNow()
  }

  /// Accepts what the settling thread has made.
  private func acceptJournal() {
    guard !isReservingSpace else { return }
    if case .journal(let journal)? = exchange.takeAnswer() { writer.accept(journal) }
    if let settled = exchange.takeSettled() { self.settled = settled }
  }

  package var hasUnneededSpace: Bool { settled != nil && writer.nextCapacity != nil }

  /// Continues in the next journal, which may be smaller.
  package func releaseSpace() {
    if let settled { writer.leave(settled.number, endingAt: settled.end) }
    settled = nil
  }

  private func checkSettling() throws(EngineError) {
    if let failure = exchange.failure { throw failure }
  }

  package func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [ValueLocation] {
    guard records.count > 0 else { return [] }
    try checkSettling()
    acceptJournal()
    isNextJournalAvailable = false
    try attempt { () throws(SystemError) in
      unsafe try writer.append(records)
      if syncs { try writer.sync() }
    }
    // A journal for the commits to come, before they need it.
    if writer.nextCapacity == nil, writer.isHalfFull, !exchange.isJournalComing { request(byteCount: journalByteCount) }
    return []
  }

  /// Begins to sync the journals, unless the engine has no threads of its own. Commits don't wait for it.
  package func sync() throws(EngineError) {
    try checkSettling()
    guard let thread else { return try attempt { () throws(SystemError) in try writer.sync() } }
    let (files, position) = writer.takeUnsynced()
    thread.sync(files, to: position)
  }

  package func performMaintenance(_ context: any MaintenanceContext) throws(EngineError) -> Bool {
    guard let thread else { return try performMaintenance(at: wallMilliseconds()) }
    exchange.setContext(context)
    try checkSettling()
    acceptJournal()
    thread.wake()
    return false
  }

  /// Does one step of the settling thread's work on this one, for an engine without that thread, whose caller reserves
  /// space before each commit. On a full disk, files stay pending.
  /// - Returns: Whether there is more to do.
  package func performMaintenance(at wall: UInt64) throws(EngineError) -> Bool {
    acceptJournal()
    do throws(SystemError) {
      let next = try settler.step(at: wall)
      let hadResult = exchange.hasResult
      acceptJournal()
      releaseSpace()
      return next == .step || hadResult
    } catch {
      if error.isNoSpace { return false }
      throw .failed("\(folder.path): \(error)")
    }
  }

  package func stopBackgroundWork() { thread?.stop() }

  package func close() throws(EngineError) {
    thread?.waitForSyncs()
    try checkSettling()
    try attempt { () throws(SystemError) in
      try writer.sync()
      try settler.close()
    }
  }

  package var figures: [(name: String, value: UInt64)] { exchange.figures }

  private func attempt(_ body: () throws(SystemError) -> Void) throws(EngineError) {
    do throws(SystemError) { try body() } catch {
      let failure = EngineError.failed("\(folder.path): \(error)")
      // The settling thread must not take for durable what a failed sync has lost.
      exchange.fail(failure)
      throw failure
    }
  }

  // MARK: Opening

  /// Opens the store in an existing folder, reads its entries into an empty map, and completes what a crash has
  /// interrupted. The caller ensures that no other process has it open (`DataDirectory`, `FileLock`).
  ///
  /// - Parameters:
  ///   - journalByteCount: The size of a new journal; tests use small ones.
  ///   - settlesInBackground: Whether a thread of its own writes the entries' files. Otherwise `performMaintenance` does.
  ///   - progress: Called repeatedly with how many entries have been read, and of how many.
  /// - Throws: `DirectoryError`, with nothing changed in the folder, unless a call failed that changes something.
  package static func open(
    _ path: String, on fileSystem: any FileSystem, journalByteCount: Int = Journal.initialByteCount,
    settlesInBackground: Bool = false, progress: (Int, Int) -> Void = { _, _ in }, into map: inout EntryMap,
    at now: ClockReading = .now
  ) throws(DirectoryError) -> (engine: DirectoryEngine, report: DirectoryReport) {
    let folder = DirectoryFolder(fileSystem: fileSystem, path: path)
    let scan = try scan(folder, progress, into: &map, at: now)
    for issue in scan.report.issues {
      if case .unreadable(let reason) = issue.kind {
        throw .unreadable(path: folder.path(issue.name), reason: reason)
      }
    }
    map.revisions.advance(to: scan.report.revision)
    do throws(SystemError) {
      let engine = try DirectoryEngine(folder, scan, journalByteCount, settlesInBackground: settlesInBackground)
      return (engine, scan.report)
    } catch {
      throw .system(path: path, error)
    }
  }

  /// Makes the names in the folder, the list and the commits in the journals durable, which an earlier process may have
  /// written and not synced. Then starts a new journal, so that nothing is ever appended to what a crash has left. The
  /// entries' files are written later.
  private convenience init(
    _ folder: DirectoryFolder, _ scan: DirectoryScan, _ journalByteCount: Int, settlesInBackground: Bool
  ) throws(SystemError) {
    let found = scan.journals
    try folder.sync()
    var keeper: JournalKeeper
    if let list = found.list {
      keeper = try JournalKeeper(folder, list, found.journals)
      try keeper.renewList()
    } else {
      keeper = try JournalKeeper.make(in: folder, continuing: found.journals.first, revision: scan.report.revision)
    }
    keeper.raise(scan.report.revision)
    for journal in found.journals where journal.end > Journal.start {
      let file = try folder.open(Journal.name(journal.header.number), .writing)
      try file.rewrite(found.unsynced(journal))
      try file.sync()
    }
    for name in found.unlisted + [DirectoryFolder.temporaryJournalName] { try folder.removeIfPresent(name) }
    let current: JournalFile?
    do throws(SystemError) {
      current = try keeper.makeJournal(byteCount: journalByteCount)
    } catch {
      // A new store without space for a single commit is of no use.
      guard error.isNoSpace, !found.isEmpty else { throw error }
      current = try keeper.continueLastJournal(found.journals.last)
    }
    let position = found.list == nil && found.journals.isEmpty ? keeper.list.start : found.position
    let exchange = JournalExchange(current, position: position, notingIn: keeper.syncedPosition)
    let settler = try DirectorySettler(
      folder, keeper, scan, exchange, journalByteCount: journalByteCount,
      pace: settlesInBackground ? .background : .immediate)
    self.init(
      folder, exchange, writer: JournalWriter(current, position: position, exchange: exchange), settler: settler,
      thread: settlesInBackground ? SettlingThread(settler, exchange, path: folder.path) : nil,
      journalByteCount: journalByteCount)
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
}

extension DirectoryEngine: FileEngine {
  static func openStore(
    in path: String, on files: any FileSystem, at now: ClockReading, into map: inout EntryMap,
    progress: (Int, Int) -> Void
  ) throws -> (engine: any Engine, remarks: [String]) {
    let (engine, report) = try open(
      path, on: files, settlesInBackground: true, progress: progress, into: &map, at: now)
    return (engine, report.issues.map(\.description))
  }

  static func checkVersion(in path: String, on files: any FileSystem) throws {
    let folder = DirectoryFolder(fileSystem: files, path: path)
    for name in try folder.names() where Journal.isJournalOrList(name) {
      let start = try folder.open(name, .reading).bytes(at: 0, count: Journal.start)
      let isLater =
        name == Journal.listName ? JournalList.isOfLaterVersion(start) : JournalHeader.isOfLaterVersion(start)
      if isLater { throw DirectoryError.laterVersion(path: folder.path(name)) }
    }
  }

  static func recognizes(fileNames: [String]) -> Bool {
    fileNames.contains { $0 == Journal.listName || $0 == DirectoryFolder.markerName || Journal.isName($0) }
  }

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
