import EntryFiles

/// The files of a directory store's entries, so that the next write of a key can remove them.
struct DirectoryIndex {
  /// The current file of every entry.
  private(set) var versions: [[UInt8]: EntryVersion] = [:]
  /// The files to remove when a key is next written or deleted: replaced ones, and those that are not intact.
  private(set) var obsoleteFiles: [[UInt8]: [String]] = [:]
  /// The number of entries with an expiry.
  private var expiringCount = 0

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

  enum Operation {
    /// A put, with the CRC32C of the value.
    case put(Put, checksum: UInt32)
    case delete
  }

  var operations: [[UInt8]: Operation] = [:]
  /// Whether every key without an operation here is deleted.
  var deletesAll = false

  var isEmpty: Bool { operations.isEmpty && !deletesAll }

  func isDelete(_ key: [UInt8]) -> Bool {
    if case .delete? = operations[key] { return true }
    return false
  }

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
