import Platform

/// Keeps the entries of one store in a folder, a file each (Protocol/directory-format.md).
///
/// A commit is durable once the journal has it; the entries' files follow when there is time, or when the journal is full. Used by one
/// thread at a time, the journal's; only `figures` may be read from any.
package final class DirectoryEngine: Engine {
  /// How many files are written in one piece of tidying.
  static let filesAtATime = 16
  /// How often files of entries that have expired are looked for, in milliseconds.
  static let expiryInterval: UInt64 = 60_000

  let folder: DirectoryFolder
  var journal: WriteAheadLog
  var pending: PendingOperations
  var index: DirectoryIndex
  private var nextExpiry: UInt64 = 0
  /// Whether all of the journal was offered as room, and nothing was written since.
  private var isAllOffered = false
  private let shared = Lock([(name: String, value: UInt64)]())

  init(_ folder: DirectoryFolder, _ journal: WriteAheadLog, pending: PendingOperations, index: DirectoryIndex) {
    self.folder = folder
    self.journal = journal
    self.pending = pending
    self.index = index
  }

  package var room: Int { journal.room }

  /// Empties the journal. Only for whom an empty one is too small it grows, since it never shrinks and is read whole at every open.
  package func makeRoom() throws(EngineError) {
    try call(WriteAheadLog.name, fullIsFinal: false) { () throws(SystemError) in
      if !journal.isEmpty {
        try settle()
        try startOverIfSettled()
      } else if isAllOffered {
        try journal.grow()
      }
      isAllOffered = true
    }
    publishFigures()
  }

  package func write(
    _ records: UnsafeRawBufferPointer, last: UInt64, separatedCount: Int, syncs: Bool
  ) throws(EngineError) -> [PlacedValue] {
    let byteCount = records.count
    guard byteCount > 0 else { return [] }
    isAllOffered = false
    try call(WriteAheadLog.name, fullIsFinal: true) { () throws(SystemError) in
      if !journal.fits(byteCount) {
        try settle()
        try startOverIfSettled()
      }
      while !journal.fits(byteCount) { try journal.grow() }
      let start = unsafe try journal.append(records, last: last)
      if syncs { try journal.sync() }
      let operations = unsafe note(records, at: start)
      if journal.isHalfFull { try settleAhead(of: operations) }
    }
    publishFigures()
    return []
  }

  package func sync() throws(EngineError) {
    try call(WriteAheadLog.name, fullIsFinal: true) { () throws(SystemError) in try journal.sync() }
  }

  /// Writes some of the files that wait. A full disk keeps them waiting.
  package func performMaintenance(_ store: Store) throws(EngineError) -> Bool {
    try performMaintenance(at: wallMilliseconds())
  }

  package func endWork() {}

  package func close() throws(EngineError) {}

  func performMaintenance(at wall: UInt64) throws(EngineError) -> Bool {
    if wall >= nextExpiry {
      nextExpiry = wall + Self.expiryInterval
      for key in index.expired(at: wall) where pending.operations[key] == nil { pending.operations[key] = .delete }
    }
    guard !pending.isEmpty else { return false }
    do throws(EngineError) {
      try call("files", fullIsFinal: false) { () throws(SystemError) in
        try settle(limit: Self.filesAtATime)
        try startOverIfSettled()
      }
    } catch .noSpace {
      return false
    }
    publishFigures()
    return !pending.isEmpty
  }

  package var figures: [(name: String, value: UInt64)] { shared.withLock { figures in figures } }

  func publishFigures() {
    let figures = [
      (name: "directory_journal_bytes", value: UInt64(journal.tail - WriteAheadLog.start)),
      (name: "directory_journal_capacity_bytes", value: UInt64(journal.capacity)),
      (name: "directory_files_waiting", value: UInt64(pending.operations.count)),
      (name: "directory_files", value: UInt64(index.versions.count)),
    ]
    shared.withLock { $0 = figures }
  }

  /// Remembers what the records do to the entries' files.
  /// - Returns: how many operations they have.
  private func note(_ records: UnsafeRawBufferPointer, at start: Int) -> Int {
    var reader = unsafe CommitReader(records)
    var count = 0
    do throws(CommitDamage) {
      while let operation = try reader.next() {
        pending.note(operation, at: start)
        count += 1
      }
    } catch {
      fatalError("records that were just made are damaged: \(error)")
    }
    spreadClearing()
    return count
  }

  /// Turns the deletion of all into one of every key that there is.
  func spreadClearing() {
    guard pending.clears else { return }
    for key in index.keys where pending.operations[key] == nil { pending.operations[key] = .delete }
    pending.clears = false
  }

  /// Runs calls on files and says what their failure means.
  func call(_ what: String, fullIsFinal: Bool, _ body: () throws(SystemError) -> Void) throws(EngineError) {
    do throws(SystemError) { try body() } catch {
      if error.isNoSpace, !fullIsFinal { throw .noSpace }
      throw .failed("\(folder.path): \(what): \(error)")
    }
  }
}
