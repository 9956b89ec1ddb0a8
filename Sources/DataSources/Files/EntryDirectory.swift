import Documents
import EntryFiles
import Foundation

/// Entries in a directory, one file each, in the format of the server's directory engine (Protocol/directory-format.md,
/// §1 to §3 and §8).
///
/// An index says which file belongs to which key, and is cached until the directory changes. A call for keys is O(1)
/// per key, except the first one after somebody else's change, which lists the directory in O(n). A call for a range
/// reads only the files of the range.
///
/// The directory's lock protects the files. A lock in memory protects the cached index.
final class EntryDirectory<T: Codable & Sendable>: EntryTable {
  private let directory: SharedDirectory
  private let cachedIndex = LockedValue<EntryFileIndex?>(nil)

  init(_ directory: SharedDirectory) {
    self.directory = directory
  }

  func entries(of keys: [String]) throws -> [StoredValue<T>?] {
    try reading { index in try keys.map { try index[EntryKey($0)].flatMap(read) } }
  }

  func entries(in range: EntryRange) throws -> [KeyValueEntry<T>] {
    try reading { index in
      try range.slice(of: keys(of: index)).compactMap { key in
        try index[key].flatMap(read).map { KeyValueEntry(key: key.text, value: $0) }
      }
    }
  }

  func entries(matching query: DocumentQuery) throws -> [KeyValueEntry<T>] {
    let emptyFinder = try DocumentFinder(query, isOrdered: true)
    return try reading { index in
      var finder = emptyFinder
      for key in keys(of: index) where !finder.isFinished {
        guard let files = index[key], !files.newest.isList, let bytes = try bytes(of: files) else { continue }
        finder.examine(Document(Array(bytes), id: key.text, revision: files.newest.revision))
      }
      return try finder.result().documents.map { document in
        let key = document.id!
        let file = index[EntryKey(key)]!
        let value = try ReadableJSON.decode(
          T.self, Data(document.text), file: file.newest.fileName(file.name))
        return KeyValueEntry(key: key, value: .single(value))
      }
    }
  }

  func store(_ entries: [KeyValueEntry<T>]) throws {
    let values = Dictionary(entries.map { (EntryKey($0.key), $0.value) }, uniquingKeysWith: { $1 })
    let contents = try values.mapValues { (isList: $0.list != nil, bytes: try EntryContent.encode($0)) }
    try change { index, revision in
      contents.map { key, content in
        EntryChange(
          to: key, replacing: index[key], isList: content.isList, revision: revision, content: content.bytes)
      }
    }
  }

  /// Replaces the value under a key with the result of `body`, while nobody else can write.
  func update(_ key: String, _ body: (StoredValue<T>?) throws -> StoredValue<T>) throws {
    let key = EntryKey(key)
    try change { index, revision in
      let value = try body(
        try index[key].flatMap { do { return try read($0) } catch is FileRemovedError { return nil } })
      return [
        EntryChange(
          to: key, replacing: index[key], isList: value.list != nil, revision: revision,
          content: try EntryContent.encode(value))
      ]
    }
  }

  func remove(_ keys: [String]) throws {
    try change { index, _ in
      Set(keys.map(EntryKey.init)).compactMap { key in index[key].map { EntryChange(removing: key, $0) } }
    }
  }

  func removeAll() throws {
    try change { index, _ in index.allFiles.map { EntryChange(removing: $0, $1) } }
  }

  private func read(_ files: EntryFileIndex.Files) throws -> StoredValue<T>? {
    try bytes(of: files).map { bytes in
      try EntryContent.decode(bytes, isList: files.newest.isList, file: files.newest.fileName(files.name))
    }
  }

  /// Returns the content of the file that counts; nil if the entry has expired.
  private func bytes(of files: EntryFileIndex.Files) throws -> Data? {
    guard !files.newest.hasExpired(at: now) else { return nil }
    let name = files.newest.fileName(files.name)
    guard let bytes = try directory.bytes(of: name) else { throw FileRemovedError() }
    guard unsafe bytes.withUnsafeBytes({ unsafe files.newest.matches($0, of: files.name) }) else {
      throw DataSourceError(
        .dataSerialization, "\(directory.path(of: name)) is damaged or was edited: its checksum doesn't match")
    }
    return bytes
  }

  private var now: UInt64 { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }

  private func keys(of index: EntryFileIndex) -> [EntryKey] {
    let now = now
    let cached: [EntryKey]? = cachedIndex.withLock { cached in
      guard cached?.hasSameVersion(as: index) == true else { return nil }
      cached?.sortKeys()
      return cached?.keys(at: now)
    }
    return cached ?? index.keys(at: now)
  }

