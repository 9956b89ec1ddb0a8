import Foundation

/// Files of one JSON entry each, with names that end in `.json`.
struct JSONEntryFormat<T: Codable & Sendable>: EntryFileFormat {
  private static var ending: String { ".json" }

  func names(of key: String) -> [String] { [EntryFileName.name(of: key) + Self.ending] }

  func file(of entry: KeyValueEntry<T>) throws -> (name: String, bytes: Data) {
    (EntryFileName.name(of: entry.key) + Self.ending, try ReadableJSON.encode(JSONEntry(entry)))
  }

  func key(of name: String) -> FileKey {
    guard name.hasSuffix(Self.ending) else { return .none }
    let name = String(name.dropLast(Self.ending.count))
    if name.first == EntryFileName.digestMark { return .inside }
    return EntryFileName.key(of: name).map(FileKey.known) ?? .none
  }

  func entry(of name: String, _ bytes: Data) throws -> KeyValueEntry<T> {
    try ReadableJSON.decode(JSONEntry<T>.self, bytes, file: name).entry
  }
}
