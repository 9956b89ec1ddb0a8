import EntryFiles
import Platform

/// What a scan of a directory store's folder has found: the common part of opening and checking. The scan changes
/// nothing.
///
/// It reads the write-ahead log first. A key's last operation there is newer than all of its files, because files are
/// only written from the log.
struct DirectoryScan {
  private static let pieceByteCount = 1 << 20

  private let folder: DirectoryFolder
  /// The write-ahead log; nil if there is none.
  private(set) var log: WriteAheadLogContents?
  private(set) var pending = PendingOperations()
  private(set) var index = DirectoryIndex()
  /// The files that a crash has left and nothing needs.
  private(set) var leftovers: [String] = []
  private(set) var report = DirectoryReport()
  private let wall: UInt64

  /// - Parameters:
  ///   - wall: The current time in milliseconds since 1970.
  ///   - requiresIntactLog: Whether a damaged or unreadable log is an error. Otherwise it is reported, and its intact
  ///     part counts.
  ///   - progress: Called repeatedly with how many entries have been read, and of how many.
  ///   - visit: Called with every entry that hasn't expired.
  init(
    _ folder: DirectoryFolder, wall: UInt64, requiresIntactLog: Bool = true, progress: (Int, Int) -> Void = { _, _ in },
    visit: (_ key: [UInt8], _ entry: PendingOperations.Put, _ value: ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    self.folder = folder
    self.wall = wall
    let names: [String]
    do throws(SystemError) { names = try folder.names() } catch {
      throw .system(path: folder.path, error)
    }
    report.files = names.count
    let hasLog = names.contains(WriteAheadLog.name)
    if hasLog { try readLog(requiresIntactLog: requiresIntactLog) }
    let (entries, keyFiles) = classify(names.sorted())
    if !hasLog, !entries.isEmpty { report.add(WriteAheadLog.name, .journalMissing) }
    for (index, (name, versions)) in entries.enumerated() {
      if index % 1_024 == 0 { progress(index, entries.count) }
      try read(name, versions, visit)
    }
    try visitPending(visit)
    for name in keyFiles where entries[name] == nil && !isPut(name) {
      leftovers.append(name.keyFileName)
    }
    report.leftovers = leftovers.count
    report.issues.sort { $0.name < $1.name }
  }

  private mutating func readLog(requiresIntactLog: Bool) throws(DirectoryError) {
    let (name, path) = (WriteAheadLog.name, folder.path(WriteAheadLog.name))
    let contents: WriteAheadLogContents
    do throws(SystemError) {
      contents = try WriteAheadLogContents(reading: folder.open(name, .reading))
    } catch {
      if requiresIntactLog { throw .system(path: path, error) }
      return report.add(name, isFile(name) ? .unreadable(error.description) : .notAFile)
    }
    if let damage = contents.damage {
      if requiresIntactLog { throw .damaged(path: path, offset: damage.offset, reason: damage.reason) }
      report.add(name, .damaged(offset: damage.offset, reason: damage.reason))
    } else if contents.isTorn {
      report.add(name, .tornTail(offset: contents.end))
    }
    (pending, report.replayed, report.revision) = (contents.pending, contents.operationCount, contents.lastRevision)
    log = contents
  }

  /// Separates the entries' files from the others.
  private mutating func classify(_ names: [String]) -> (entries: [EntryName: [EntryVersion]], keyFiles: [EntryName]) {
    var (entries, keyFiles): ([EntryName: [EntryVersion]], [EntryName]) = ([:], [])
    for name in names {
      if name == WriteAheadLog.name || name == DirectoryFolder.lockName { continue }
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
    _ visit: ([UInt8], PendingOperations.Put, ArraySlice<UInt8>) throws(DirectoryError) -> Void
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
    if isAfterDamage(versions[0]) {
      pending.forget(key)
    } else if pending.affects(key) {
      for version in versions { index.addObsoleteFile(version.fileName(name), of: key) }
      return
    }
    let newest = versions[0]
    guard let value = intactValue(name, newest) else {
      for version in versions { index.addObsoleteFile(version.fileName(name), of: key) }
      return
    }
    if let log, log.damage == nil, newest.revision > log.lastRevision {
      report.add(newest.fileName(name), .ahead)
    }
    report.revision = max(report.revision, newest.revision)
    // A crash between a renaming and a removal leaves an intact file. A file that is not intact has another cause.
    for version in versions.dropFirst() where intactValue(name, version) != nil {
      leftovers.append(version.fileName(name))
    }
    index.set(key, newest)
    let entry = PendingOperations.Put(
      kind: newest.isList ? .list : .single, revision: newest.revision, expiry: newest.expiry, value: 0..<value.count)
    try count(key, entry, value[...], visit)
  }

  /// Returns whether a file was written from a frame of the log that can't be read any more, and is newer than the
  /// readable ones.
  private func isAfterDamage(_ version: EntryVersion) -> Bool {
    guard let log, log.damage != nil else { return false }
    return version.revision > log.lastRevision
  }

  /// Visits the entries that only the log is known to have.
  private mutating func visitPending(
    _ visit: ([UInt8], PendingOperations.Put, ArraySlice<UInt8>) throws(DirectoryError) -> Void
  ) throws(DirectoryError) {
    guard let log else { return }
    for (key, put) in pending.puts { try count(key, put, log.bytes[put.value], visit) }
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

  /// Returns the value in that file if it is what the name says; otherwise reports the file.
  private mutating func intactValue(_ name: EntryName, _ version: EntryVersion) -> [UInt8]? {
    let fileName = version.fileName(name)
    do throws(SystemError) {
      let file = try folder.open(fileName, .reading)
      if let value = try intactValue(of: file, name, version) { return value }
      report.add(fileName, .changed)
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
    return pending.put(of: key) != nil
  }

  private func isFile(_ name: String) -> Bool {
    // If that can't be found out, it may be one.
    do throws(SystemError) { return try folder.isFile(name) } catch { return true }
  }
}
