import Documents
import EntryFiles
import FoundationEssentials

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
  private let damaged: DamagedEntries
  private let cachedIndex = LockedValue<EntryFileIndex?>(nil)

  init(_ directory: SharedDirectory, damaged: DamagedEntries = .fail) {
    self.directory = directory
    self.damaged = damaged
  }

  // MARK: - Reading

  func entry(of key: String) async throws -> StoredValue<T>? {
    try await reading { index, lock, _ in try value(of: EntryKey(key), index, lock) }
  }

  func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    try await reading { index, lock, report in
      try keys.map { key in try report.reading(key) { try value(of: EntryKey(key), index, lock) } }
    }
  }

  func keys(in range: EntryRange) async throws -> [String] {
    try await reading { index, lock, report in
      try reportBlockedEntries(lock, &report)
      return range.slice(of: keys(of: index)).map(\.text)
    }
  }

  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    try await reading { index, lock, report in
      let blocked = try reportBlockedEntries(lock, &report)
      return try range.slice(of: keys(of: index)).compactMap { key in
        guard let files = index[key], !blocked.contains(files.name) else { return nil }
        return try report.reading(key.text) { try read(files) }.map { entry(key, files, $0) }
      }
    }
  }

  func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>] {
    let emptyFinder = try DocumentFinder(query, isOrdered: true)
    return try await reading { index, lock, report in
      let blocked = try reportBlockedEntries(lock, &report)
      var finder = emptyFinder
      for key in keys(of: index) where !finder.isFinished {
        guard let files = index[key], !files.newest.isList, !blocked.contains(files.name),
          let bytes = try report.reading(key.text, { try bytes(of: files) })
        else { continue }
        finder.examine(Document(Array(bytes), id: key.text, revision: files.newest.revision))
      }
      return try finder.result().documents.compactMap { document in
        let key = document.id!
        let file = index[EntryKey(key)]!
        return try report.reading(key) {
          let value = try ReadableJSON.decode(T.self, Data(document.text), file: file.newest.fileName(file.name))
          return KeyValueEntry(key: key, value: .single(value))
        }
      }
    }
  }

  func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?] {
    try await reading { index, lock, report in
      try keys.map { text -> KeyValueEntry<T>? in
        let key = EntryKey(text)
        guard let value = try report.reading(text, { try value(of: key, index, lock) }), let files = index[key] else {
          return nil
        }
        return entry(key, files, value)
      }
    }
  }

  private func entry(_ key: EntryKey, _ files: EntryFileIndex.Files, _ value: StoredValue<T>) -> KeyValueEntry<T> {
    let (expiry, now) = (files.newest.expiry, now)
    let lifetime: Duration? = expiry == 0 ? nil : .milliseconds(expiry > now ? expiry - now : 0)
    return KeyValueEntry(key: key.text, value: value, revision: files.newest.revision, expiresIn: lifetime)
  }

  private func value(
    of key: EntryKey, _ index: EntryFileIndex, _ lock: DirectoryLock
  ) throws -> StoredValue<T>? {
    try checkIsNotBlocked(key, lock)
    return try index[key].flatMap(read)
  }

  private func read(_ files: EntryFileIndex.Files) throws -> StoredValue<T>? {
    try bytes(of: files).map { bytes in
      try EntryContent.decode(bytes, isList: files.newest.isList, file: files.newest.fileName(files.name))
    }
  }

  /// Returns the content of the file that counts; nil if the entry has expired.
  private func bytes(of files: EntryFileIndex.Files) throws -> Data? {
    try Task.checkCancellation()
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

  /// Runs a body that only reads, and reports the damaged entries that it finds. A server, or a person who cleans up,
  /// may remove files meanwhile; then the body runs again.
  private func reading<R>(
    _ body: (EntryFileIndex, DirectoryLock, inout DamageReport) throws -> R
  ) async throws -> R {
    let (result, report) = try await directory.withReadLock { lock in
      for _ in 0..<5 {
        let index = try currentIndex(lock)
        if index.hasJournal, try !directory.isJournalEmpty() {
          throw DataSourceError(
            .failed,
            "\(directory.path) is a server's store with unapplied writes in its journal: start the server to apply them"
          )
        }
        var report = DamageReport(damaged)
        do {
          let result = try body(index, lock, &report)
          return (result, report)
        } catch is FileRemovedError {
          cachedIndex.withLock { $0 = nil }
        }
      }
      throw DataSourceError(
        .failed, "files in \(directory.path) keep disappearing: another program is changing them")
    }
    report.send()
    return result
  }

  // MARK: - Writing

  func store(_ entries: [KeyValueEntry<T>]) async throws {
    let values = Dictionary(entries.map { (EntryKey($0.key), $0.value) }, uniquingKeysWith: { $1 })
    let contents = try values.mapValues { (isList: $0.list != nil, bytes: try EntryContent.encode($0)) }
    try await change { index, lock, revision in
      try contents.map { key, content in
        try checkIsNotBlocked(key, lock)
        return EntryChange(
          to: key, replacing: index[key], isList: content.isList, revision: revision, content: content.bytes)
      }
    }
  }

  /// Replaces the value under a key with the result of `body`, while no other caller can write.
  func update(_ key: String, _ body: (StoredValue<T>?) throws -> StoredValue<T>) async throws {
    let key = EntryKey(key)
    try await change { index, lock, revision in
      let value: StoredValue<T>
      do { value = try body(try self.value(of: key, index, lock)) } catch is FileRemovedError { value = try body(nil) }
      return [
        EntryChange(
          to: key, replacing: index[key], isList: value.list != nil, revision: revision,
          content: try EntryContent.encode(value))
      ]
    }
  }

  /// Executes a batch; see `KeyValueDataSource.commit`.
  func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64? {
    let contents = try batch.operations.map { operation -> Data? in
      guard case .put(_, let value, _, _) = operation else { return nil }
      return try EntryContent.encode(value)
    }
    return try await change { index, lock, revision in
      for operation in batch.operations {
        let key = EntryKey(operation.key)
        try checkIsNotBlocked(key, lock)
        let newest = index[key]?.newest
        let current = newest?.hasExpired(at: now) == false ? newest?.revision : nil
        try operation.condition.check(operation.key, hasRevision: current)
      }
      // The last operation on a key counts.
      var changes: [EntryKey: EntryChange] = [:]
      for (operation, content) in zip(batch.operations, contents) {
        let key = EntryKey(operation.key)
        if case .put(_, let value, _, let lifetime) = operation, let content {
          changes[key] = EntryChange(
            to: key, replacing: index[key], isList: value.list != nil, revision: revision,
            expiry: lifetime.map { now + $0.milliseconds } ?? 0, content: content)
        } else if case .delete = operation {
          changes[key] = index[key].map { EntryChange(removing: key, $0) }
        }
      }
      return Array(changes.values)
    }
  }

  func remove(_ keys: [String]) async throws {
    try await change { index, lock, _ in
      try Set(keys.map(EntryKey.init)).compactMap { key in
        try checkIsNotBlocked(key, lock)
        return index[key].map { EntryChange(removing: key, $0) }
      }
    }
  }

  func removeAll() async throws {
    try await change { index, lock, _ in
      for name in lock.blockedNames { if let error = lock.blockedError(name) { throw error } }
      return index.allFiles.map { EntryChange(removing: $0, $1) }
    }
  }

  /// Makes the changes that a body returns, all of them or none.
  /// - Returns: Their revision; nil if there are none.
  @discardableResult
  private func change(
    _ body: (EntryFileIndex, DirectoryLock, _ revision: UInt64) throws -> [EntryChange]
  ) async throws -> UInt64? {
    try await directory.withWriteLock { lock in
      let index = try currentIndex(lock)
      guard !index.hasJournal else {
        throw DataSourceError(.failed, "\(directory.path) is a server's store: write to it through the server")
      }
      guard let revision = index.nextRevision else {
        throw DataSourceError(.failed, "\(directory.path) has used up all revisions")
      }
      let changes = try body(index, lock, revision)
      guard !changes.isEmpty else { return nil }
      try lock.setRevision(revision)
      do {
        // A single new file replaces the old one by its greater revision, whatever a crash leaves behind.
        let isSingleWrite = changes.count == 1 && changes[0].isSingleWrite
        try lock.apply(changes.flatMap(\.fileChanges), atomically: !isSingleWrite)
        let version = EntryFileIndex.Version(revision: revision, folder: try directory.version())
        cachedIndex.withLock { index in
          for change in changes { change.update(&index) }
          index?.setVersion(version)
        }
        return revision
      } catch {
        cachedIndex.withLock { $0 = nil }
        throw error
      }
    }
  }

  // MARK: - Unfinished changes

  private func checkIsNotBlocked(_ key: EntryKey, _ lock: DirectoryLock) throws {
    guard !lock.blockedNames.isEmpty else { return }
    let entryName = EntryName(of: Array(key.text.utf8))
    for name in lock.blockedNames where self.entryName(ofFile: name) == entryName {
      if let error = lock.blockedError(name) { throw error }
    }
  }

  /// Reports the entries that an unfinished change should write or remove, and returns their names.
  @discardableResult
  private func reportBlockedEntries(_ lock: DirectoryLock, _ report: inout DamageReport) throws -> Set<EntryName> {
    var names: Set<EntryName> = []
    for file in lock.blockedNames {
      guard let name = entryName(ofFile: file), names.insert(name).inserted, let error = lock.blockedError(file) else {
        continue
      }
      let key = try name.key ?? directory.key(of: name) ?? Array(file.utf8)
      try report.add(DamagedEntry(key: String(decoding: key, as: UTF8.self), error: error))
    }
    return names
  }

  private func entryName(ofFile file: String) -> EntryName? {
    EntryVersion.read(file)?.name ?? EntryName(ofKeyFile: file)
  }

  /// Returns the index of the directory's current state.
  private func currentIndex(_ lock: DirectoryLock) throws -> EntryFileIndex {
    let version = EntryFileIndex.Version(revision: try lock.revision(), folder: try directory.version())
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
  /// - Parameter expiry: In milliseconds since 1970; 0 for never.
  init(
    to key: EntryKey, replacing old: EntryFileIndex.Files?, isList: Bool, revision: UInt64, expiry: UInt64 = 0,
    content: Data
  ) {
    self.key = key
    let bytes = Array(key.text.utf8)
    let name = old?.name ?? EntryName(of: bytes)
    let version = unsafe content.withUnsafeBytes {
      unsafe EntryVersion(of: name, isList: isList, revision: revision, expiry: expiry, value: $0)
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
