import EntryFiles
import Foundation

/// Values in a folder as they are, a file each, which is named for its key as the directory engine names it (Protocol/directory-format.md,
/// §2) and for nothing else. A list is a file of JSON with its elements in base64, whose name ends in `%list`: no key's name has a `%` that
/// two digits don't follow.
struct RawFolder: EntryTable {
  private static let listEnding = "%list"

  let folder: Folder

  func entries(of keys: [String]) throws -> [StoredValue<Data>?] {
    try folder.reading { _ in try keys.map { try value(of: name(of: $0)) } }
  }

  func entries(in range: EntryRange) throws -> [KeyValueEntry<Data>] {
    try folder.reading { _ in
      let files = try namesByKey()
      return try range.slice(of: files.keys.sorted()).compactMap { key in
        try files[key].flatMap(value).map { KeyValueEntry(key: key.text, value: $0) }
      }
    }
  }

  func store(_ entries: [KeyValueEntry<Data>]) throws {
    let values = Dictionary(entries.map { (EntryKey($0.key), $0.value) }, uniquingKeysWith: { $1 })
    try folder.writing { _ in
      try folder.apply(values.flatMap { try changes(storing: $1, of: $0.text) }, together: true)
    }
  }

  func remove(_ keys: [String]) throws {
    try folder.writing { _ in
      let files = Set(try keys.flatMap { try existingFiles(of: name(of: $0)) })
      try folder.apply(files.map(FileChange.remove), together: true)
    }
  }

  func removeAll() throws {
    try folder.writing { _ in
      let files = try namesByKey().values.flatMap(existingFiles)
      try folder.apply(files.map(FileChange.remove), together: true)
    }
  }

  private func name(of key: String) -> EntryName { EntryName(of: Array(key.utf8)) }

  private func changes(storing value: StoredValue<Data>, of key: String) throws -> [FileChange] {
    let name = name(of: key)
    let keyFile: [FileChange] = name.isDigest ? [.write(name.keyFileName, Data(key.utf8))] : []
    let (bytes, ending, otherEnding) =
      switch value {
      case .single(let bytes): (bytes, "", Self.listEnding)
      case .list(let elements): (try ReadableJSON.encode(elements), Self.listEnding, "")
      }
    let other = name.text + otherEnding
    return keyFile + [.write(name.text + ending, bytes)] + (try folder.contains(other) ? [.remove(other)] : [])
  }

  private func existingFiles(of name: EntryName) throws -> [String] {
    let names = [name.text, name.text + Self.listEnding] + (name.isDigest ? [name.keyFileName] : [])
    return try names.filter { try folder.contains($0) }
  }

  private func value(of name: EntryName) throws -> StoredValue<Data>? {
    if let bytes = try folder.bytes(of: name.text) { return .single(bytes) }
    let list = name.text + Self.listEnding
    return try folder.bytes(of: list).map { .list(try ReadableJSON.decode([Data].self, $0, file: list)) }
  }

  private func namesByKey() throws -> [EntryKey: EntryName] {
    var names: [EntryKey: EntryName] = [:]
    for file in try folder.names() where EntryName(ofKeyFile: file) == nil {
      let text = file.hasSuffix(Self.listEnding) ? String(file.dropLast(Self.listEnding.count)) : file
      guard let name = EntryName(reading: text), let bytes = try name.key ?? folder.key(of: name),
        let key = String(validating: bytes, as: UTF8.self)
      else { continue }
      names[EntryKey(key)] = name
    }
    return names
  }
}
