import EntryFiles
import Foundation

/// Which part of a device's storage a source has. Parts that differ never see each other's entries.
public enum DeviceStorageKind: Hashable, Sendable {
  /// The part without a name.
  case regular
  /// The part with this name. `foo` is neither part of `foobar` nor of `foo.bar`.
  case prefix(String)
  /// The part with this name, all of it in one file: for few and small entries.
  case rootKey(String)
}

/// A key-value source that keeps its entries in a directory, as files that a person can read.
///
/// An entry is a file of JSON that is named for its key; with a root key, all entries are in one. Writes are on the disk on return, and
/// several at once are atomic to readers and across a crash. Any number of sources, in any number of processes, may share a directory.
///
/// The folders in the directory are in the format of the server's directory engine: a server can open one as a store, and a source can read
/// a server's, but not write to it.
///
/// Calls for keys are O(1) a key, and those for everything or for pages O(n log n) in the number of entries, of which they read what they
/// return; with a root key every call is O(n). The first call after another source's or process's write also lists the folder, in O(n).
/// Calls block their thread for as long as the disk takes. They throw `DataSourceError.failed` when the disk refuses, and
/// `.dataSerialization` for an entry of another type than `T`, for one whose file was damaged or edited, or for a value that has no JSON.
public struct DeviceStorageDataSource<T: Codable & Sendable>: KeyValueDataSource {
  private let table: any EntryTable<T>

  /// - Parameter directory: is created by the first call, readable for its owner only, when it isn't there.
  public init(directory: URL, _ kind: DeviceStorageKind = .regular) {
    func folder(_ name: String) -> Folder { Folder(path: directory.appendingPathComponent(name).path) }
    table =
      switch kind {
      case .regular:
        EntryFolder<T>(folder("regular"))
      case .prefix(let name):
        EntryFolder<T>(folder("prefix-" + EntryName(of: Array(name.utf8)).text))
      case .rootKey(let name):
        RootFile<T>(folder("root"), name: name)
      }
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<T>?] { try table.entries(of: keys) }
  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<T>] { try table.entries(in: range) }
  public func store(_ entries: [KeyValueEntry<T>]) async throws { try table.store(entries) }
  public func remove(_ keys: [String]) async throws { try table.remove(keys) }
  public func removeAll() async throws { try table.removeAll() }
}
