import Platform

/// The journals of a directory store, as found on disk, and the operations in them. Reading them changes nothing.
struct JournalScan {
  /// A journal that was read.
  struct Found {
    let name: String
    let header: JournalHeader
    let capacity: Int
    /// The end of the frames in it.
    let end: Int
    /// The position after its last frame.
    let position: UInt64
    /// The last revision of all journals up to here.
    let lastRevision: UInt64
  }

  /// Why a file can't be used, or no further than it was read.
  enum Problem {
    case damage(CommitDamage)
    case system(SystemError)
  }

  /// The list of the journals; nil in a folder of version 2, or that no server has opened.
  private(set) var list: JournalList?
  /// The journals, in order.
  private(set) var journals: [Found] = []
  private(set) var pending = PendingOperations()
  /// The number of operations in them.
  private(set) var operationCount = 0
  private(set) var lastRevision: UInt64 = 0
  /// The position after the last frame.
  private(set) var position: UInt64 = 0
  /// The position before which everything was on disk when the last frame was written.
  private var synced: UInt64 = 0
  /// Where a frame begins that was being written when the process or the machine ended; nil if there is none.
  private(set) var tornTail: (name: String, offset: Int)?
  /// Why the journals, or their list, can't be used; empty if they are intact.
  private(set) var problems: [(name: String, reason: Problem)] = []
  /// The files of journals that aren't needed any more.
  private(set) var unlisted: [String] = []
  /// Where the frames end.
  private var frontier = (name: Journal.listName, offset: 0)

  /// - Parameters:
  ///   - names: The names in the folder.
  ///   - progress: Called after each journal.
  init(_ folder: DirectoryFolder, names: [String], progress: () -> Void = {}) {
    let files = Set(names.filter(Journal.isName))
    if names.contains(Journal.listName) {
      readList(folder, files, progress)
    } else if files == [Journal.name(0)] {
      // The change from version 2 to version 3 was interrupted.
      read(Journal.name(0), 0, folder)
    } else if !files.isEmpty || names.contains(DirectoryFolder.markerName) {
      readWithoutList(folder, files, progress)
      fail(Journal.listName, at: 0, "it is missing, although a server has opened this folder")
    }
  }

  /// Forgets the operation on a key, because its file is written, or because damage has hidden a later operation.
  mutating func forget(_ key: [UInt8]) { pending.forget(key) }

  /// Gives a key its own deletion if the deletion of all entries applies to it.
  mutating func expandDeleteAll(of key: [UInt8]) { pending.expandDeleteAll(of: key) }

  /// Ends the deletion of all entries, when every key that exists has its own.
  mutating func endDeleteAll() { pending.expandDeleteAll([]) }

  /// Whether there is no journal, and should be none.
  var isEmpty: Bool { list == nil && journals.isEmpty && isIntact }

  var isIntact: Bool { problems.isEmpty }

  /// Returns the frames of a journal that may not be on disk yet.
  func unsynced(_ journal: Found) -> Range<Int> {
    let byteCount = Int(clamping: journal.position - min(journal.position, synced))
    return max(Journal.start, journal.end - byteCount)..<journal.end
  }

  private mutating func fail(_ name: String, at offset: Int, _ reason: String) {
    problems.append((name, .damage(CommitDamage(offset: offset, reason: reason))))
  }

  private mutating func readList(_ folder: DirectoryFolder, _ files: Set<String>, _ progress: () -> Void) {
    let bytes: [UInt8]
    do throws(SystemError) {
      bytes = try folder.open(Journal.listName, .reading).bytes(at: 0, count: SyncedPosition.end)
    } catch {
      return problems.append((Journal.listName, .system(error)))
    }
    guard let list = JournalList(in: bytes) else {
      if JournalHeader(in: bytes, number: 0) != nil { return read(Journal.listName, 0, folder) }
      readWithoutList(folder, files, progress)
      return fail(Journal.listName, at: 0, "neither copy is valid in version 2 or 3 of the format")
    }
    (self.list, position, lastRevision) = (list, list.start, list.revision)
    let later = files.compactMap(Journal.number).filter { $0 >= list.numbers.upperBound }.sorted()
    if let newer = later.first(where: { firstPosition($0, folder) != nil }) {
      readWithoutList(folder, files, progress)
      return fail(Journal.listName, at: 0, "the list is older than \(Journal.name(newer))")
    }
    for number in list.numbers where isIntact {
      let name = Journal.name(number)
      if files.contains(name) { read(name, number, folder) } else { fail(name, at: 0, "it is missing") }
      progress()
    }
    unlisted = files.subtracting(list.numbers.map(Journal.name)).sorted()
    guard isIntact else { return }
    // Positions only grow, so what was noted in an earlier life holds, too.
    if let end = [list.end, SyncedPosition.read(in: bytes)].compactMap(\.self).max(), position < end {
      let count = end - position
      fail(frontier.name, at: frontier.offset, "\(count) bytes of frames are missing from here on")
    }
  }

