import Documents
import EntryFiles
import FoundationEssentials

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
/// also lists the directory, in O(n).
///
/// Calls work on a few threads of their own, and a task that waits for the disk or for a lock blocks no thread that
/// other tasks need. A task that is cancelled while it waits throws `CancellationError`, and so does one that has not
/// begun to change the directory; later, the change is completed.
///
/// Calls throw `DataSourceError.failed` if the disk reports an error or others use the directory for too long, and
/// `.dataSerialization` for an entry of another type than `T`, for a file that is damaged or was edited, or for a value
/// that can't be encoded as JSON. If something is in the way of a file, the call changes nothing and says what to move.
/// A directory that this process can't change can be read.
public struct DeviceStorageDataSource<T: Codable & Sendable>: KeyValueDataSource {
  private let table: any EntryTable<T>

  /// - Parameters:
  ///   - directory: The first call creates it, readable for its owner only, if it doesn't exist. It can't be inside the
  ///     directory of another source: then calls throw `DataSourceError.illegalArgument`.
  ///   - damaged: What calls for several entries do about damaged ones.
  ///   - lockTimeout: How long a call waits while other calls and processes use the directory.
  public init(
    directory: URL, _ kind: DeviceStorageKind = .regular, damaged: DamagedEntries = .fail,
    lockTimeout: Duration = .seconds(30)
  ) {
    func subdirectory(_ name: String) -> SharedDirectory {
      SharedDirectory(path: directory.appendingPathComponent(name).path, lockTimeout: lockTimeout)
    }
    table =
      switch kind {
      case .regular:
        EntryDirectory<T>(subdirectory("regular"), damaged: damaged)
      case .prefix(let name):
        EntryDirectory<T>(subdirectory("prefix-" + EntryName(of: Array(name.utf8)).text), damaged: damaged)
      case .rootKey(let name):
        SingleFileTable<T>(subdirectory("root"), name: name)
      }
  }

  public func entry(of key: String) async throws -> StoredValue<T>? { try await table.entry(of: checked(key)) }
  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    try await table.entries(of: checked(keys))
  }

  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    try await table.entries(in: checked(range))
  }

  public func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>] {
    try await table.entries(matching: query)
  }

  public func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?] {
    try await table.versionedEntries(of: keys)
  }

  /// Returns the keys that begin with a prefix, in the order of their bytes. Reads no entries, unless they are in one
  /// file.
  public func keys(prefix: String) async throws -> [String] { try await table.keys(in: .prefix(prefix)) }

  public func store(_ entries: [KeyValueEntry<T>]) async throws { try await table.store(checked(entries)) }
  public func remove(_ keys: [String]) async throws { try await table.remove(checked(keys)) }
  public func removeAll() async throws { try await table.removeAll() }

  /// Executes a batch in one step. With a root key it throws `notImplemented`: one file has one revision.
  public func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64? { try await table.commit(batch) }
}

/// The entries of a source that keeps files. The requirements are those of `KeyValueDataSource`, and as atomic.
protocol EntryTable<T>: Sendable {
  associatedtype T: Sendable

  func entry(of key: String) async throws -> StoredValue<T>?
  func entries(of keys: [String]) async throws -> [StoredValue<T>?]
  func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?]
  func keys(in range: EntryRange) async throws -> [String]
  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>]
  func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>]
  func store(_ entries: [KeyValueEntry<T>]) async throws
  func remove(_ keys: [String]) async throws
  func removeAll() async throws
  func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64?
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

  func entry(of key: String) async throws -> StoredValue<T>? { try await values()[EntryKey(key)] }

  func entries(of keys: [String]) async throws -> [StoredValue<T>?] {
    let values = try await values()
    return keys.map { values[EntryKey($0)] }
  }

  func versionedEntries(of keys: [String]) async throws -> [KeyValueEntry<T>?] {
    zip(keys, try await entries(of: keys)).map { key, value in value.map { KeyValueEntry(key: key, value: $0) } }
  }

  func keys(in range: EntryRange) async throws -> [String] {
    range.slice(of: try await values().keys.sorted()).map(\.text)
  }

  func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] {
    let values = try await values()
    return range.slice(of: values.keys.sorted()).compactMap { key in
      values[key].map { KeyValueEntry(key: key.text, value: $0) }
    }
  }

  func entries(matching query: DocumentQuery) async throws -> [KeyValueEntry<T>] {
    try await entries(in: .all).find(query)
  }

  func store(_ entries: [KeyValueEntry<T>]) async throws {
    try await change { values in
      for entry in entries { values[EntryKey(entry.key)] = entry.value }
    }
  }

  func remove(_ keys: [String]) async throws {
    try await change { values in
      for key in keys { values[EntryKey(key)] = nil }
    }
  }

  func removeAll() async throws { try await directory.remove([key]) }

  func commit(_ batch: KeyValueBatch<T>) async throws -> UInt64? {
    throw DataSourceError(
      .notImplemented, "a source with a root key doesn't support batches, conditions, updates or times to live")
  }

  private func values() async throws -> [EntryKey: StoredValue<T>] { values(of: try await directory.entry(of: key)) }

  private func values(of list: StoredValue<[JSONEntry<T>]>?) -> [EntryKey: StoredValue<T>] {
    Dictionary((list?.single ?? []).map { (EntryKey($0.entry.key), $0.entry.value) }, uniquingKeysWith: { $1 })
  }

  private func change(_ body: (inout [EntryKey: StoredValue<T>]) -> Void) async throws {
    try await directory.update(key) { list in
      var values = values(of: list)
      body(&values)
      return .single(
        values.sorted { $0.key < $1.key }.map { JSONEntry(KeyValueEntry(key: $0.text, value: $1)) })
    }
  }
}
