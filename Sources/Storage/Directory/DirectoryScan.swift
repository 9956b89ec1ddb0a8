import EntryFiles
import Platform

/// An entry that a scan has found, without its key and value.
struct VisitedEntry {
  let kind: EntryKind
  let revision: UInt64
  /// In milliseconds since 1970; 0 for never.
  let expiry: UInt64
}

/// What a scan of a directory store's folder has found: the common part of opening and checking. The scan changes
/// nothing.
///
/// It reads the journals first. A key's last operation there is newer than all of its files, because files are only
/// written from the journals.
struct DirectoryScan {
  private static let pieceByteCount = 1 << 20

  private let folder: DirectoryFolder
  /// The journals. Their operations on keys that they can't be trusted about are forgotten.
  private(set) var journals: JournalScan
  private(set) var index = DirectoryIndex()
  /// The files that a crash has left and nothing needs.
  private(set) var leftovers: [String] = []
  private(set) var report = DirectoryReport()
  private let wall: UInt64
  /// For each gap in the journals, the number of entries whose files have what it lacks.
  private var recoveredCounts: [Int] = []

  /// - Parameters:
  ///   - wall: The current time in milliseconds since 1970.
  ///   - requiresIntactJournals: Whether a damaged or unreadable journal is an error. Otherwise it is reported, and its intact
  ///     part counts.
  ///   - progress: Called repeatedly with how many entries have been read, and of how many.
  ///   - visit: Called with every entry that hasn't expired.
  init(
    _ folder: DirectoryFolder, wall: UInt64, requiresIntactJournals: Bool = true,
    progress: (Int, Int) -> Void = { _, _ in },
    visit: (_ key: [UInt8], _ entry: VisitedEntry, _ value: ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    self.folder = folder
    self.wall = wall
    let names: [String]
    do throws(SystemError) { names = try folder.names() } catch {
      throw .system(path: folder.path, error)
    }
    report.files = names.count
    journals = JournalScan(folder, names: names, skipsDamage: !requiresIntactJournals) { progress(0, names.count) }
    recoveredCounts = Array(repeating: 0, count: journals.gaps.count)
    try reportJournals(requiresIntactJournals: requiresIntactJournals)
    let (entries, keyFiles) = classify(names.sorted()) { progress(0, names.count) }
    if journals.isEmpty, !entries.isEmpty { report.add(Journal.listName, .journalMissing) }
    for (index, (name, versions)) in entries.enumerated() {
      if index % 16 == 0 { progress(index, entries.count) }
      try read(name, versions, visit)
    }
    journals.endDeleteAll()
    try visitPending(visit)
    for name in keyFiles where entries[name] == nil && !isPut(name) {
      leftovers.append(name.keyFileName)
    }
    report.leftovers = leftovers.count
    report.lostOperations = zip(journals.gaps, recoveredCounts).reduce(0) { $0 + max(0, $1.0.operationCount - $1.1) }
    report.issues.sort { $0.name < $1.name }
  }

  private mutating func reportJournals(requiresIntactJournals: Bool) throws(DirectoryError) {
    (report.replayed, report.revision) = (journals.operationCount, journals.lastRevision)
    if journals.isIntact, let (name, offset) = journals.tornTail { report.add(name, .tornTail(offset: offset)) }
    for (name, reason) in journals.problems {
      let path = folder.path(name)
      switch reason {
      case .damage(let damage):
        if requiresIntactJournals { throw .damaged(path: path, offset: damage.offset, reason: damage.reason) }
        report.add(name, .damaged(offset: damage.offset, reason: damage.reason))
      case .laterVersion:
        if requiresIntactJournals { throw .laterVersion(path: path) }
        report.add(name, .laterVersion)
      case .system(let error):
        if requiresIntactJournals { throw .system(path: path, error) }
        report.add(name, isFile(name) ? .unreadable(error.description) : .notAFile)
      }
    }
  }

  /// Separates the entries' files from the others.
  private mutating func classify(
    _ names: [String], progress: () -> Void
  ) -> (entries: [EntryName: [EntryVersion]], keyFiles: [EntryName]) {
    var (entries, keyFiles): ([EntryName: [EntryVersion]], [EntryName]) = ([:], [])
    for (number, name) in names.enumerated() {
      if number % 1_024 == 0 { progress() }
      if Journal.isName(name) || DirectoryFolder.ownNames.contains(name) { continue }
      if name == DirectoryFolder.temporaryName {
        isFile(name) ? leftovers.append(name) : report.add(name, .notAFile)
      } else if let (entry, version) = EntryVersion.read(name) {
        entries[entry, default: []].append(version)
      } else if let entry = EntryName(ofKeyFile: name) {
        isFile(name) ? keyFiles.append(entry) : report.add(name, .notAFile)
      } else {
        report.add(name, .foreign)
      }
    }
    return (entries, keyFiles)
  }

  private mutating func read(
    _ name: EntryName, _ versions: [EntryVersion],
    _ visit: ([UInt8], VisitedEntry, ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    let versions = versions.sorted { $0.revision > $1.revision }
    let found: [UInt8]?
    do throws(SystemError) { found = try key(of: name) } catch {
      for version in versions { report.add(version.fileName(name), .unreadable(error.description)) }
      return
    }
    guard let key = found else {
      for version in versions { report.add(version.fileName(name), .keyUnknown) }
      return
    }
    guard unsafe key.withBytes({ unsafe EntryForm.isUTF8($0) }) else {
      for version in versions { report.add(version.fileName(name), .invalid(EntryForm.keyProblem)) }
      return
    }
    let newest = versions[0]
    if isNewerThanJournals(newest, key) {
      journals.forget(key)
    } else if journals.pending.affects(key) {
      journals.expandDeleteAll(of: key)
      if let put = journals.pending.put(of: key), let value = writtenValue(of: put, name, newest) {
        // The file need not be written again, so that every start continues where the last one ended.
        journals.forget(key)
        leftovers += versions.dropFirst().map { $0.fileName(name) }
        return try add(key, newest, value, visit)
      }
      for version in versions { index.addObsoleteFile(version.fileName(name), of: key) }
      return
    }
    guard let value = intactValue(name, newest) else {
      for version in versions { index.addObsoleteFile(version.fileName(name), of: key) }
      return
    }
    if !journals.isEmpty, journals.isIntact, newest.revision > journals.lastRevision {
      report.add(newest.fileName(name), .ahead)
    }
    // A crash between a renaming and a removal leaves an intact file. A file that is not intact has another cause.
    for version in versions.dropFirst() where intactValue(name, version) != nil {
      leftovers.append(version.fileName(name))
    }
    try add(key, newest, value, visit)
  }

  /// Adds an entry whose file is intact.
  private mutating func add(
    _ key: [UInt8], _ version: EntryVersion, _ value: [UInt8],
    _ visit: ([UInt8], VisitedEntry, ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    report.revision = max(report.revision, version.revision)
    if let gap = journals.gap(containing: version.revision) { recoveredCounts[gap] += 1 }
    index.set(key, version)
    let entry = VisitedEntry(kind: version.isList ? .list : .single, revision: version.revision, expiry: version.expiry)
    try count(key, entry, value[...], visit)
  }

  /// Returns the value in a file that was written for that put; nil if it wasn't, or isn't intact.
  private func writtenValue(of put: PendingOperations.Put, _ name: EntryName, _ version: EntryVersion) -> [UInt8]? {
    guard version.revision == put.revision, version.expiry == put.expiry, version.isList == (put.kind == .list),
      let file = try? folder.open(version.fileName(name), .reading),
      let value = (try? intactValue(of: file, name, version)) ?? nil, value.checksum() == put.checksum
    else { return nil }
    return value
  }

  /// Returns whether a file was written from a frame that can't be read any more, and is newer than what the readable
  /// ones say about the key.
  private func isNewerThanJournals(_ version: EntryVersion, _ key: [UInt8]) -> Bool {
    guard !journals.isIntact, let revision = journals.pending.revision(of: key) else { return false }
    return version.revision > revision
  }

  /// Visits the entries that only the journals are known to have.
  private mutating func visitPending(
    _ visit: ([UInt8], VisitedEntry, ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    let names = Dictionary(uniqueKeysWithValues: journals.journals.map { ($0.header.number, $0.name) })
    var source: (number: Int, file: any File)?
    for (key, put) in journals.pending.puts {
      guard let name = names[put.journal] else { continue }
      let value: [UInt8]
      do throws(SystemError) {
        if source?.number != put.journal { source = (put.journal, try folder.open(name, .reading)) }
        value = try source?.file.bytes(at: put.value.lowerBound, count: put.value.count) ?? []
      } catch {
        throw .system(path: folder.path(name), error)
      }
      guard value.checksum() == put.checksum else {
        throw .damaged(path: folder.path(name), offset: put.value.lowerBound, reason: "the value has changed")
      }
      try count(key, VisitedEntry(kind: put.kind, revision: put.revision, expiry: put.expiry), value[...], visit)
    }
  }

  private mutating func count(
    _ key: [UInt8], _ entry: VisitedEntry, _ value: ArraySlice<UInt8>,
    _ visit: ([UInt8], VisitedEntry, ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    guard entry.expiry == 0 || entry.expiry > wall else { return }
    report.entries += 1
    report.valueBytes += value.count
    try visit(key, entry, value)
  }

  /// Returns the value in that file if it is what the name says; otherwise reports the file.
  private mutating func intactValue(_ name: EntryName, _ version: EntryVersion) -> [UInt8]? {
    let fileName = version.fileName(name)
    do throws(SystemError) {
      let file = try folder.open(fileName, .reading)
      guard let value = try intactValue(of: file, name, version) else {
        report.add(fileName, .changed)
        return nil
      }
      guard !version.isList || (unsafe value.withBytes { unsafe EntryForm.isList($0) }) else {
        report.add(fileName, .invalid(EntryForm.listProblem))
        return nil
      }
      return value
    } catch {
      report.add(fileName, isFile(fileName) ? .unreadable(error.description) : .notAFile)
    }
    return nil
  }

  /// Reads a large file piece by piece first, so that only values that a store has written take memory.
  private func intactValue(
    of file: any File, _ name: EntryName, _ version: EntryVersion
  ) throws(SystemError) -> [UInt8]? {
    let byteCount = try file.byteCount()
    guard byteCount <= Int32.max else { return nil }
    if byteCount > Self.pieceByteCount {
      var crc = version.checksum(ofNameOnly: name)
      for offset in stride(from: 0, to: byteCount, by: Self.pieceByteCount) {
        let piece = try file.bytes(at: offset, count: min(Self.pieceByteCount, byteCount - offset))
        crc = unsafe piece.withBytes { unsafe $0.checksum(after: crc) }
      }
      guard crc == version.checksum else { return nil }
    }
    let value = try file.bytes(at: 0, count: byteCount)
    return unsafe value.withBytes { unsafe version.matches($0, of: name) } ? value : nil
  }

  /// Returns the key with that name; nil if it is in a file that is missing or not intact.
  private func key(of name: EntryName) throws(SystemError) -> [UInt8]? {
    if let key = name.key { return Key.lengths.contains(key.count) ? key : nil }
    guard try folder.isFile(name.keyFileName) else { return nil }
    let key = try folder.open(name.keyFileName, .reading).bytes(at: 0, count: Key.lengths.upperBound + 1)
    return Key.lengths.contains(key.count) && EntryName(of: key) == name ? key : nil
  }

  private func isPut(_ name: EntryName) -> Bool {
    guard let key = (try? key(of: name)) ?? nil else { return false }
    return journals.pending.put(of: key) != nil
  }

  private func isFile(_ name: String) -> Bool {
    // If that can't be found out, it may be one.
    do throws(SystemError) { return try folder.isFile(name) } catch { return true }
  }
}
