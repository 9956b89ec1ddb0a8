import EntryFiles

/// Which files a directory store's entries are in, so that the next write of a key can remove them.
struct DirectoryIndex {
  /// The file of every entry.
  private(set) var versions: [[UInt8]: EntryVersion] = [:]
  /// Files of a key that are to go when it is next written or deleted: replaced ones, and such as aren't intact.
  private(set) var others: [[UInt8]: [String]] = [:]
  /// How many entries have an expiry.
  private(set) var expiringCount = 0

  var keys: [[UInt8]] { Array(versions.keys) + others.keys.filter { versions[$0] == nil } }

  /// The file of that version is the key's now; the one before it is to go.
  mutating func set(_ key: [UInt8], _ version: EntryVersion) {
    let old = versions.updateValue(version, forKey: key)
    expiringCount += (version.expiry == 0 ? 0 : 1) - (old?.expiry ?? 0 == 0 ? 0 : 1)
    if let old, old != version { others[key, default: []].append(old.fileName(EntryName(of: key))) }
  }

  mutating func add(_ fileName: String, toRemoveWith key: [UInt8]) { others[key, default: []].append(fileName) }

  /// The entry is gone; its file is to go.
  mutating func remove(_ key: [UInt8]) {
    guard let old = versions.removeValue(forKey: key) else { return }
    if old.expiry != 0 { expiringCount -= 1 }
    others[key, default: []].append(old.fileName(EntryName(of: key)))
  }

  /// The file of the key's entry.
  func fileName(of key: [UInt8]) -> String? { versions[key]?.fileName(EntryName(of: key)) }

  /// The other files of the key are gone.
  mutating func forgetOthers(of key: [UInt8]) { others[key] = nil }

  func expired(at wall: UInt64) -> [[UInt8]] {
    expiringCount == 0 ? [] : versions.filter { $0.value.hasExpired(at: wall) }.map(\.key)
  }
}
