import EntryFiles
import Platform

/// Which files in a directory of entries belong to which key (Protocol/directory-format.md, §2 and §3), at one point in
/// time.
struct EntryFileIndex {
  /// The files of one key.
  struct Files {
    let name: EntryName
    /// The file with the greatest revision: the one that counts.
    let newest: EntryVersion
    /// Older files that a crash left behind.
    private var older: [EntryVersion] = []

    /// - Parameter versions: At least one, in descending order of their revisions.
    fileprivate init(name: EntryName, versions: [EntryVersion]) {
      self.name = name
      newest = versions[0]
      older = Array(versions.dropFirst())
    }

    init(name: EntryName, version: EntryVersion) {
      self.name = name
      newest = version
    }

    var fileNames: [String] { ([newest] + older).map { $0.fileName(name) } }
  }

  /// The state of the directory that an index describes. The index is current while the directory has the same version.
  struct Version: Hashable {
    let revision: UInt64
    let folder: FolderVersion
  }

  /// Whether the directory is the store of a server.
  let hasJournal: Bool
  private var version: Version
  private var maxRevision: UInt64
  private var files: [EntryKey: Files] = [:]
  private var hasExpiries = false
  /// The keys in order; nil if a key has been added or removed since they were sorted.
  private var sortedKeys: [EntryKey]?

  /// Lists a directory. O(n).
  init(_ directory: SharedDirectory, _ version: Version) throws {
    self.version = version
    maxRevision = version.revision
    hasJournal = try directory.contains(SharedDirectory.journalName)
    var versions: [EntryName: [EntryVersion]] = [:]
    for fileName in try directory.names() {
      guard let (name, version) = EntryVersion.read(fileName) else { continue }
      versions[name, default: []].append(version)
    }
    for (name, versions) in versions {
      // A file whose key is unknown is not an entry.
      guard let key = try name.key ?? directory.key(of: name), let text = String(validating: key, as: UTF8.self) else {
        continue
      }
      let files = Files(name: name, versions: versions.sorted { $0.revision > $1.revision })
      maxRevision = max(maxRevision, files.newest.revision)
      if files.newest.expiry != 0 { hasExpiries = true }
      self.files[EntryKey(text)] = files
    }
  }

  /// Returns whether this is the index of a version of the directory.
  func isOf(_ version: Version) -> Bool { self.version == version }

  /// Returns whether this index and another are of the same version.
  func hasSameVersion(as other: EntryFileIndex) -> Bool { version == other.version }

  /// The revision of the next change; nil if all revisions are used up.
  var nextRevision: UInt64? { maxRevision < EntryVersion.revisions.upperBound ? maxRevision + 1 : nil }

  subscript(key: EntryKey) -> Files? { files[key] }

  var allFiles: [EntryKey: Files] { files }

  /// Sorts the keys, unless they are sorted already.
  mutating func sortKeys() {
    if sortedKeys == nil { sortedKeys = files.keys.sorted() }
  }

  /// Returns the keys of the entries that haven't expired, in order.
  /// - Parameter time: The current time, in milliseconds since 1970.
  func keys(at time: UInt64) -> [EntryKey] {
    let keys = sortedKeys ?? files.keys.sorted()
    return hasExpiries ? keys.filter { files[$0]?.newest.hasExpired(at: time) == false } : keys
  }

  /// Replaces the files of a key; nil if it has none any more.
  mutating func update(_ key: EntryKey, _ newFiles: Files?) {
    let old = files[key]
    files[key] = newFiles
    if let newFiles, newFiles.newest.expiry != 0 { hasExpiries = true }
    if (old == nil) != (newFiles == nil) { sortedKeys = nil }
  }

  mutating func setVersion(_ version: Version) {
    self.version = version
    maxRevision = max(maxRevision, version.revision)
  }
}

extension SharedDirectory {
  fileprivate static let journalName = ".journal"
  /// The offset of the first frame in a journal.
  private static let journalStart = 1_024

  /// Returns the key of a name that is a digest; nil if the file that should contain the key doesn't.
  func key(of name: EntryName) throws -> [UInt8]? {
    // One byte more than the maximum reveals that the file is too long.
    guard let bytes = try bytes(of: name.keyFileName, at: 0, count: maxKeyBytes + 1), bytes.count <= maxKeyBytes else {
      return nil
    }
    return EntryName(of: bytes) == name ? bytes : nil
  }

  /// Returns whether all writes of a server are in the entries' files (Protocol/directory-format.md, §5): none of its
  /// journals has frames.
  func isJournalEmpty() throws -> Bool {
    let journals = try allNames().filter { $0.hasPrefix(Self.journalName + "-") }
    // The file of this name is a list of the others, or in version 2 of the format the only journal.
    let only = try bytes(of: Self.journalName, at: 0, count: 8) == Array("LRDRDIR2".utf8) ? [Self.journalName] : []
    return try (journals + only).allSatisfy { name in
      try bytes(of: name, at: Self.journalStart, count: 4) ?? [0, 0, 0, 0] == [0, 0, 0, 0]
    }
  }
}