  /// Reads the last journals with consecutive numbers, from the first one on that has a frame, for a check: without
  /// their list, they can't be known to be complete. Those before it are kept to be used again, or an interrupted
  /// removal has left them.
  private mutating func readWithoutList(_ folder: DirectoryFolder, _ files: Set<String>, _ progress: () -> Void) {
    guard let last = files.compactMap(Journal.number).max() else { return }
    var first = last
    while files.contains(Journal.name(first - 1)) { first -= 1 }
    let numbers = (first...last).drop { firstPosition($0, folder) == nil }
    guard let number = numbers.first, let start = firstPosition(number, folder) else { return }
    position = start
    for number in numbers where isIntact {
      read(Journal.name(number), number, folder)
      progress()
    }
  }

  /// Returns the position of a journal's first frame; nil if it has none.
  private func firstPosition(_ number: Int, _ folder: DirectoryFolder) -> UInt64? {
    guard let file = try? folder.open(Journal.name(number), .reading),
      let byteCount = try? file.byteCount(), byteCount <= Journal.maxByteCount,
      let bytes = try? file.contents(), let header = JournalHeader(in: bytes, number: number)
    else { return nil }
    return JournalFrame(in: bytes, at: Journal.start, of: header)?.position
  }

  private mutating func read(_ name: String, _ number: Int, _ folder: DirectoryFolder) {
    do throws(SystemError) { try read(folder.open(name, .reading), name, number) } catch {
      problems.append((name, .system(error)))
    }
  }

  private mutating func read(_ file: any File, _ name: String, _ number: Int) throws(SystemError) {
    // Check this before reading all of it, because the size of the file proves nothing.
    guard let header = JournalHeader(in: try file.bytes(at: 0, count: Journal.start), number: number) else {
      let version = number == 0 ? 2 : 3
      return fail(name, at: 0, "neither header is valid in version \(version) of the format")
    }
    guard try file.byteCount() <= Journal.maxByteCount else {
      return fail(name, at: Journal.maxByteCount, "the file is larger than any journal")
    }
    if header.isVersion2 { (position, lastRevision) = (UInt64(Journal.start), max(lastRevision, header.base)) }
    let bytes = try file.contents()
    var end = Journal.start
    while let frame = JournalFrame(in: bytes, at: end, of: header), frame.position == position {
      do throws(CommitDamage) {
        let (last, count) = try frame.addOperations(in: bytes, of: number, to: &pending)
        (lastRevision, operationCount) = (max(lastRevision, last), operationCount + count)
      } catch {
        fail(name, at: frame.records.lowerBound + error.offset, error.reason)
        break
      }
      (end, position) = (frame.end, position + UInt64(frame.byteCount(header)))
      synced = max(synced, frame.synced)
    }
    if end > Journal.start || frontier.offset == 0 { frontier = (name, end) }
    journals.append(
      Found(
        name: name, header: header, capacity: bytes.count, end: end, position: position, lastRevision: lastRevision))
    if isIntact { scanRest(of: bytes, from: end, header, name) }
  }

  /// Searches for a valid frame after the end, which reveals whether what is invalid or missing before it had been on
  /// disk.
  private mutating func scanRest(of bytes: [UInt8], from end: Int, _ header: JournalHeader, _ name: String) {
    var offset = end
    while let salt = Self.nextSalt(header.salt, in: bytes, from: offset + Journal.saltOffset) {
      offset = salt - Journal.saltOffset
      if offset == end, tornTail == nil { tornTail = (name, end) }
      if let frame = JournalFrame(in: bytes, at: offset, of: header), frame.position >= position {
        if tornTail == nil { tornTail = (name, end) }
        guard frame.synced <= position else {
          return fail(frontier.name, at: frontier.offset, "a frame is invalid, but a later one is valid")
        }
      }
      offset += 1
    }
  }

  /// Returns the next offset of a journal's salt, which only its frames have. Most other bytes there are of clients'
  /// making; the search skips them and ignores what they claim to be.
  static func nextSalt(_ salt: UInt64, in bytes: [UInt8], from start: Int) -> Int? {
    unsafe bytes.withBytes { bytes in
      var offset = start
      while offset <= bytes.count - 8 {
        let word = unsafe bytes.integer(at: offset, as: UInt64.self)
        if word == salt { return offset }
        // The salt's lowest byte isn't zero.
        offset += word == 0 ? 8 : 1
      }
      return nil
    }
  }
}
