import EntryFiles
import Platform

/// Writes the entries' files of a directory store after its journals have the commits, in bounded steps, and removes the
/// journals that are no longer needed.
///
/// Every step can be interrupted and repeated: a pending operation is forgotten only when its file is on disk, and a
/// journal is removed only when none of its operations is pending. Each step is lasting progress, because another start
/// needs only what is still pending.
///
/// Safe because one thread at a time uses it: the one that opens the store, then the settling thread, and after that
/// the one that closes the store. Everything that the commit thread needs of it is in the exchange.
final class DirectorySettler: @unchecked Sendable {
  /// What to do after a step.
  enum Next: Equatable {
    case step
    /// Wait for that many milliseconds, or for commits.
    case wait(UInt64)
  }

  /// How long to wait, in milliseconds, so that files are written when commits leave time for it.
  struct Pace {
    /// After a commit, until the files of the current journal's entries are written. The files of earlier journals
    /// don't wait.
    let quiet: UInt64
    /// After the last commit, until another journal takes the place of the current one, which is then removed.
    let idle: UInt64

    static let background = Pace(quiet: 20, idle: 1_000)
    static let immediate = Pace(quiet: 0, idle: 0)
  }

  /// A journal whose frames have been read.
  private struct ReadJournal {
    let number: Int
    /// Whether the commit thread has left it, and all of it has been read.
    var isFinished: Bool
    /// The position after the last frame that was read.
    var position: UInt64
    var lastRevision: UInt64
  }

  /// The number of files that one step writes, and the number that it removes.
  private static let filesPerStep = 16
  private static let removalsPerStep = 64
  /// The number of files to write one at a time after a step has found no space.
  private static let singleFilesAfterFullDisk = 100
  /// The number of bytes of a journal that one step reads, unless a frame is larger.
  private static let bytesPerStep = 512 << 10
  /// The interval of the search for expired entries, in milliseconds.
  private static let expiryInterval: UInt64 = 60_000

  private let folder: DirectoryFolder
  private let exchange: JournalExchange
  /// The size of a new journal, if nothing needs a larger one.
  private let journalByteCount: Int
  private let pace: Pace
  private var keeper: JournalKeeper
  private var pending: PendingOperations
  private var index: DirectoryIndex
  /// The journals that are still needed, except those with unread frames only.
  private var journals: [ReadJournal]
  private var reader: JournalReader?
  /// The journal that values are read from.
  private var source: (number: Int, file: any File)?
  /// The files that a crash has left.
  private var leftovers: [String]
  private var hasUnsyncedRemovals = false
  /// Whether a step has found no space, and none since has written files or removed journals.
  private var isDiskFull = false
  /// The number of files that are still to be written one at a time.
  private var singleFileCount = 0
  /// Whether the journal that the commit thread wants waits for the removal of others.
  private var isJournalDelayed = false
  private var nextExpiry: UInt64 = 0

  init(
    _ folder: DirectoryFolder, _ keeper: JournalKeeper, _ scan: DirectoryScan, _ exchange: JournalExchange,
    journalByteCount: Int, pace: Pace
  ) throws(SystemError) {
    (self.folder, self.keeper, self.exchange) = (folder, keeper, exchange)
    (self.journalByteCount, self.pace) = (journalByteCount, pace)
    (pending, index, leftovers) = (scan.journals.pending, scan.index, scan.leftovers)
    journals = scan.journals.journals.map {
      ReadJournal(
        number: $0.header.number, isFinished: true, position: $0.position, lastRevision: $0.lastRevision)
    }
    if let current = exchange.progress.current, let found = scan.journals.journals.last,
      found.header.number == current.number
    {
      // The disk is full, and the last journal is continued.
      journals[journals.count - 1].isFinished = false
      reader = try JournalReader(current.number, in: folder, from: found.end, position: found.position)
    }
    publishFigures()
  }

