import EntryFiles

/// The files of a directory store's entries, so that the next write of a key can remove them.
struct DirectoryIndex {
  /// The current file of every entry.
  private var versions: [[UInt8]: EntryVersion] = [:]
  /// The files to remove when a key is next written or deleted: replaced ones, and those that are not intact.
  private var obsoleteFiles: [[UInt8]: [String]] = [:]
  /// The number of entries with an expiry.
  private var expiringCount = 0

  /// The number of entries.
  var count: Int { versions.count }

  var keys: [[UInt8]] { Array(versions.keys) + obsoleteFiles.keys.filter { versions[$0] == nil } }

  /// Makes the file of that version the key's current one, and the previous one obsolete.
  mutating func set(_ key: [UInt8], _ version: EntryVersion) {
    let old = versions.updateValue(version, forKey: key)
    expiringCount += (version.expiry == 0 ? 0 : 1) - (old?.expiry ?? 0 == 0 ? 0 : 1)
    if let old, old != version { obsoleteFiles[key, default: []].append(old.fileName(EntryName(of: key))) }
  }

  mutating func addObsoleteFile(_ fileName: String, of key: [UInt8]) {
    obsoleteFiles[key, default: []].append(fileName)
  }

  /// Removes an entry, and makes its file obsolete.
  mutating func remove(_ key: [UInt8]) {
    guard let old = versions.removeValue(forKey: key) else { return }
    if old.expiry != 0 { expiringCount -= 1 }
    obsoleteFiles[key, default: []].append(old.fileName(EntryName(of: key)))
  }

  /// Returns the name of the key's current file.
  func fileName(of key: [UInt8]) -> String? { versions[key]?.fileName(EntryName(of: key)) }

  /// Returns the names of the key's files that the next write of the key removes.
  func obsoleteFileNames(of key: [UInt8]) -> [String] {
    let current = fileName(of: key)
    return (obsoleteFiles[key] ?? []).filter { $0 != current }
  }

  /// Returns whether the key has an entry.
  func contains(_ key: [UInt8]) -> Bool { versions[key] != nil }

  /// Forgets the obsolete files of a key, which have been removed.
  mutating func forgetObsoleteFiles(of key: [UInt8]) { obsoleteFiles[key] = nil }

  func expired(at wall: UInt64) -> [[UInt8]] {
    expiringCount == 0 ? [] : versions.filter { $0.value.hasExpired(at: wall) }.map(\.key)
  }
}

/// The operations that the write-ahead log has and the entries' files may not have: the last one for every key.
struct PendingOperations {
  struct Put {
    let kind: EntryKind
    let revision: UInt64
    /// In milliseconds since 1970; 0 for never.
    let expiry: UInt64
    /// The position of the value in the log.
    let value: Range<Int>
  }

  private enum Operation {
    /// A put, with the CRC32C of the value.
    case put(Put, checksum: UInt32)
    case delete
  }

  private var operations: [[UInt8]: Operation] = [:]
  /// Whether every key without an operation here is deleted.
  private var deletesAll = false

  var isEmpty: Bool { operations.isEmpty && !deletesAll }

  /// The number of operations on single keys.
  var count: Int { operations.count }

  /// The puts by their keys, in no particular order.
  var puts: [(key: [UInt8], put: Put)] {
    operations.compactMap { key, operation in
      guard case .put(let put, _) = operation else { return nil }
      return (key, put)
    }
  }

  /// Returns up to that many keys with operations.
  func keys(limit: Int) -> [[UInt8]] { Array(operations.keys.prefix(limit)) }

  /// Returns the pending put of a key, with the CRC32C of its value; nil if there is none.
  func put(of key: [UInt8]) -> (put: Put, checksum: UInt32)? {
    guard case .put(let put, let checksum)? = operations[key] else { return nil }
    return (put, checksum)
  }

  /// Returns whether the files of a key are out of date.
  func affects(_ key: [UInt8]) -> Bool { operations[key] != nil || deletesAll }

  func isDelete(_ key: [UInt8]) -> Bool {
    if case .delete? = operations[key] { return true }
    return false
  }

  /// Deletes the entry of a key without a pending operation.
  mutating func deleteUnlessPending(_ key: [UInt8]) {
    if operations[key] == nil { operations[key] = .delete }
  }

  /// Turns the deletion of all entries into one deletion for each of the existing keys.
  mutating func expandDeleteAll(_ keys: @autoclosure () -> [[UInt8]]) {
    guard deletesAll else { return }
    for key in keys() { deleteUnlessPending(key) }
    deletesAll = false
  }

  /// Forgets the operation of a key, because its files are up to date or the log can't be trusted about it.
  mutating func forget(_ key: [UInt8]) { operations[key] = nil }

  /// - Parameter start: The offset in the log of the bytes from which the operation was read.
  mutating func add(_ operation: CommitOperation, at start: Int) {
    let key = unsafe Array(operation.key)
    switch operation.kind {
    case .single, .list:
      let valueStart = start + operation.valueOffset
      let byteCount = unsafe operation.value.count
      operations[key] = .put(
        Put(
          kind: operation.kind == .list ? .list : .single, revision: operation.revision, expiry: operation.expiry,
          value: valueStart..<valueStart + byteCount),
        checksum: operation.valueChecksum)
    case .delete: operations[key] = .delete
    case .deleteAll:
      operations.removeAll()
      deletesAll = true
    }
  }
}
