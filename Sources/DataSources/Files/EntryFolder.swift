import EntryFiles
import Foundation

/// Entries in a folder, a file each, in the format of the server's directory engine (Protocol/directory-format.md, §1 to §3 and §8).
///
/// Which file is a key's is remembered until the folder changes: a call for keys is O(1) a key, but for the first after somebody else's
/// change, which lists the folder in O(n); one for a range reads the files of the range only.
final class EntryFolder<T: Codable & Sendable>: EntryTable {
  private let folder: Folder
  private let remembered = Locked<FolderIndex?>(nil)

  init(_ folder: Folder) {
    self.folder = folder
  }

  func entries(of keys: [String]) throws -> [StoredValue<T>?] {
    try reading { index in try keys.map { try index.files[EntryKey($0)].flatMap(read) } }
  }

  func entries(in range: EntryRange) throws -> [KeyValueEntry<T>] {
    try reading { index in
      try range.slice(of: orderedKeys(of: index)).compactMap { key in
        try index.files[key].flatMap(read).map { KeyValueEntry(key: key.text, value: $0) }
      }
    }
  }

  func store(_ entries: [KeyValueEntry<T>]) throws {
    let values = Dictionary(entries.map { (EntryKey($0.key), $0.value) }, uniquingKeysWith: { $1 })
    let contents = try values.mapValues { (isList: $0.list != nil, bytes: try EntryContent.bytes(of: $0)) }
    try change { index, revision in
      contents.map { key, content in
        EntryFileChange(
          of: key, was: index.files[key], isList: content.isList, revision: revision, content: content.bytes)
      }
    }
  }

  /// Puts what a body makes of what is held under a key, with nobody else's write in between.
  func update(_ key: String, _ body: (StoredValue<T>?) throws -> StoredValue<T>) throws {
    let key = EntryKey(key)
    try change { index, revision in
      let value = try body(
        try index.files[key].flatMap { do { return try read($0) } catch is FileIsGone { return nil } })
      return [
        EntryFileChange(
          of: key, was: index.files[key], isList: value.list != nil, revision: revision,
          content: try EntryContent.bytes(of: value))
      ]
    }
  }

  func remove(_ keys: [String]) throws {
    try change { index, _ in
      Set(keys.map(EntryKey.init)).compactMap { key in
        index.files[key].map { EntryFileChange(removing: key, was: $0) }
      }
    }
  }

  func removeAll() throws {
    try change { index, _ in index.files.map { EntryFileChange(removing: $0, was: $1) } }
  }

  private func read(_ files: FolderIndex.Files) throws -> StoredValue<T>? {
    guard !files.newest.hasExpired(at: now) else { return nil }
    let name = files.newest.fileName(files.name)
    guard let bytes = try folder.bytes(of: name) else { throw FileIsGone() }
    guard unsafe bytes.withUnsafeBytes({ unsafe files.newest.isChecksum(of: files.name, value: $0) }) else {
      throw DataSourceError(
        .dataSerialization, "\(folder.path(of: name)) was damaged or edited: its checksum doesn't fit")
    }
    return try EntryContent.value(bytes, isList: files.newest.isList, file: name)
  }

  private var now: UInt64 { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }

  private func orderedKeys(of index: FolderIndex) -> [EntryKey] {
    let keys = remembered.withLock { $0?.stamp == index.stamp ? $0?.orderedKeys() : nil } ?? index.files.keys.sorted()
    guard index.hasExpiries else { return keys }
    let now = now
    return keys.filter { index.files[$0]?.newest.hasExpired(at: now) == false }
  }

  /// Runs a body that only reads. Files may go meanwhile if they are a server's, or if somebody tidies up by hand; then it runs again.
  private func reading<R>(_ body: (FolderIndex) throws -> R) throws -> R {
    try folder.reading { lock in
      for _ in 0..<5 {
        let index = try index(lock)
        if index.hasJournal, try !folder.isJournalEmpty() {
          throw DataSourceError(
            .failed,
            "\(folder.path) is a server's store with writes that only its journal has: let the server finish them")
        }
        do { return try body(index) } catch is FileIsGone { remembered.withLock { $0 = nil } }
      }
      throw DataSourceError(.failed, "files in \(folder.path) come and go: somebody else is changing them")
    }
  }

  /// Makes the changes that a body tells, all or none of them.
  private func change(_ body: (FolderIndex, _ revision: UInt64) throws -> [EntryFileChange]) throws {
    try folder.writing { lock in
      let index = try index(lock)
      guard !index.hasJournal else {
        throw DataSourceError(.failed, "\(folder.path) is a server's store: write to it through the server")
      }
      guard index.greatestRevision < .max else {
        throw DataSourceError(.failed, "no revision is left in \(folder.path)")
      }
      let revision = index.greatestRevision + 1
      let changes = try body(index, revision)
      guard !changes.isEmpty else { return }
      try lock.setRevision(revision)
      do {
        // One file takes another's place by its greater revision, whatever else is left.
        let writes = changes.filter { $0.files != nil }
        let files = changes.flatMap(\.fileChanges)
        try folder.apply(files, together: changes.count > 1 || writes.isEmpty || changes[0].hasKeyFile)
        let stamp = FolderIndex.Stamp(revision: revision, change: try folder.lastChange())
        remembered.withLock { index in
          for change in changes { index?.set(change.key, change.files) }
          index?.setStamp(stamp)
        }
      } catch {
        remembered.withLock { $0 = nil }
        throw error
      }
    }
  }

  /// What is in the folder now.
  private func index(_ lock: FolderLock) throws -> FolderIndex {
    let stamp = FolderIndex.Stamp(revision: try lock.revision(), change: try folder.lastChange())
    if let index = remembered.withLock({ $0 }), index.stamp == stamp { return index }
    let index = try FolderIndex(folder, stamp)
    // A server doesn't tell of its changes, and the clock may not tell two of them apart.
    remembered.withLock { $0 = index.hasJournal ? nil : index }
    return index
  }

  /// A file that the index has isn't there.
  private struct FileIsGone: Error {}
}
