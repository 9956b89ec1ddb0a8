import Platform

/// Why a directory store can't be opened.
package enum DirectoryError: Error, Equatable, Sendable {
  /// A call failed on that path.
  case system(path: String, SystemError)
  /// The journal is damaged where it had been on the disk: not by a crash. Nothing was changed.
  case damaged(path: String, offset: Int, reason: String)
  /// The entries don't fit into memory.
  case storage(StorageError)
}

extension DirectoryError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .system(let path, let error): "\(path): \(error)"
    case .damaged(let path, let offset, let reason): "\(path) is damaged at byte \(offset): \(reason)"
    case .storage(let error): error.description
    }
  }
}
