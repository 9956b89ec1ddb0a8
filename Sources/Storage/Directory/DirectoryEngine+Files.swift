import EntryFiles
import Platform

/// The way from the journal to the entries' files. Every step may be cut off and done again: what waits is forgotten only when it is on the
/// disk, and the journal starts over only when nothing waits.
extension DirectoryEngine {
  /// Writes and removes the files of so many of the keys that wait.
  func settle(limit: Int = .max) throws(SystemError) {
    // A file must never be newer than what the journal is sure to hold.
    try journal.sync()
    let keys = Array(pending.operations.keys.prefix(limit))
    // Deletions first: they make room for the rest.
    let deleted = keys.filter { pending.isDelete($0) }
    for key in deleted { index.remove(key) }
    try removeOthers(of: deleted)
    let written = keys.filter { !pending.isDelete($0) }
    for key in written {
      if case .put(let put, let checksum)? = pending.operations[key] { try write(key, put, checksum) }
    }
    if !written.isEmpty { try folder.fileSystem.syncFolder(folder.path) }
    // The journal has the new values, so the old files may go in any order with it; a reader of the folder always finds one of them.
    try removeOthers(of: written)
    for key in keys { pending.operations[key] = nil }
  }

  /// Writes more files than the last commits have added, so that under a load that leaves no time for tidying nothing waits any more
  /// when the journal is full, and no commit has to wait for all files at once. On a full disk they go on waiting.
  func settleAhead(of operations: Int) throws(SystemError) {
    do throws(SystemError) {
      try settle(limit: 2 * operations + Self.filesAtATime)
      try startOverIfSettled()
    } catch {
      guard error.isNoSpace else { throw error }
    }
  }

  /// Empties the journal if nothing waits any more.
  func startOverIfSettled() throws(SystemError) {
    guard pending.isEmpty, !journal.isEmpty else { return }
    try folder.fileSystem.syncFolder(folder.path)
    try journal.startOver(after: journal.lastRevision)
  }

  private func write(_ key: [UInt8], _ put: PendingOperations.Put, _ checksum: UInt32) throws(SystemError) {
    let name = EntryName(of: key)
    let value = try journal.value(at: put.value, checksum: checksum)
    if name.isDigest { try writeKey(key, name) }
    let version = unsafe value.withBytes { value in
      unsafe EntryVersion(of: name, isList: put.kind == .list, revision: put.revision, expiry: put.expiry, value: value)
    }
    let path = folder.path(version.fileName(name))
    try folder.fileSystem.makeFile(path, through: folder.temporaryPath, value)
    // At once: if a later step fails, this file must be known to whoever replaces or deletes the entry.
    index.set(key, version)
  }

  /// The file of the key is on the disk ahead of the entry's, and never changes.
  private func writeKey(_ key: [UInt8], _ name: EntryName) throws(SystemError) {
    let path = folder.path(name.keyFileName)
    if index.versions[key] != nil { return }
    try folder.fileSystem.makeFile(path, through: folder.temporaryPath, key)
  }

  private func removeOthers(of keys: [[UInt8]]) throws(SystemError) {
    for key in keys {
      let current = index.fileName(of: key)
      for fileName in index.others[key] ?? [] where fileName != current {
        try folder.removeIfThere(fileName)
      }
      let name = EntryName(of: key)
      if name.isDigest, index.versions[key] == nil { try folder.removeIfThere(name.keyFileName) }
      index.forgetOthers(of: key)
    }
  }
}

extension PendingOperations {
  fileprivate func isDelete(_ key: [UInt8]) -> Bool {
    if case .delete? = operations[key] { return true }
    return false
  }
}

extension DirectoryFolder {
  /// What isn't a file stays: someone else put it there.
  func removeIfThere(_ name: String) throws(SystemError) {
    guard case .file? = try fileSystem.kind(of: path(name)) else { return }
    try fileSystem.remove(path(name))
  }
}