  /// Does the next piece of work.
  /// - Parameters:
  ///   - wall: The time in milliseconds since 1970.
  ///   - now: The time of the monotonic clock.
  func step(at wall: UInt64, now: UInt64 = monotonicMilliseconds()) throws(SystemError) -> Next {
    defer { publishFigures() }
    do throws(SystemError) { return try doNextStep(at: wall, now: now) } catch {
      if error.isNoSpace { (isDiskFull, singleFileCount) = (true, Self.singleFilesAfterFullDisk) }
      throw error
    }
  }

  private func doNextStep(at wall: UInt64, now: UInt64) throws(SystemError) -> Next {
    try makeRequestedJournal()
    if !leftovers.isEmpty {
      try removeLeftovers()
      return .step
    }
    if wall >= nextExpiry {
      nextExpiry = wall + Self.expiryInterval
      for key in index.expired(at: wall) { pending.deleteUnlessPending(key) }
    }
    let progress = exchange.progress
    if let finished = progress.finished.first {
      if try read(finished.number, to: finished.end) {
        journals[journals.count - 1].isFinished = true
        exchange.didRead(finished.number)
      }
      return .step
    }
    if try removeSettledJournals(progress) { return .step }
    let deleted = pending.takeDeletes(limit: Self.removalsPerStep)
    if !deleted.isEmpty {
      try carryOut(deleted) { () throws(SystemError) in try delete(deleted) }
      return .step
    }
    let quiet = now - min(now, progress.lastAppend)
    if pending.isEmpty || isDiskFull, quiet >= pace.quiet, let current = progress.current, unreadCount(of: current) > 0
    {
      _ = try read(current.number, to: current.end)
      return .step
    }
    // An entry's old file is removed after the new one has been written, so one at a time needs the least space.
    let put = pending.takePuts(limit: singleFileCount > 0 ? 1 : Self.filesPerStep)
    if !put.isEmpty {
      try carryOut(put) { () throws(SystemError) in try write(put) }
      (isDiskFull, singleFileCount) = (false, max(0, singleFileCount - 1))
      return .step
    }
    guard let current = progress.current, current.end > Journal.start else { return .wait(Self.expiryInterval) }
    if unreadCount(of: current) > 0 { return .wait(pace.quiet - min(quiet, pace.quiet)) }
    return try leave(current, quiet)
  }

  /// Whether every commit that the settling thread has received has its files.
  private var isSettled: Bool {
    let progress = exchange.progress
    return pending.isEmpty && progress.finished.isEmpty && progress.current.map { unreadCount(of: $0) == 0 } ?? true
  }

  /// Makes the commit thread leave a journal all of whose entries have their files.
  private func leave(_ current: (number: Int, end: Int), _ quiet: UInt64) throws(SystemError) -> Next {
    guard quiet >= pace.idle else { return .wait(pace.idle - quiet) }
    exchange.didSettle(current.number, endingAt: current.end)
    if !exchange.hasNextJournal {
      exchange.answer(.journal(try keeper.makeJournal(byteCount: journalByteCount)))
    }
    return .wait(Self.expiryInterval)
  }

  // MARK: Journals

  /// Creates the journal that the commit thread wants. The more files wait, the larger it is, so that commits rarely
  /// have to wait for another one. If there is no space for it, the commit thread waits as long as settling can make
  /// some by removing journals.
  private func makeRequestedJournal() throws(SystemError) {
    guard let requested = exchange.requestedByteCount else { return }
    let progress = exchange.progress
    let canMakeSpace = !isDiskFull && (!progress.finished.isEmpty || journals.contains { $0.isFinished })
    guard !isJournalDelayed || !canMakeSpace else { return }
    let waiting = Int(clamping: progress.position - keeper.list.start)
    let byteCount = max(requested, min(Journal.largeByteCount, waiting))
    // What the entries' files need is limited, and so is what a start has to read.
    guard waiting + byteCount <= Journal.maxByteCount || journals.count <= 1 else {
      if isDiskFull { exchange.answer(.noSpace) }
      return
    }
    var journal = try makeJournal(byteCount: byteCount)
    if journal == nil, !canMakeSpace, requested < byteCount { journal = try makeJournal(byteCount: requested) }
    isJournalDelayed = journal == nil && canMakeSpace
    if let journal {
      exchange.answer(.journal(journal))
    } else if !canMakeSpace {
      exchange.answer(.noSpace)
    }
  }

