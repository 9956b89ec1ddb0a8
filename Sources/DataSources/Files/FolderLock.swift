import Foundation

/// A folder's lock while it is held, and the revision that is written inside: that of the folder's last change by a data source. It tells
/// other sources that what they know of the folder is old, and that no revision is given twice.
struct FolderLock {
  let file: FileHandle

  /// 0 when there has been no change, or when it was somebody else's who holds the lock by the same file (`directory-format.md`, §1).
  func revision() throws -> UInt64 {
    do {
      try file.seek(toOffset: 0)
      let text = String(decoding: try file.read(upToCount: 64) ?? Data(), as: UTF8.self)
      let fields = text.split(whereSeparator: \.isWhitespace)
      return fields.count == 2 && fields[0] == "revision" ? UInt64(fields[1]) ?? 0 : 0
    } catch {
      throw DataSourceError(.failed, "can't read a lock file: \(error.localizedDescription)")
    }
  }

  /// Writes the revision of a change, before the change. It needn't outlive the machine: nobody who knows the folder does.
  func setRevision(_ revision: UInt64) throws {
    do {
      try file.truncate(atOffset: 0)
      try file.write(contentsOf: Data("revision \(revision)\n".utf8))
    } catch {
      throw DataSourceError(.failed, "can't write a lock file: \(error.localizedDescription)")
    }
  }
}

/// Tells one state of a folder's names from another, but for changes in the same tick of the system's clock.
struct FolderChange: Hashable {
  let folder: UInt64
  let seconds: Int
  let nanoseconds: Int
}
