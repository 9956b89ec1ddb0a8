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
    case laterVersion
    case system(SystemError)
  }

  /// Frames that can't be read, between others that can.
  struct Gap {
    /// The last revision before the gap, and the first one after it; nil if there are no frames after it.
    let previous: UInt64
    let next: UInt64?
    /// The number of lost operations, as far as it is known.
    let operationCount: Int
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
  /// The position that the frames reached when the list, or the note of a sync, was written; nil if it is unknown.
  private var requiredEnd: UInt64?
  /// Where the frames end.
  private var frontier = (name: Journal.listName, offset: 0)
  /// The name of the only journal in version 2; nil in version 3.
  private var version2Name: String?
  /// Whether the list may be an older one, because its other copy is invalid.
  private var isListDoubtful = false
  /// The last revision of the frames that were read; 0 if there are none.
  private var lastFrameRevision: UInt64 = 0
  /// In damaged journals, what is lost between the frames that were read, in order.
  private(set) var gaps: [Gap] = []

  /// - Parameters:
  ///   - names: The names in the folder.
  ///   - skipsDamage: Whether to go on at the next intact frame if a journal or the list is damaged.
  ///   - progress: Called after each journal.
  init(_ folder: DirectoryFolder, names: [String], skipsDamage: Bool = false, progress: () -> Void = {}) {
    let files = Set(names.filter(Journal.isName))
    if names.contains(Journal.listName) {
      readList(folder, files, progress)
    } else if files == [Journal.name(0)] {
      // The change from version 2 to version 3 was interrupted.
      readVersion2(Journal.name(0), folder)
    } else if !files.isEmpty || names.contains(DirectoryFolder.markerName) {
      fail(Journal.listName, at: 0, "it is missing, although a server has opened this folder")
    }
    if skipsDamage, !isIntact { readIntactFrames(folder, files, progress) }
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

  /// Returns the index of the gap that may have a commit with this revision; nil if none may. O(log n).
  func gap(containing revision: UInt64) -> Int? {
    var range = gaps.indices
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      if revision <= gaps[middle].previous {
        range = range.lowerBound..<middle
      } else if let next = gaps[middle].next, revision >= next {
        range = middle + 1..<range.upperBound
      } else {
        return middle
      }
    }
    return nil
  }

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
    if JournalList.isOfLaterVersion(bytes) { return problems.append((Journal.listName, .laterVersion)) }
    guard let list = JournalList(in: bytes) else {
      if JournalHeader(in: bytes, number: 0) != nil { return readVersion2(Journal.listName, folder) }
      return fail(Journal.listName, at: 0, "neither copy is valid in version 2 or 3 of the format")
    }
    (self.list, position, lastRevision) = (list, list.start, list.revision)
    isListDoubtful = JournalList.hasInvalidCopy(bytes)
    // Positions only grow, so what was noted in an earlier life holds, too.
    requiredEnd = [list.end, SyncedPosition.read(in: bytes)].compactMap(\.self).max()
    let later = files.compactMap(Journal.number).filter { $0 >= list.numbers.upperBound }.sorted()
    if let newer = later.first(where: { firstPosition($0, folder) != nil }) {
      return fail(Journal.listName, at: 0, "the list is older than \(Journal.name(newer))")
    }
    // The list may claim any number of journals: stop at the first that is missing.
    for number in list.numbers {
      let name = Journal.name(number)
      if files.contains(name) { read(name, number, folder) } else { fail(name, at: 0, "it is missing") }
      guard isIntact else { return }
      progress()
    }
    unlisted = files.filter { Journal.number($0).map(list.numbers.contains) != true }.sorted()
    if let end = requiredEnd, position < end {
      let count = end - position
      fail(frontier.name, at: frontier.offset, "\(count) bytes of frames are missing from here on")
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

  private mutating func readVersion2(_ name: String, _ folder: DirectoryFolder) {
    version2Name = name
    read(name, 0, folder)
  }

  private mutating func read(_ name: String, _ number: Int, _ folder: DirectoryFolder) {
    do throws(SystemError) { try read(folder.open(name, .reading), name, number) } catch {
      problems.append((name, .system(error)))
    }
  }

  private mutating func read(_ file: any File, _ name: String, _ number: Int) throws(SystemError) {
    // Check this before reading all of it, because the size of the file proves nothing.
    let start = try file.bytes(at: 0, count: Journal.start)
    guard let header = JournalHeader(in: start, number: number) else {
      if JournalHeader.isOfLaterVersion(start) { return problems.append((name, .laterVersion)) }
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
        try add(frame, in: bytes, of: number)
      } catch {
        fail(name, at: frame.records.lowerBound + error.offset, error.reason)
        break
      }
      end = frame.end
      pass(frame, header)
    }
    if end > Journal.start || frontier.offset == 0 { frontier = (name, end) }
    journals.append(
      Found(
        name: name, header: header, capacity: bytes.count, end: end, position: position, lastRevision: lastRevision))
    if isIntact { scanRest(of: bytes, from: end, header, name) }
  }

  /// Adds the operations of the next frame.
  /// - Returns: Its first revision.
  @discardableResult
  private mutating func add(
    _ frame: JournalFrame, in bytes: [UInt8], of number: Int
  ) throws(CommitDamage) -> UInt64 {
    let summary = try frame.addOperations(in: bytes, of: number, after: lastFrameRevision, to: &pending)
    lastFrameRevision = summary.lastRevision
    (lastRevision, operationCount) = (max(lastRevision, lastFrameRevision), operationCount + summary.operationCount)
    return summary.firstRevision
  }

  private mutating func pass(_ frame: JournalFrame, _ header: JournalHeader) {
    position = frame.position + UInt64(frame.byteCount(header))
    synced = max(synced, frame.synced)
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
      } else if JournalFrame(in: bytes, at: offset, of: header) != nil {
        return fail(name, at: offset, "a frame has a position before the end of the frames before it")
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

// MARK: Damaged journals

extension JournalScan {
  /// The number of missing journals that are named.
  private static let namedCount = 16

  /// Reads all intact frames in order, whatever is damaged or missing between them.
  private mutating func readIntactFrames(_ folder: DirectoryFolder, _ files: Set<String>, _ progress: () -> Void) {
    (journals, pending, operationCount, tornTail) = ([], PendingOperations(), 0, nil)
    (lastFrameRevision, synced, position) = (0, 0, list?.start ?? 0)
    var names: [(number: Int, name: String)]
    var isStartKnown = false
    if let version2Name {
      (names, isStartKnown, position) = ([(0, version2Name)], true, UInt64(Journal.start))
    } else {
      let existing = files.compactMap(Journal.number).sorted()
      if let list, !hasProblem(Journal.listName) {
        let missing = list.numbers.lazy.map(Journal.name).filter { !files.contains($0) }
        for name in missing.prefix(Self.namedCount) where !hasProblem(name) { fail(name, at: 0, "it is missing") }
        names = existing.filter(list.numbers.contains).map { ($0, Journal.name($0)) }
        isStartKnown = !isListDoubtful
      } else {
        names = Self.lastConsecutive(existing).map { ($0, Journal.name($0)) }
      }
    }
    var gap: OpenGap?
    for (number, name) in names {
      do throws(SystemError) {
        try readIntactFrames(of: folder.open(name, .reading), name, number, &isStartKnown, &gap)
      } catch {
        if !hasProblem(name) { problems.append((name, .system(error))) }
      }
      progress()
    }
    if let end = requiredEnd, position < end { gap = extend(gap, byteCount: Int(clamping: end - position)) }
    guard let gap else { return }
    gaps.append(gap.closed(before: max(lastRevision, gap.previous ?? 0) + 1, isLast: true))
  }

  /// Returns the last numbers without a gap. Without their list, the journals can't be known to be complete. An
  /// interrupted removal may have left those before.
  private static func lastConsecutive(_ numbers: [Int]) -> ArraySlice<Int> {
    var first = numbers.count - 1
    while first > 0, numbers[first - 1] == numbers[first] - 1 { first -= 1 }
    return numbers.suffix(from: max(0, first))
  }

  private func hasProblem(_ name: String) -> Bool { problems.contains { $0.name == name } }

  /// - Parameters:
  ///   - isStartKnown: Whether the position is that of the next frame. Otherwise, it is only known not to be later. A
  ///     journal that begins with a zero is then one that isn't needed any more.
  ///   - gap: What is missing before the next frame.
  private mutating func readIntactFrames(
    of file: any File, _ name: String, _ number: Int, _ isStartKnown: inout Bool, _ gap: inout OpenGap?
  ) throws(SystemError) {
    guard let header = JournalHeader(in: try file.bytes(at: 0, count: Journal.start), number: number),
      try file.byteCount() <= Journal.maxByteCount
    else {
      // The first pass may have ended before this journal.
      if isStartKnown, !hasProblem(name) { fail(name, at: 0, "it is not a journal of this format") }
      return
    }
    let bytes = try file.contents()
    var end = Journal.start
    if !isStartKnown, bytes.dropFirst(end).prefix(4).allSatisfy({ $0 == 0 }) { return }
    while let (offset, frame) = nextFrame(in: bytes, from: end, header) {
      if frame.position > position, isStartKnown {
        let damaged = Array(bytes[end..<offset])
        let count = unsafe damaged.withBytes { bytes in
          unsafe DamagedRecords.operationCount(in: bytes, headerByteCount: header.frameHeaderByteCount)
        }
        gap = extend(gap, byteCount: Int(clamping: frame.position - position), operationCount: count)
        if !hasProblem(name), offset > end { fail(name, at: end, "a frame is invalid, but a later one is valid") }
      }
      do throws(CommitDamage) {
        let first = try add(frame, in: bytes, of: number)
        if let gap { gaps.append(gap.closed(before: first)) }
        gap = nil
      } catch {
        gap = extend(gap, byteCount: frame.byteCount(header))
        if !hasProblem(name) { fail(name, at: frame.records.lowerBound + error.offset, error.reason) }
      }
      (end, isStartKnown) = (frame.end, true)
      pass(frame, header)
    }
    journals.append(
      Found(
        name: name, header: header, capacity: bytes.count, end: end, position: position, lastRevision: lastRevision))
  }

  /// Returns the next intact frame of a journal that is not before the position.
  private func nextFrame(
    in bytes: [UInt8], from start: Int, _ header: JournalHeader
  ) -> (offset: Int, frame: JournalFrame)? {
    var offset = start
    while let salt = Self.nextSalt(header.salt, in: bytes, from: offset + Journal.saltOffset) {
      offset = salt - Journal.saltOffset
      if let frame = JournalFrame(in: bytes, at: offset, of: header), frame.position >= position {
        return (offset, frame)
      }
      offset += 1
    }
    return nil
  }

  private func extend(_ gap: OpenGap?, byteCount: Int, operationCount: Int = 0) -> OpenGap {
    let previous = lastFrameRevision > 0 ? lastFrameRevision : list?.revision
    var gap = gap ?? OpenGap(previous: previous)
    gap.byteCount += byteCount
    gap.operationCount += operationCount
    return gap
  }

  /// A gap whose end is not known yet.
  private struct OpenGap {
    /// The last revision before the gap; nil if it is unknown.
    let previous: UInt64?
    var byteCount = 0
    var operationCount = 0

    func closed(before next: UInt64, isLast: Bool = false) -> Gap {
      let count = DamagedRecords.lossCount(
        operationCount, after: previous ?? next, before: next, byteCount: byteCount)
      return Gap(previous: previous ?? next, next: isLast ? nil : next, operationCount: count)
    }
  }
}
