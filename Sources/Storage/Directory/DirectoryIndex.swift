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
