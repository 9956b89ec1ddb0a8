import Documents
import EntryFiles
import FoundationEssentials

/// A key-value source whose values are files: a file contains the bytes of a single value, and its name is the key.
///
/// In a file's name, a capital letter is written as `^` and the small letter, and a byte that a shell doesn't show
/// plainly as `%` and two hexadecimal digits. If a key is too long for a name, the name has only its beginning, and a
/// second file beside it contains the whole key. A list is a JSON file.
///
/// When a write returns, it is on the disk. Writes of several entries are atomic to readers and across a crash. Files
/// from elsewhere with a suitable name are entries, too.
///
/// A call for keys is O(1) per key. A call for everything or for a page is O(n log n) in the number of entries, and
/// reads what it returns.
///
/// Calls work on a few threads of their own, and a task that waits for the disk or for a lock blocks no thread that
/// other tasks need. A task that is cancelled while it waits throws `CancellationError`, and so does one that has not
/// begun to change the directory; later, the change is completed.
///
/// Calls throw `DataSourceError.failed` if the disk reports an error or others use the directory for too long. If
/// something is in the way of a file, the call changes nothing and says what to move. A directory that this process
/// can't change can be read.
public struct FileSystemDataSource: KeyValueDataSource {
  public typealias T = Data

  // The directory engine's rules for names apply (Protocol/directory-format.md, §2). No key's name ends in "%list",
  // because in such a name two digits follow each "%".
  private static let listSuffix = "%list"

  private let directory: SharedDirectory
  private let damaged: DamagedEntries

  /// - Parameters:
  ///   - directory: The first call creates it, readable for its owner only, if it doesn't exist. It can't be inside the
  ///     directory of another source, nor another one inside it: then calls throw `DataSourceError.illegalArgument`.
  ///   - damaged: What calls for several entries do about damaged ones: lists that were edited.
  ///   - lockTimeout: How long a call waits while other calls and processes use the directory.
  public init(directory: URL, damaged: DamagedEntries = .fail, lockTimeout: Duration = .seconds(30)) {
    self.directory = SharedDirectory(path: directory.path, lockTimeout: lockTimeout)
    self.damaged = damaged
  }

  // MARK: - Reading

  public func entry(of key: String) async throws -> StoredValue<Data>? {
    let name = name(of: try checked(key))
    return try await directory.withReadLock { lock in try value(of: name, lock) }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<Data>?] {
    let keys = try checked(keys)
    return try await reading { lock, report in
      try keys.map { key in try report.reading(key) { try value(of: name(of: key), lock) } }
    }
  }

  /// Returns the keys that begin with a prefix, in the order of their bytes. Reads no entries.
  public func keys(prefix: String) async throws -> [String] {
    try await reading { lock, report in
      EntryRange.prefix(prefix).slice(of: try namesByKey(lock, &report).keys.sorted()).map(\.text)
    }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<Data>] {
    let range = try checked(range)
    return try await reading { lock, report in
      let names = try namesByKey(lock, &report)
      return try range.slice(of: names.keys.sorted()).compactMap { key in
        try report.reading(key.text) { try names[key].flatMap { try value(of: $0, lock) } }
          .map { KeyValueEntry(key: key.text, value: $0) }
      }
    }
  }

