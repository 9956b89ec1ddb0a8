import Platform

/// Why a directory store can't be opened.
package enum DirectoryError: Error, Equatable, Sendable {
  /// A call failed on that path.
  case system(path: String, SystemError)
  /// The journal is damaged where it had been on the disk: not by a crash. Nothing was changed.
  case damaged(path: String, offset: Int, reason: String)
  /// A file couldn't be read: its entry would be absent, and then written over. Nothing was changed.
  case unreadable(path: String, reason: String)
  /// The entries don't fit into memory.
  case storage(StorageError)
}

extension DirectoryError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .system(let path, let error): "\(path): \(error)"
    case .damaged(let path, let offset, let reason): "\(path) is damaged at byte \(offset): \(reason)"
    case .unreadable(let path, let reason):
      "\(path) can't be read (\(reason)); see what is intact with \"larder check\""
    case .storage(let error): error.description
    }
  }
}
