import Documents
import EntryFiles
import Foundation

/// The part of a device's storage that a source uses. Different parts never see each other's entries.
public enum DeviceStorageKind: Hashable, Sendable {
  /// The part without a name.
  case regular
  /// The part with this name. `foo` is separate from `foobar` and from `foo.bar`.
  case prefix(String)
  /// The part with this name, all of it in one file: for few and small entries.
  case rootKey(String)
}

/// A key-value source that keeps its entries in a directory, as files that people can read.
///
/// Each entry is a JSON file that is named after its key; with a root key, all entries are in one file. When a write
/// returns, it is on the disk. Writes of several entries are atomic to readers and across a crash. Any number of
/// sources, in any number of processes, can share a directory.
///
/// The subdirectories are in the format of the server's directory engine. A server can open one as a store. A source
/// can read a server's store, but not write to it.
///
/// A call for keys is O(1) per key. A call for everything or for a page is O(n log n) in the number of entries, and
/// reads what it returns. With a root key every call is O(n). The first call after a write by another source or process
/// also lists the directory, in O(n). Calls block their thread for as long as the disk takes. They throw
/// `DataSourceError.failed` if the disk reports an error, and `.dataSerialization` for an entry of another type than
/// `T`, for a file that is damaged or was edited, or for a value that can't be encoded as JSON.
public struct DeviceStorageDataSource<T: Codable & Sendable>: KeyValueDataSource {
  private let table: any EntryTable<T>

  /// - Parameter directory: The first call creates it, readable for its owner only, if it doesn't exist.
  public init(directory: URL, _ kind: DeviceStorageKind = .regular) {
    func subdirectory(_ name: String) -> SharedDirectory {
      SharedDirectory(path: directory.appendingPathComponent(name).path)
    }
    table =
      switch kind {
      case .regular:
        EntryDirectory<T>(subdirectory("regular"))
      case .prefix(let name):
        EntryDirectory<T>(subdirectory("prefix-" + EntryName(of: Array(name.utf8)).text))
      case .rootKey(let name):
        SingleFileTable<T>(subdirectory("root"), name: name)
      }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] { try table.entries(of: keys) }
  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] { try table.entries(in: range) }
  public func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>] {
    try table.entries(matching: query)
  }

  public func store(_ entries: [KeyValueEntry<T>]) async throws { try table.store(entries) }
  public func remove(_ keys: [String]) async throws { try table.remove(keys) }
  public func removeAll() async throws { try table.removeAll() }
}

/// The entries of a source that keeps files. The requirements are those of `KeyValueDataSource`, and as atomic; they
/// block for as long as the disk takes.
protocol EntryTable<T>: Sendable {
  associatedtype T: Sendable

  func entries(of keys: [String]) throws -> [StoredValue<T>?]
  func entries(in range: EntryRange) throws -> [KeyValueEntry<T>]
  func entries(matching query: DocumentQuery) throws -> [KeyValueEntry<T>]
  func store(_ entries: [KeyValueEntry<T>]) throws
  func remove(_ keys: [String]) throws
  func removeAll() throws
}

/// Entries in one file, as a JSON list in the order of their keys. The file is itself an entry of a directory. Every
/// call reads the whole file, and one that writes also writes the whole file: O(n), for few and small entries.
private struct SingleFileTable<T: Codable & Sendable>: EntryTable {
  private let directory: EntryDirectory<[JSONEntry<T>]>
  private let key: String

  init(_ directory: SharedDirectory, name: String) {
    self.directory = EntryDirectory(directory)
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

  func entries(matching query: DocumentQuery) throws -> [KeyValueEntry<T>] {
    try entries(in: .all).find(query)
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

  func removeAll() throws { try directory.remove([key]) }

  private func values() throws -> [EntryKey: StoredValue<T>] { values(of: try directory.entries(of: [key])[0]) }

  private func values(of list: StoredValue<[JSONEntry<T>]>?) -> [EntryKey: StoredValue<T>] {
    Dictionary((list?.single ?? []).map { (EntryKey($0.entry.key), $0.entry.value) }, uniquingKeysWith: { $1 })
  }

  private func change(_ body: (inout [EntryKey: StoredValue<T>]) -> Void) throws {
    try directory.update(key) { list in
      var values = values(of: list)
      body(&values)
      return .single(
        values.sorted { $0.key < $1.key }.map { JSONEntry(KeyValueEntry(key: $0.text, value: $1)) })
    }
  }
}