  /// Runs a body that only reads. A server, or a person who cleans up, may remove files meanwhile; then the body runs
  /// again.
  private func reading<R>(_ body: (EntryFileIndex) throws -> R) throws -> R {
    try directory.withReadLock { lock in
      for _ in 0..<5 {
        let index = try currentIndex(lock)
        if index.hasJournal, try !directory.isJournalEmpty() {
          throw DataSourceError(
            .failed,
            "\(directory.path) is a server's store with unapplied writes in its journal: start the server to apply them"
          )
        }
        do { return try body(index) } catch is FileRemovedError { cachedIndex.withLock { $0 = nil } }
      }
      throw DataSourceError(
        .failed, "files in \(directory.path) keep disappearing: another program is changing them")
    }
  }

  /// Makes the changes that a body returns, all of them or none.
  private func change(_ body: (EntryFileIndex, _ revision: UInt64) throws -> [EntryChange]) throws {
    try directory.withWriteLock { lock in
      let index = try currentIndex(lock)
      guard !index.hasJournal else {
        throw DataSourceError(.failed, "\(directory.path) is a server's store: write to it through the server")
      }
      guard let revision = index.nextRevision else {
        throw DataSourceError(.failed, "\(directory.path) has used up all revisions")
      }
      let changes = try body(index, revision)
      guard !changes.isEmpty else { return }
      try lock.setRevision(revision)
      do {
        // A single new file replaces the old one by its greater revision, whatever a crash leaves behind.
        let isSingleWrite = changes.count == 1 && changes[0].isSingleWrite
        try directory.apply(changes.flatMap(\.fileChanges), atomically: !isSingleWrite)
        let version = EntryFileIndex.Version(revision: revision, time: try directory.modificationTime())
        cachedIndex.withLock { index in
          for change in changes { change.update(&index) }
          index?.setVersion(version)
        }
      } catch {
        cachedIndex.withLock { $0 = nil }
        throw error
      }
    }
  }

  /// Returns the index of the directory's current state.
  private func currentIndex(_ lock: DirectoryLock) throws -> EntryFileIndex {
    let version = EntryFileIndex.Version(revision: try lock.revision(), time: try directory.modificationTime())
    if let index = cachedIndex.withLock({ $0 }), index.isOf(version) { return index }
    let index = try EntryFileIndex(directory, version)
    // Don't cache the index of a server's store. A server doesn't update the revision, and two of its changes may have
    // the same time.
    cachedIndex.withLock { $0 = index.hasJournal ? nil : index }
    return index
  }

  /// A file that is in the index no longer exists.
  private struct FileRemovedError: Error {}
}

/// A change to the files of one key.
private struct EntryChange {
  let fileChanges: [FileChange]
  private let key: EntryKey
  /// The files of the key after the change.
  private let files: EntryFileIndex.Files?
  /// Whether the file that contains the key is created or removed, too.
  private let hasKeyFile: Bool

  /// Creates a change to a new value.
  init(to key: EntryKey, replacing old: EntryFileIndex.Files?, isList: Bool, revision: UInt64, content: Data) {
    self.key = key
    let bytes = Array(key.text.utf8)
    let name = old?.name ?? EntryName(of: bytes)
    let version = unsafe content.withUnsafeBytes {
      unsafe EntryVersion(of: name, isList: isList, revision: revision, expiry: 0, value: $0)
    }
    files = EntryFileIndex.Files(name: name, version: version)
    hasKeyFile = name.isDigest && old == nil
    let keyFile: [FileChange] = hasKeyFile ? [.write(name.keyFileName, Data(bytes))] : []
    let removals = (old?.fileNames ?? []).map(FileChange.remove)
    fileChanges = keyFile + [.write(version.fileName(name), content)] + removals
  }

  /// Creates the removal of all files of a key.
  init(removing key: EntryKey, _ old: EntryFileIndex.Files) {
    self.key = key
    files = nil
    hasKeyFile = old.name.isDigest
    fileChanges = (old.fileNames + (hasKeyFile ? [old.name.keyFileName] : [])).map(FileChange.remove)
  }

  /// Whether the change writes one file and creates no other.
  var isSingleWrite: Bool { files != nil && !hasKeyFile }

  /// Makes the change to an index.
  func update(_ index: inout EntryFileIndex?) { index?.update(key, files) }
}
