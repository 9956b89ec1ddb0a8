import Foundation

/// A key-value source whose values are files: a single value's bytes are its file's, whose name is the key with what a shell doesn't show
/// plainly as `%` and two hexadecimal digits. A list is a file of JSON.
///
/// Writes are on the disk on return, and several at once are atomic to readers and across a crash. Files that come from elsewhere
/// with such a name are entries too. Keys whose name would be longer than 240 bytes are refused with `DataSourceError.illegalArgument`.
///
/// Calls for keys are O(1) a key, and those for everything or for pages O(n log n) in the number of entries, of which they read what they
/// return. Calls block their thread for as long as the disk takes, and throw `DataSourceError.failed` when it refuses.
public struct FileSystemDataSource: KeyValueDataSource {
  public typealias T = Data

  private let table: EntryFolder<RawEntryFormat>

  /// - Parameter directory: is created by the first call, readable for its owner only, when it isn't there.
  public init(directory: URL) {
    table = EntryFolder(folder: Folder(path: directory.path), format: RawEntryFormat())
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<Data>?] { try table.entries(of: keys) }
  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<Data>] { try table.entries(in: range) }
  public func store(_ entries: [KeyValueEntry<Data>]) async throws { try table.store(entries) }
  public func remove(_ keys: [String]) async throws { try table.remove(keys) }
  public func removeAll() async throws { try table.removeAll() }
}
