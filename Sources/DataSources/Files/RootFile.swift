import Foundation

/// Entries in one file, a JSON list of them in the order of their keys, which is itself an entry of a folder. Every call reads the file
/// whole, and one that writes also writes it whole: O(n), for few and small entries.
struct RootFile<T: Codable & Sendable>: EntryTable {
  private let folder: EntryFolder<[JSONEntry<T>]>
  private let key: String

  init(_ folder: Folder, name: String) {
    self.folder = EntryFolder(folder)
    key = "root-" + name
  }

  func entries(of keys: [String]) throws -> [StoredValue<T>?] {
    let values = try values()
    return keys.map { values[EntryKey($0)] }
  }

  func entries(in range: EntryRange) throws -> [KeyValueEntry<T>] {
    let values = try values()
    return range.slice(of: values.keys.sorted()).compactMap { key in
      values[key].map { KeyValueEntry(key: key.text, value: $0) }
    }
  }

  func store(_ entries: [KeyValueEntry<T>]) throws {
    try change { values in
      for entry in entries { values[EntryKey(entry.key)] = entry.value }
    }
  }

  func remove(_ keys: [String]) throws {
    try change { values in
      for key in keys { values[EntryKey(key)] = nil }
    }
  }

  func removeAll() throws { try folder.remove([key]) }

  private func values() throws -> [EntryKey: StoredValue<T>] { values(of: try folder.entries(of: [key])[0]) }

  private func values(of list: StoredValue<[JSONEntry<T>]>?) -> [EntryKey: StoredValue<T>] {
    Dictionary((list?.single ?? []).map { (EntryKey($0.entry.key), $0.entry.value) }, uniquingKeysWith: { $1 })
  }

  private func change(_ body: (inout [EntryKey: StoredValue<T>]) -> Void) throws {
    try folder.update(key) { list in
      var values = values(of: list)
      body(&values)
      return .single(
        values.sorted { $0.key < $1.key }.map { JSONEntry(KeyValueEntry(key: $0.text, value: $1)) })
    }
  }
}
