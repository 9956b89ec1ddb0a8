import EntryFiles
import Platform

/// A check of a directory store, which reports what is intact and changes nothing. No process should have the store
/// open meanwhile.
package enum DirectoryCheck {
  /// Checks a store. O(bytes); needs memory for one journal, the keys in all of them, and one value at a time.
  /// - Parameter progress: Called with the size of every intact value.
  /// - Throws: If the folder can't be read.
  package static func run(
    _ path: String, on fileSystem: any FileSystem, progress: (Int) -> Void = { _ in }
  ) throws(DirectoryError) -> DirectoryReport {
    let folder = DirectoryFolder(fileSystem: fileSystem, path: path)
    return try DirectoryScan(folder, wall: wallMilliseconds(), requiresIntactJournals: false) {
      (_, _, value) throws(DirectoryError) in progress(value.count)
    }.report
  }

  /// Copies every intact entry with its revision into another folder, which exists and is empty. The new store's
  /// counter continues where this one's was.
  /// - Returns: A report on the original.
  package static func salvage(
    _ path: String, to target: String, on fileSystem: any FileSystem, progress: (Int) -> Void = { _ in }
  ) throws(DirectoryError) -> DirectoryReport {
    let folder = DirectoryFolder(fileSystem: fileSystem, path: path)
    let copy = DirectoryFolder(fileSystem: fileSystem, path: target)
    let scan = try DirectoryScan(folder, wall: wallMilliseconds(), requiresIntactJournals: false) {
      (key, entry, value) throws(DirectoryError) in
      do throws(SystemError) { try copy.writeEntry(key, entry, Array(value)) } catch {
        throw .system(path: target, error)
      }
      progress(value.count)
    }
    do throws(SystemError) {
      _ = try JournalKeeper.make(in: copy, revision: scan.report.revision)
      try copy.sync()
    } catch {
      throw .system(path: target, error)
    }
    return scan.report
  }
}

extension DirectoryFolder {
  /// Writes the files of an entry that has none.
  fileprivate func writeEntry(_ key: [UInt8], _ entry: VisitedEntry, _ value: [UInt8]) throws(SystemError) {
    let name = EntryName(of: key)
    if name.isDigest {
      try write(name.keyFileName, key)
    }
    let version = unsafe value.withBytes { value in
      unsafe EntryVersion(
        of: name, isList: entry.kind == .list, revision: entry.revision, expiry: entry.expiry, value: value)
    }
    try write(version.fileName(name), value)
  }
}