  public func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<Data>] {
    let emptyFinder = try DocumentFinder(query, isOrdered: true)
    return try await reading { lock, report in
      var finder = emptyFinder
      let names = try namesByKey(lock, &report)
      for key in names.keys.sorted() where !finder.isFinished {
        let value = try report.reading(key.text) { try names[key].flatMap { try self.value(of: $0, lock) } }
        if let bytes = value?.single { finder.examine(Document(Array(bytes), id: key.text)) }
      }
      return finder.result().documents.map { KeyValueEntry(key: $0.id!, value: .single(Data($0.text))) }
    }
  }

  /// Runs a body that only reads, and reports the damaged entries that it finds.
  private func reading<R>(_ body: (DirectoryLock, inout DamageReport) throws -> R) async throws -> R {
    let (result, report) = try await directory.withReadLock { lock in
      var report = DamageReport(damaged)
      let result = try body(lock, &report)
      return (result, report)
    }
    report.send()
    return result
  }

  private func value(of name: EntryName, _ lock: DirectoryLock) throws -> StoredValue<Data>? {
    try Task.checkCancellation()
    let list = name.text + Self.listSuffix
    if let error = lock.blockedError(name.text) ?? lock.blockedError(list) { throw error }
    if let bytes = try directory.bytes(of: name.text) { return .single(bytes) }
    return try directory.bytes(of: list).map { .list(try ReadableJSON.decode([Data].self, $0, file: list)) }
  }

  /// Returns the names of all entries but those that an unfinished change should write or remove, which it reports.
  private func namesByKey(_ lock: DirectoryLock, _ report: inout DamageReport) throws -> [EntryKey: EntryName] {
    var names = try namesByKey()
    for file in lock.blockedNames {
      guard let error = lock.blockedError(file), let key = try key(ofFile: file)?.key else { continue }
      names[key] = nil
      try report.add(DamagedEntry(key: key.text, error: error))
    }
    return names
  }

  private func namesByKey() throws -> [EntryKey: EntryName] {
    var names: [EntryKey: EntryName] = [:]
    for file in try directory.names() {
      if let (key, name) = try key(ofFile: file) { names[key] = name }
    }
    return names
  }

  private func key(ofFile file: String) throws -> (key: EntryKey, name: EntryName)? {
    guard EntryName(ofKeyFile: file) == nil else { return nil }
    let text = file.hasSuffix(Self.listSuffix) ? String(file.dropLast(Self.listSuffix.count)) : file
    guard let name = EntryName(reading: text), let bytes = try name.key ?? directory.key(of: name),
      let key = String(validating: bytes, as: UTF8.self)
    else { return nil }
    return (EntryKey(key), name)
  }

  // MARK: - Writing

  public func store(_ entries: [KeyValueEntry<Data>]) async throws {
    let values = Dictionary(try checked(entries).map { (EntryKey($0.key), $0.value) }, uniquingKeysWith: { $1 })
    try await directory.withWriteLock { lock in
      try lock.apply(values.flatMap { try changes(storing: $1, of: $0.text, lock) }, atomically: true)
    }
  }

  public func remove(_ keys: [String]) async throws {
    let keys = try checked(keys)
    try await directory.withWriteLock { lock in
      let files = Set(try keys.flatMap { try existingFiles(of: name(of: $0), lock) })
      try lock.apply(files.map(FileChange.remove), atomically: true)
    }
  }

  public func removeAll() async throws {
    try await directory.withWriteLock { lock in
      for name in lock.blockedNames { if let error = lock.blockedError(name) { throw error } }
      let files = try namesByKey().values.flatMap { try existingFiles(of: $0, lock) }
      try lock.apply(files.map(FileChange.remove), atomically: true)
    }
  }

  private func name(of key: String) -> EntryName { EntryName(of: Array(key.utf8)) }

  private func changes(storing value: StoredValue<Data>, of key: String, _ lock: DirectoryLock) throws -> [FileChange] {
    let name = name(of: key)
    let keyFile: [FileChange] = name.isDigest ? [.write(name.keyFileName, Data(key.utf8))] : []
    let (bytes, suffix, otherSuffix) =
      switch value {
      case .single(let bytes): (bytes, "", Self.listSuffix)
      case .list(let elements): (try ReadableJSON.encode(elements), Self.listSuffix, "")
      }
    let other = name.text + otherSuffix
    if let error = lock.blockedError(other) { throw error }
    return keyFile + [.write(name.text + suffix, bytes)] + (try directory.contains(other) ? [.remove(other)] : [])
  }

  private func existingFiles(of name: EntryName, _ lock: DirectoryLock) throws -> [String] {
    let names = [name.text, name.text + Self.listSuffix] + (name.isDigest ? [name.keyFileName] : [])
    for name in names { if let error = lock.blockedError(name) { throw error } }
    return try names.filter { try directory.contains($0) }
  }
}