  /// Creates a journal.
  /// - Returns: Nil if there is no space for it.
  private func makeJournal(byteCount: Int) throws(SystemError) -> JournalFile? {
    do throws(SystemError) { return try keeper.makeJournal(byteCount: byteCount) } catch {
      guard error.isNoSpace else { throw error }
      return nil
    }
  }

  private func unreadCount(of journal: (number: Int, end: Int)) -> Int {
    journal.end - (reader?.number == journal.number ? reader?.end ?? 0 : Journal.start)
  }

  /// Reads frames of a journal, which are all valid.
  /// - Returns: Whether all were read up to that end.
  private func read(_ number: Int, to end: Int) throws(SystemError) -> Bool {
    if reader?.number != number {
      let position = journals.last?.position ?? keeper.list.start
      reader = try JournalReader(number, in: folder, position: position)
      journals.append(
        ReadJournal(
          number: number, isFinished: false, position: position,
          lastRevision: journals.last?.lastRevision ?? keeper.list.revision))
    }
    guard var reader else { return true }
    // A file must never be newer than what the journal is certain to have on disk.
    let last = journals.count - 1
    if exchange.synced < reader.position + UInt64(end - reader.end) {
      try reader.sync()
      // If another thread's sync has failed before the reader opened the file, this one proves nothing.
      guard exchange.failure == nil else { throw SystemError("fdatasync", errno: 5) }
      exchange.didSync(to: reader.position + UInt64(end - reader.end))
    }
    let revision = try reader.read(to: end, limit: Self.bytesPerStep, into: &pending)
    pending.expandDeleteAll(index.keys)
    self.reader = reader
    (journals[last].position, journals[last].lastRevision) = (
      reader.position, max(journals[last].lastRevision, revision)
    )
    return reader.end == end
  }

  /// Removes the first journals if none of their operations is pending.
  /// - Returns: Whether there were any.
  private func removeSettledJournals(_ progress: JournalExchange.Progress) throws(SystemError) -> Bool {
    let settled = journals.prefix { $0.isFinished && !pending.needs($0.number) }
    guard let last = settled.last else { return false }
    if hasUnsyncedRemovals {
      try folder.sync()
      hasUnsyncedRemovals = false
    }
    journals.removeFirst(settled.count)
    let next = journals.first?.number ?? progress.current?.number ?? last.number + 1
    source = nil
    try keeper.removeFirst(before: next, start: last.position, revision: last.lastRevision)
    (isDiskFull, isJournalDelayed) = (false, false)
    return true
  }

  // MARK: Files

  /// Carries out the operations of keys, and puts back those that fail.
  private func carryOut(_ keys: [[UInt8]], _ body: () throws(SystemError) -> Void) throws(SystemError) {
    do throws(SystemError) { try body() } catch {
      pending.putBack(keys)
      throw error
    }
  }

  private func removeLeftovers() throws(SystemError) {
    hasUnsyncedRemovals = true
    for name in leftovers.suffix(Self.removalsPerStep) { try folder.removeIfPresent(name) }
    leftovers.removeLast(min(Self.removalsPerStep, leftovers.count))
    guard leftovers.isEmpty else { return }
    // An older file of an entry must not come back when the entry expires, which no journal knows.
    try folder.sync()
    hasUnsyncedRemovals = false
  }

  private func delete(_ keys: [[UInt8]]) throws(SystemError) {
    for key in keys { index.remove(key) }
    try removeObsoleteFiles(of: keys)
    for key in keys { pending.forget(key) }
  }

  private func write(_ keys: [[UInt8]]) throws(SystemError) {
    try writeKeyFiles(of: keys)
    for (count, key) in keys.enumerated() {
      // Commits may wait for a journal.
      try makeRequestedJournal()
      guard let put = pending.put(of: key) else { continue }
      do throws(SystemError) { try write(key, put) } catch {
        if error.isNoSpace { try finish(keys.prefix(count)) }
        throw error
      }
    }
    try finish(keys[...])
  }

