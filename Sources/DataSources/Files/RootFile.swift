import Foundation

/// Entries in one file, a JSON list of them in the order of their keys. Every call reads the file whole, and one that writes also writes
/// it whole: O(n), for few and small entries.
struct RootFile<T: Codable & Sendable>: EntryTable {
  let folder: Folder
  let name: String

  func entries(of keys: [String]) throws -> [StoredValue<T>?] {
    let values = try folder.reading { try load() }
    return keys.map { values[EntryKey($0)] }
  }

  func entries(in range: EntryRange) throws -> [KeyValueEntry<T>] {
    let values = try folder.reading { try load() }
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

  func removeAll() throws {
    try folder.writing {
      if try folder.contains(name) { try folder.apply([.remove(name)]) }
    }
  }

  private func change(_ body: (inout [EntryKey: StoredValue<T>]) -> Void) throws {
    try folder.writing {
      var values = try load()
      body(&values)
      let entries = values.sorted { $0.key < $1.key }.map { key, value in
        JSONEntry(KeyValueEntry(key: key.text, value: value))
      }
      try folder.apply([.write(name, ReadableJSON.encode(entries))])
    }
  }

  private func load() throws -> [EntryKey: StoredValue<T>] {
    guard let bytes = try folder.bytes(of: name) else { return [:] }
    let entries = try ReadableJSON.decode([JSONEntry<T>].self, bytes, file: name)
    return Dictionary(entries.map { (EntryKey($0.entry.key), $0.entry.value) }, uniquingKeysWith: { $1 })
  }
}
