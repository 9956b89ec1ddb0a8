import EntryFiles
import Platform

/// Reads a directory store's folder, and changes nothing: what opening and checking have in common.
///
/// The journal is read first. A key's last operation there is newer than all of its files, for files are written from the journal only.
struct DirectoryReading {
  private static let pieceByteCount = 1 << 20

  let folder: DirectoryFolder
  /// Nil when there is no journal.
  private(set) var journal: WriteAheadLogContents?
  private(set) var pending = PendingOperations()
  private(set) var index = DirectoryIndex()
  /// Names that a crash has left and nothing needs.
  private(set) var leftovers: [String] = []
  private(set) var report = DirectoryReport()
  private let wall: UInt64

  /// - Parameters:
  ///   - wall: now, in milliseconds since 1970.
  ///   - mustBeSound: whether a journal that is damaged or can't be read is an error. Else it is reported, and what is good of it counts.
  ///   - progress: is called now and then with how many entries are read, and of how many.
  ///   - visit: is called with every entry that hasn't expired.
  init(
    _ folder: DirectoryFolder, wall: UInt64, mustBeSound: Bool = true, progress: (Int, Int) -> Void = { _, _ in },
    visit: (_ key: [UInt8], _ entry: PendingOperations.Put, _ value: ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    self.folder = folder
    self.wall = wall
    let names: [String]
    do throws(SystemError) { names = try folder.fileSystem.list(folder.path) } catch {
      throw .system(path: folder.path, error)
    }
    report.files = names.count
    let hasJournal = names.contains(WriteAheadLog.name)
    if hasJournal { try readJournal(mustBeSound: mustBeSound) }
    let (entries, keyFiles) = sort(names.sorted())
    if !hasJournal, !entries.isEmpty { report.note(WriteAheadLog.name, .journalMissing) }
    for (index, (name, versions)) in entries.enumerated() {
      if index % 1_024 == 0 { progress(index, entries.count) }
      try read(name, versions, visit)
    }
    try finishPending(visit)
    for name in keyFiles where entries[name] == nil && !isPut(name) {
      leftovers.append(name.keyFileName)
    }
    report.leftovers = leftovers.count
    report.findings.sort { $0.name < $1.name }
  }

  private mutating func readJournal(mustBeSound: Bool) throws(DirectoryError) {
    let (name, path) = (WriteAheadLog.name, folder.path(WriteAheadLog.name))
    let contents: WriteAheadLogContents
    do throws(SystemError) {
      contents = try WriteAheadLogContents(reading: folder.fileSystem.open(path, .reading))
    } catch {
      if mustBeSound { throw .system(path: path, error) }
      return report.note(name, isFile(name) ? .unreadable(error.description) : .notAFile)
    }
    if let damage = contents.damage {
      if mustBeSound { throw .damaged(path: path, offset: damage.offset, reason: damage.reason) }
      report.note(name, .damaged(offset: damage.offset, reason: damage.reason))
    } else if contents.isTorn {
      report.note(name, .tornTail(offset: contents.tail))
    }
    (pending, report.replayed, report.revision) = (contents.pending, contents.operationCount, contents.lastRevision)
    journal = contents
  }

  /// Tells entries from the rest.
  private mutating func sort(_ names: [String]) -> (entries: [EntryName: [EntryVersion]], keyFiles: [EntryName]) {
    var (entries, keyFiles): ([EntryName: [EntryVersion]], [EntryName]) = ([:], [])
    for name in names {
      if name == WriteAheadLog.name || name == DirectoryFolder.lockName { continue }
      if name == DirectoryFolder.temporaryName {
        isFile(name) ? leftovers.append(name) : report.note(name, .notAFile)
      } else if let (entry, version) = EntryVersion.read(name) {
        entries[entry, default: []].append(version)
      } else if let entry = EntryName(ofKeyFile: name) {
        isFile(name) ? keyFiles.append(entry) : report.note(name, .notAFile)
      } else {
        report.note(name, .foreign)
      }
    }
    return (entries, keyFiles)
  }

  private mutating func read(
    _ name: EntryName, _ versions: [EntryVersion],
    _ visit: ([UInt8], PendingOperations.Put, ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    let versions = versions.sorted { $0.revision > $1.revision }
    let found: [UInt8]?
    do throws(SystemError) { found = try key(of: name) } catch {
      for version in versions { report.note(version.fileName(name), .unreadable(error.description)) }
      return
    }
    guard let key = found else {
      for version in versions { report.note(version.fileName(name), .keyUnknown) }
      return
    }
    if isBehindDamage(versions[0]) {
      pending.operations[key] = nil
    } else if pending.operations[key] != nil || pending.clears {
      for version in versions { index.add(version.fileName(name), toRemoveWith: key) }
      return
    }
    let newest = versions[0]
    guard let value = intactValue(name, newest) else {
      for version in versions { index.add(version.fileName(name), toRemoveWith: key) }
      return
    }
    if let journal, journal.damage == nil, newest.revision > journal.lastRevision {
      report.note(newest.fileName(name), .ahead)
    }
    report.revision = max(report.revision, newest.revision)
    // A crash between a renaming and a removal leaves a file that is intact; what isn't is none of that.
    for version in versions.dropFirst() where intactValue(name, version) != nil {
      leftovers.append(version.fileName(name))
    }
    index.set(key, newest)
    let entry = PendingOperations.Put(
      kind: newest.isList ? .list : .single, revision: newest.revision, expiry: newest.expiry, value: 0..<value.count)
    try count(key, entry, value[...], visit)
  }

  /// Whether a file was written from a frame of the journal that can't be read any more, and is newer than those that can.
  private func isBehindDamage(_ version: EntryVersion) -> Bool {
    guard let journal, journal.damage != nil else { return false }
    return version.revision > journal.lastRevision
  }

  /// The operations that only the journal is known to have.
  private mutating func finishPending(
    _ visit: ([UInt8], PendingOperations.Put, ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    guard let journal else { return }
    for case (let key, .put(let put, _)) in pending.operations { try count(key, put, journal.bytes[put.value], visit) }
  }

  private mutating func count(
    _ key: [UInt8], _ entry: PendingOperations.Put, _ value: ArraySlice<UInt8>,
    _ visit: ([UInt8], PendingOperations.Put, ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    guard entry.expiry == 0 || entry.expiry > wall else { return }
    report.entries += 1
    report.valueBytes += value.count
    try visit(key, entry, value)
  }

  /// The value of that file if it is what its name says; what else there is gets reported.
  private mutating func intactValue(_ name: EntryName, _ version: EntryVersion) -> [UInt8]? {
    let fileName = version.fileName(name)
    do throws(SystemError) {
      let file = try folder.fileSystem.open(folder.path(fileName), .reading)
      if let value = try intactValue(of: file, name, version) { return value }
      report.note(fileName, .changed)
    } catch {
      report.note(fileName, isFile(fileName) ? .unreadable(error.description) : .notAFile)
    }
    return nil
  }

  /// What says that it is large is read piece by piece first, so that only what a store has written takes memory.
  private func intactValue(
    of file: any File, _ name: EntryName, _ version: EntryVersion
  ) throws(SystemError) -> [UInt8]? {
    let byteCount = try file.byteCount()
    guard byteCount <= Int32.max else { return nil }
    if byteCount > Self.pieceByteCount {
      var crc = version.checksum(ofNameOnly: name)
      for place in stride(from: 0, to: byteCount, by: Self.pieceByteCount) {
        let piece = try file.bytes(at: place, count: min(Self.pieceByteCount, byteCount - place))
        crc = unsafe piece.withBytes { unsafe $0.checksum(after: crc) }
      }
      guard crc == version.checksum else { return nil }
    }
    let value = try file.bytes(at: 0, count: byteCount)
    return unsafe value.withBytes { unsafe version.isChecksum(of: name, value: $0) } ? value : nil
  }

  /// Nil when no file has it that is as it was written.
  private func key(of name: EntryName) throws(SystemError) -> [UInt8]? {
    if let key = name.key { return Key.lengths.contains(key.count) ? key : nil }
    let path = folder.path(name.keyFileName)
    guard case .file? = try folder.fileSystem.kind(of: path) else { return nil }
    let key = try folder.fileSystem.open(path, .reading).bytes(at: 0, count: Key.lengths.upperBound + 1)
    return Key.lengths.contains(key.count) && EntryName(of: key) == name ? key : nil
  }

  private func isPut(_ name: EntryName) -> Bool {
    guard let key = (try? key(of: name)) ?? nil, case .put = pending.operations[key] else { return false }
    return true
  }

  private func isFile(_ name: String) -> Bool {
    do throws(SystemError) {
      if case .file? = try folder.fileSystem.kind(of: folder.path(name)) { return true }
      return false
    } catch {
      // It may be one, then.
      return true
    }
  }
}
