import Glibc
import Platform

/// Creates and removes the journals of a directory store, and keeps the list of them.
///
/// A journal is listed before it gets its first frame, and no longer listed when its file is removed. Used by the
/// thread that opens the store, then by its settling thread, and at the end by the thread that closes it.
struct JournalKeeper {
  private let folder: DirectoryFolder
  private let listFile: any File
  private(set) var list: JournalList
  private var capacities: [Int: Int]
  /// A journal that is no longer listed, and its size. It becomes the next one, because writing to a file whose blocks
  /// have been written before is faster.
  private var spare: (name: String, capacity: Int)?

  /// Creates the list of journals of a folder that has none.
  /// - Parameters:
  ///   - version2: The only journal of a store of version 2, which is the first one in the list.
  ///   - revision: The store's revision.
  static func make(
    in folder: DirectoryFolder, continuing version2: JournalScan.Found? = nil, revision: UInt64
  ) throws(SystemError) -> JournalKeeper {
    var list = JournalList(revision: revision)
    if let version2 {
      list = JournalList(numbers: 0..<1, start: UInt64(Journal.start), revision: version2.header.base)
    }
    let file = try folder.createJournal()
    try file.write(list.fileBytes, at: 0)
    try file.sync()
    if version2?.name == Journal.listName {
      try folder.rename(Journal.listName, to: Journal.name(0))
      try folder.sync()
    }
    try folder.publishJournal(as: Journal.listName)
    return try JournalKeeper(folder, list, version2.map { [$0] } ?? [])
  }

  /// Continues with the listed journals.
  init(_ folder: DirectoryFolder, _ list: JournalList, _ journals: [JournalScan.Found]) throws(SystemError) {
    (self.folder, self.list) = (folder, list)
    listFile = try folder.open(Journal.listName, .writing)
    // A disk that is full later must have space for it. Without, the store is only without these notes.
    try? listFile.allocate(SyncedPosition.end)
    capacities = [:]
    for journal in journals { capacities[journal.header.number] = journal.capacity }
    if try !folder.isFile(DirectoryFolder.markerName) {
      _ = try folder.open(DirectoryFolder.markerName, .creating)
      try folder.sync()
    }
  }

  /// Where other threads note how far the journals are on disk.
  var syncedPosition: SyncedPosition { SyncedPosition(in: listFile) }

  /// The size of all journals.
  var capacity: Int { capacities.values.reduce(0, +) + (spare?.capacity ?? 0) }

  private mutating func writeList() throws(SystemError) {
    let (bytes, offset) = list.copy
    guard list.isValid else { throw SystemError("the list's numbers are used up", errno: EOVERFLOW) }
    do throws(SystemError) {
      try listFile.write(bytes, at: offset)
      try listFile.sync()
    } catch {
      // Its space was allocated when it was created, and it is unknown which copy is valid.
      throw error.isNoSpace ? SystemError("\(error)", errno: 5) : error
    }
  }

  /// Writes the list again. An earlier process may have written it and ended before the sync.
  mutating func renewList() throws(SystemError) {
    list.renew()
    try writeList()
  }

  /// Records with the next change that the store has assigned a revision.
  mutating func raise(_ revision: UInt64) { list.raise(revision) }

  /// Creates an empty journal, which is listed when this returns.
  mutating func makeJournal(byteCount: Int) throws(SystemError) -> JournalFile {
    let header = JournalHeader(number: list.numbers.upperBound)
    let name = Journal.name(header.number)
    let (file, capacity): (any File, Int)
    if let spare, spare.capacity >= byteCount {
      (file, capacity) = (try folder.open(spare.name, .writing), spare.capacity)
      try file.write(header.fileBytes, at: 0)
      try file.sync()
      try folder.rename(spare.name, to: name)
      self.spare = nil
      try folder.sync()
    } else {
      (file, capacity) = (try folder.createJournal(), byteCount)
      do throws(SystemError) {
        try file.write(header.fileBytes, at: 0)
        try file.allocate(byteCount)
        try file.sync()
      } catch {
        // A full disk needs the space that was allocated for nothing.
        try? folder.removeIfPresent(DirectoryFolder.temporaryJournalName)
        throw error
      }
      try folder.publishJournal(as: name)
    }
    capacities[header.number] = capacity
    list.append()
    try writeList()
    return JournalFile(number: header.number, file: file, capacity: capacity, salt: header.salt, end: Journal.start)
  }

  /// Removes the journals before that number, all of whose effects are on disk by other means.
  /// - Parameters:
  ///   - start: The position of the first frame that remains.
  ///   - revision: The store's revision before that frame.
  mutating func removeFirst(before number: Int, start: UInt64, revision: UInt64) throws(SystemError) {
    let removed = list.numbers.lowerBound..<number
    list.removeFirst(before: number, start: start, revision: revision)
    try writeList()
    for number in removed {
      let (name, capacity) = (Journal.name(number), capacities.removeValue(forKey: number) ?? 0)
      if spare == nil, number > 0, (Journal.start...Journal.largeByteCount).contains(capacity), keepSpare(name) {
        spare = (name, capacity)
      } else {
        try folder.removeIfPresent(name)
      }
    }
  }

  /// Makes a journal one without frames. Readers of the folder take a journal with a frame for one that is still needed.
  /// - Returns: Whether that has succeeded.
  private func keepSpare(_ name: String) -> Bool {
    do throws(SystemError) { try folder.open(name, .writing).write([0, 0, 0, 0], at: Journal.start) } catch {
      return false
    }
    return true
  }

  /// Continues the last journal of a store for which there is no space to create one. Everything after its frames is
  /// overwritten, so that nothing there can ever be mistaken for a frame.
  /// - Returns: nil if there is no journal, or the last one is of version 2.
  mutating func continueLastJournal(_ found: JournalScan.Found?) throws(SystemError) -> JournalFile? {
    guard let found, !found.header.isVersion2, found.header.number == list.numbers.upperBound - 1 else { return nil }
    let file = try folder.open(found.name, .writing)
    let zeroes = [UInt8](repeating: 0, count: 1 << 20)
    for offset in stride(from: found.end, to: found.capacity, by: zeroes.count) {
      try file.write(Array(zeroes[..<min(zeroes.count, found.capacity - offset)]), at: offset)
    }
    try file.sync()
    list.setEnd(nil)
    try writeList()
    return JournalFile(
      number: found.header.number, file: file, capacity: found.capacity, salt: found.header.salt, end: found.end)
  }

  /// Records where the frames end, as the proof that none is missing at the next start.
  mutating func close(at position: UInt64) throws(SystemError) {
    if let spare { try folder.removeIfPresent(spare.name) }
    list.setEnd(position)
    try writeList()
  }
}

/// A journal that frames are appended to.
struct JournalFile: Sendable {
  let number: Int
  let file: any File
  let capacity: Int
  let salt: UInt64
  /// The end of the frames.
  var end: Int

  /// The number of bytes of records that fit however they are divided into frames: a frame's header isn't much larger
  /// than the smallest record.
  var availableByteCount: Int { max(0, capacity - end) / 7 * 3 }

  func fits(_ byteCount: Int) -> Bool { Journal.frameHeaderByteCount + byteCount <= capacity - end }
}
