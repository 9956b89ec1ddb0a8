import Foundation

/// Files that are the values' own bytes. A list is a file of JSON with its elements in base64, whose name ends in `%list`: no escaped key
/// has a `%` that two digits don't follow.
struct RawEntryFormat: EntryFileFormat {
  private static let listEnding = "%list"

  func names(of key: String) throws -> [String] {
    let name = EntryFileName.escaped(key)
    guard name.utf8.count <= EntryFileName.longestBytes else {
      throw DataSourceError(.illegalArgument, "a key whose file's name would be \(name.utf8.count) bytes long")
    }
    return [name, name + Self.listEnding]
  }

  func file(of entry: KeyValueEntry<Data>) throws -> (name: String, bytes: Data) {
    let names = try names(of: entry.key)
    return switch entry.value {
    case .single(let bytes): (names[0], bytes)
    case .list(let elements): (names[1], try ReadableJSON.encode(elements))
    }
  }

  func key(of name: String) -> FileKey {
    let isList = name.hasSuffix(Self.listEnding)
    let escaped = isList ? String(name.dropLast(Self.listEnding.count)) : name
    return EntryFileName.key(of: escaped).map(FileKey.known) ?? .none
  }

  func entry(of name: String, _ bytes: Data) throws -> KeyValueEntry<Data> {
    guard case .known(let key) = key(of: name) else {
      throw DataSourceError(.dataSerialization, "\(name) is no entry's file")
    }
    guard name.hasSuffix(Self.listEnding) else { return KeyValueEntry(key: key, value: .single(bytes)) }
    return KeyValueEntry(key: key, value: .list(try ReadableJSON.decode([Data].self, bytes, file: name)))
  }
}
