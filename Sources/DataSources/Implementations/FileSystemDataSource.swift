import Documents
import EntryFiles
import Foundation

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
/// reads what it returns. Calls block their thread for as long as the disk takes, and throw `DataSourceError.failed` if
/// the disk reports an error.
public struct FileSystemDataSource: KeyValueDataSource {
  public typealias T = Data

  // The directory engine's rules for names apply (Protocol/directory-format.md, §2). No key's name ends in "%list",
  // because in such a name two digits follow each "%".
  private static let listSuffix = "%list"

  private let directory: SharedDirectory

  /// - Parameter directory: The first call creates it, readable for its owner only, if it doesn't exist.
  public init(directory: URL) {
    self.directory = SharedDirectory(path: directory.path)
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<Data>?] {
    try directory.withReadLock { _ in try keys.map { try value(of: name(of: $0)) } }
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<Data>] {
    try directory.withReadLock { _ in
      let names = try namesByKey()
      return try range.slice(of: names.keys.sorted()).compactMap { key in
        try names[key].flatMap(value).map { KeyValueEntry(key: key.text, value: $0) }
      }
    }
  }

  public func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<Data>] {
    try directory.withReadLock { _ in
      var finder = try DocumentFinder(query, isOrdered: true)
      let names = try namesByKey()
      for key in names.keys.sorted() where !finder.isFinished {
        guard let bytes = try names[key].flatMap(value)?.single else { continue }
        finder.examine(Document(Array(bytes), id: key.text))
      }
      return finder.result().documents.map { KeyValueEntry(key: $0.id!, value: .single(Data($0.text))) }
    }
  }

  public func store(_ entries: [KeyValueEntry<Data>]) async throws {
    let values = Dictionary(entries.map { (EntryKey($0.key), $0.value) }, uniquingKeysWith: { $1 })
    try directory.withWriteLock { _ in
      try directory.apply(values.flatMap { try changes(storing: $1, of: $0.text) }, atomically: true)
    }
  }

  public func remove(_ keys: [String]) async throws {
    try directory.withWriteLock { _ in
      let files = Set(try keys.flatMap { try existingFiles(of: name(of: $0)) })
      try directory.apply(files.map(FileChange.remove), atomically: true)
    }
  }

  public func removeAll() async throws {
    try directory.withWriteLock { _ in
      let files = try namesByKey().values.flatMap(existingFiles)
      try directory.apply(files.map(FileChange.remove), atomically: true)
    }
  }

  private func name(of key: String) -> EntryName { EntryName(of: Array(key.utf8)) }

  private func changes(storing value: StoredValue<Data>, of key: String) throws -> [FileChange] {
    let name = name(of: key)
    let keyFile: [FileChange] = name.isDigest ? [.write(name.keyFileName, Data(key.utf8))] : []
    let (bytes, suffix, otherSuffix) =
      switch value {
      case .single(let bytes): (bytes, "", Self.listSuffix)
      case .list(let elements): (try ReadableJSON.encode(elements), Self.listSuffix, "")
      }
    let other = name.text + otherSuffix
    return keyFile + [.write(name.text + suffix, bytes)] + (try directory.contains(other) ? [.remove(other)] : [])
  }

  private func existingFiles(of name: EntryName) throws -> [String] {
    let names = [name.text, name.text + Self.listSuffix] + (name.isDigest ? [name.keyFileName] : [])
    return try names.filter { try directory.contains($0) }
  }

  private func value(of name: EntryName) throws -> StoredValue<Data>? {
    if let bytes = try directory.bytes(of: name.text) { return .single(bytes) }
    let list = name.text + Self.listSuffix
    return try directory.bytes(of: list).map { .list(try ReadableJSON.decode([Data].self, $0, file: list)) }
  }

  private func namesByKey() throws -> [EntryKey: EntryName] {
    var names: [EntryKey: EntryName] = [:]
    for file in try directory.names() where EntryName(ofKeyFile: file) == nil {
      let text = file.hasSuffix(Self.listSuffix) ? String(file.dropLast(Self.listSuffix.count)) : file
      guard let name = EntryName(reading: text), let bytes = try name.key ?? directory.key(of: name),
        let key = String(validating: bytes, as: UTF8.self)
      else { continue }
      names[EntryKey(key)] = name
    }
    return names
  }
}
