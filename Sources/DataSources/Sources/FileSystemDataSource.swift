import Foundation

/// A key-value source whose values are files: a single value's bytes are its file's, whose name is the key. Capitals are written as `^` and
/// the small letter, and what a shell doesn't show plainly as `%` and two hexadecimal digits; of a key that is too long for a name a part
/// is left, and the rest is in a file beside it. A list is a file of JSON.
///
/// Writes are on the disk on return, and several at once are atomic to readers and across a crash. Files that come from elsewhere
/// with such a name are entries too.
///
/// Calls for keys are O(1) a key, and those for everything or for pages O(n log n) in the number of entries, of which they read what they
/// return. Calls block their thread for as long as the disk takes, and throw `DataSourceError.failed` when it refuses.
public struct FileSystemDataSource: KeyValueDataSource {
  public typealias T = Data

  private let table: RawFolder

  /// - Parameter directory: is created by the first call, readable for its owner only, when it isn't there.
  public init(directory: URL) {
    table = RawFolder(folder: Folder(path: directory.path))
  }

  public func entries(of keys: [String]) async throws -> [StoredValue<Data>?] { try table.entries(of: keys) }
  public func entries(in range: EntryRange) async throws -> [KeyValueEntry<Data>] { try table.entries(in: range) }
  public func store(_ entries: [KeyValueEntry<Data>]) async throws { try table.store(entries) }
  public func remove(_ keys: [String]) async throws { try table.remove(keys) }
  public func removeAll() async throws { try table.removeAll() }
}
