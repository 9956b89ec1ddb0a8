import Foundation

/// How one entry becomes one file: its name and its bytes. Another format is another type of this protocol; nothing else knows.
protocol EntryFileFormat<T>: Sendable {
  associatedtype T: Sendable

  /// The names that a key's file may have, depending on what it holds. Never more than one of them exists.
  func names(of key: String) throws -> [String]

  /// The file of an entry.
  func file(of entry: KeyValueEntry<T>) throws -> (name: String, bytes: Data)

  /// What a file's name tells of its key.
  func key(of name: String) -> FileKey

  /// The entry of a file.
  /// - Throws: `DataSourceError.dataSerialization` for bytes that aren't one of this type.
  func entry(of name: String, _ bytes: Data) throws -> KeyValueEntry<T>
}

/// What a file's name tells of its key.
enum FileKey: Hashable {
  case known(String)
  /// The key is in the file.
  case inside
  /// The file is none of ours.
  case none
}
