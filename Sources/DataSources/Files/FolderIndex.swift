import EntryFiles
import Foundation

/// Which files in a folder of entries belong to which key (Protocol/directory-format.md, §2 and §3), as of one moment.
struct FolderIndex {
  /// The files of a key.
  struct Files {
    let name: EntryName
    /// The file of the greatest revision: the one that counts.
    var newest: EntryVersion
    /// What a crash has left of others.
    var older: [EntryVersion] = []

    var names: [String] { ([newest] + older).map { $0.fileName(name) } }
  }

  /// What the index was made of: it is current while both are the same.
  struct Stamp: Hashable {
    let revision: UInt64
    let change: FolderChange
  }

  private(set) var stamp: Stamp
  private(set) var files: [EntryKey: Files] = [:]
  /// Whether a server has kept a store in the folder.
  let hasJournal: Bool
  private(set) var greatestRevision: UInt64
  private(set) var hasExpiries = false
  /// The keys in order; nil since one came or went.
  private var order: [EntryKey]?

  /// Lists the folder. O(n).
  init(_ folder: Folder, _ stamp: Stamp) throws {
    self.stamp = stamp
    greatestRevision = stamp.revision
    hasJournal = try folder.contains(Folder.journalName)
    var versions: [EntryName: [EntryVersion]] = [:]
    for fileName in try folder.names() {
      guard let (name, version) = EntryVersion.read(fileName) else { continue }
      versions[name, default: []].append(version)
    }
    for (name, versions) in versions {
      // An entry whose key nobody knows is none.
      guard let key = try name.key ?? folder.key(of: name), let text = String(validating: key, as: UTF8.self) else {
        continue
      }
      let versions = versions.sorted { $0.revision > $1.revision }
      greatestRevision = max(greatestRevision, versions[0].revision)
      if versions[0].expiry != 0 { hasExpiries = true }
      files[EntryKey(text)] = Files(name: name, newest: versions[0], older: Array(versions.dropFirst()))
    }
  }

  mutating func orderedKeys() -> [EntryKey] {
    if let order { return order }
    let keys = files.keys.sorted()
    order = keys
    return keys
  }

  /// The file of a key is another now, or gone.
  mutating func set(_ key: EntryKey, _ file: Files?) {
    let old = files[key]
    files[key] = file
    if (old == nil) != (file == nil) { order = nil }
  }

  mutating func setStamp(_ stamp: Stamp) {
    self.stamp = stamp
    greatestRevision = max(greatestRevision, stamp.revision)
  }
}

extension Folder {
  static let journalName = ".journal"

  /// The key of a name that is a digest; nil when the file that should hold it doesn't.
  func key(of name: EntryName) throws -> [UInt8]? {
    guard let bytes = try bytes(of: name.keyFileName).map(Array.init), bytes.count <= maxKeyBytes else {
      return nil
    }
    return EntryName(of: bytes) == name ? bytes : nil
  }

  /// Whether all that a server has put into the store here is in the entries' files (Protocol/directory-format.md, §5): there is no frame
  /// in its journal.
  func isJournalEmpty() throws -> Bool {
    guard let file = try open(Folder.journalName, O_RDONLY) else { return true }
    return try failing("read", Folder.journalName) {
      try file.seek(toOffset: 1_024)
      return try file.read(upToCount: 4) == Data(count: 4)
    }
  }
}