  /// Makes the new files of keys durable, and removes the old ones.
  private func finish(_ keys: ArraySlice<[UInt8]>) throws(SystemError) {
    try folder.sync()
    hasUnsyncedRemovals = false
    // The new files are on disk, so the old ones may be removed in any order. A reader of the folder always finds one of
    // the two.
    try removeObsoleteFiles(of: keys)
    for key in keys { pending.forget(key) }
  }

  private func write(_ key: [UInt8], _ put: PendingOperations.Put) throws(SystemError) {
    let name = EntryName(of: key)
    let value = try value(of: put)
    let version = unsafe value.withBytes { value in
      unsafe EntryVersion(of: name, isList: put.kind == .list, revision: put.revision, expiry: put.expiry, value: value)
    }
    try folder.write(version.fileName(name), value)
    // Do this at once: if a later step fails, the next replacement or deletion of the entry must know this file.
    index.set(key, version)
  }

  /// Reads a value back that was verified before.
  /// - Throws: If the value has changed since.
  private func value(of put: PendingOperations.Put) throws(SystemError) -> [UInt8] {
    let name = Journal.name(put.journal)
    if source?.number != put.journal { source = (put.journal, try folder.open(name, .reading)) }
    guard let file = source?.file else { preconditionFailure() }
    let value = try file.bytes(at: put.value.lowerBound, count: put.value.count)
    guard value.count == put.value.count, value.checksum() == put.checksum else {
      throw SystemError("\(name) is damaged at byte \(put.value.lowerBound)", errno: 5)
    }
    return value
  }

  /// Writes the files with the keys of new entries whose names are digests. They are on disk before the entries' files,
  /// and never change.
  private func writeKeyFiles(of keys: [[UInt8]]) throws(SystemError) {
    let names = keys.filter { !index.contains($0) }.map { ($0, EntryName(of: $0)) }.filter { $0.1.isDigest }
    for (key, name) in names { try folder.write(name.keyFileName, key) }
    if !names.isEmpty { try folder.sync() }
  }

  private func removeObsoleteFiles(of keys: some Collection<[UInt8]>) throws(SystemError) {
    var keyFiles: [String] = []
    for key in keys {
      for fileName in index.obsoleteFileNames(of: key) {
        hasUnsyncedRemovals = true
        try folder.removeIfPresent(fileName)
      }
      let name = EntryName(of: key)
      if name.isDigest, !index.contains(key) { keyFiles.append(name.keyFileName) }
    }
    if !keyFiles.isEmpty {
      // The key of an entry's file must not be gone before the file is.
      try folder.sync()
      hasUnsyncedRemovals = true
      for name in keyFiles { try folder.removeIfPresent(name) }
    }
    for key in keys { index.forgetObsoleteFiles(of: key) }
  }

  // MARK: The end

  /// Records where the frames end; all of them are on disk. Removes the journals if every entry has its file.
  func close() throws(SystemError) {
    let progress = exchange.progress
    if isSettled {
      if hasUnsyncedRemovals { try folder.sync() }
      let revision = journals.last?.lastRevision ?? keeper.list.revision
      try keeper.removeFirst(before: keeper.list.numbers.upperBound, start: progress.position, revision: revision)
    }
    try keeper.close(at: progress.position)
  }

  private func publishFigures() {
    let progress = exchange.progress
    let unread = progress.finished.count + (progress.current.map { unreadCount(of: $0) > 0 ? 1 : 0 } ?? 0)
    exchange.figures = [
      (name: "directory_journal_bytes", value: progress.position - keeper.list.start),
      (name: "directory_journal_capacity_bytes", value: UInt64(keeper.capacity)),
      (name: "directory_files_waiting", value: UInt64(pending.count + unread)),
      (name: "directory_files", value: UInt64(index.count)),
    ]
  }
}
