import Platform

/// Tells what of a directory store is intact and what is odd, without changing anything. Nobody should have the store open meanwhile.
package enum DirectoryCheck {
  /// - Throws: what would keep the store from being opened. O(bytes), with one value in memory at a time beside the journal.
  package static func run(_ path: String, on fileSystem: any FileSystem) throws(DirectoryError) -> DirectoryReport {
    let folder = DirectoryFolder(fileSystem: fileSystem, path: path)
    return try DirectoryReading(folder, wall: wallMilliseconds()) { (_, _, _) throws(DirectoryError) in }.report
  }
}
