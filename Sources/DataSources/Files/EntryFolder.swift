import Foundation

/// Entries in a folder, one file each.
///
/// A call for keys is O(1) a key; one for a range lists the folder, O(n log n), and reads the files of the range only.
struct EntryFolder<Format: EntryFileFormat>: EntryTable {
  typealias T = Format.T

  let folder: Folder
  let format: Format

  func entries(of keys: [String]) throws -> [StoredValue<T>?] {
    try folder.reading { try keys.map { try entry(of: $0)?.value } }
  }

  func entries(in range: EntryRange) throws -> [KeyValueEntry<T>] {
    try folder.reading {
      let files = try namesByKey()
      return try range.slice(of: files.keys.sorted()).compactMap { key in
        try files[key].flatMap { try read($0) }
      }
    }
  }

  func store(_ entries: [KeyValueEntry<T>]) throws {
    let entries = Dictionary(entries.map { (EntryKey($0.key), $0) }, uniquingKeysWith: { $1 }).values
    let files = try entries.map { entry in (entry.key, try format.file(of: entry)) }
    try folder.writing {
      var changes: [FileChange] = []
      for (key, file) in files {
        changes.append(.write(file.name, file.bytes))
        changes += try existingNames(of: key).filter { $0 != file.name }.map(FileChange.remove)
      }
      try folder.apply(changes)
    }
  }

  func remove(_ keys: [String]) throws {
    try folder.writing {
      try folder.apply(Set(keys.flatMap { try existingNames(of: $0) }).map(FileChange.remove))
    }
  }

  func removeAll() throws {
    try folder.writing {
      try folder.apply(folder.names().filter { format.key(of: $0) != .none }.map(FileChange.remove))
    }
  }

  private func existingNames(of key: String) throws -> [String] {
    try format.names(of: key).filter { try folder.contains($0) }
  }

  private func entry(of key: String) throws -> KeyValueEntry<T>? {
    for name in try format.names(of: key) {
      guard let entry = try read(name) else { continue }
      guard EntryKey(entry.key) == EntryKey(key) else {
        throw DataSourceError(.dataSerialization, "\(folder.path(of: name)) is the file of another key")
      }
      return entry
    }
    return nil
  }

  private func read(_ name: String) throws -> KeyValueEntry<T>? {
    try folder.bytes(of: name).map { try format.entry(of: name, $0) }
  }

  private func namesByKey() throws -> [EntryKey: String] {
    var files: [EntryKey: String] = [:]
    for name in try folder.names() {
      switch format.key(of: name) {
      case .known(let key): files[EntryKey(key)] = name
      case .inside: if let entry = try read(name) { files[EntryKey(entry.key)] = name }
      case .none: continue
      }
    }
    return files
  }
}
