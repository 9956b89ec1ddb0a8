import EntryFiles
import Platform

/// Tells what of a directory store is intact and what is odd, without changing anything. Nobody should have the store open meanwhile.
package enum DirectoryCheck {
  /// O(bytes), with one value in memory at a time beside the journal.
  /// - Parameter tell: called with the size of every intact value.
  /// - Throws: when the folder can't be read.
  package static func run(
    _ path: String, on fileSystem: any FileSystem, tell: (Int) -> Void = { _ in }
  ) throws(DirectoryError) -> DirectoryReport {
    let folder = DirectoryFolder(fileSystem: fileSystem, path: path)
    return try DirectoryReading(folder, wall: wallMilliseconds(), mustBeSound: false) {
      (_, _, value) throws(DirectoryError) in tell(value.count)
    }.report
  }

  /// Copies every intact entry into another folder, which is there and empty, with its revision. The new store's counter goes on where
  /// this one's was.
  /// - Returns: what this one is like.
  package static func salvage(
    _ path: String, to target: String, on fileSystem: any FileSystem, tell: (Int) -> Void = { _ in }
  ) throws(DirectoryError) -> DirectoryReport {
    let folder = DirectoryFolder(fileSystem: fileSystem, path: path)
    let copy = DirectoryFolder(fileSystem: fileSystem, path: target)
    let reading = try DirectoryReading(folder, wall: wallMilliseconds(), mustBeSound: false) {
      (key, entry, value) throws(DirectoryError) in
      do throws(SystemError) { try copy.write(key, entry, Array(value)) } catch { throw .system(path: target, error) }
      tell(value.count)
    }
    do throws(SystemError) {
      _ = try WriteAheadLog.make(in: copy, after: reading.report.revision)
      try fileSystem.syncFolder(target)
    } catch {
      throw .system(path: target, error)
    }
    return reading.report
  }
}

extension DirectoryFolder {
  /// Makes the files of an entry that has none.
  fileprivate func write(_ key: [UInt8], _ entry: PendingOperations.Put, _ value: [UInt8]) throws(SystemError) {
    let name = EntryName(of: key)
    if name.isDigest {
      try fileSystem.makeFile(path(name.keyFileName), through: temporaryPath, key)
    }
    let version = unsafe value.withBytes { value in
      unsafe EntryVersion(
        of: name, isList: entry.kind == .list, revision: entry.revision, expiry: entry.expiry, value: value)
    }
    try fileSystem.makeFile(path(version.fileName(name)), through: temporaryPath, value)
  }
}
