import Platform

/// What can go wrong with a data directory and the list of its stores.
package enum DataDirectoryError: Error, Equatable, Sendable {
  /// Another process has it: the one of that id, if it has written it yet.
  case inUse(path: String, owner: Int32?)
  /// Something is there that isn't what should be there.
  case notUsable(path: String, reason: String)
  /// A description that can't be read; line 0 stands for the whole.
  case damagedDescription(path: String, line: Int, reason: String)
  case storeExists(StoreName)
  case unknownStore(StoreName)
  case system(path: String, SystemError)
}

extension DataDirectoryError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .inUse(let path, let owner?):
      "the data directory \(path) is in use by process \(owner); stop that server, or give this one another directory"
    case .inUse(let path, nil):
      "the data directory \(path) is in use by another process; stop that server, or give this one another directory"
    case .notUsable(let path, let reason): "\(path): \(reason)"
    case .damagedDescription(let path, 0, let reason): "\(path): \(reason); correct the file, or move its folder away"
    case .damagedDescription(let path, let line, let reason):
      "\(path), line \(line): \(reason); correct the file, or move its folder away"
    case .storeExists(let name): "there is a store \"\(name)\" in the data directory already"
    case .unknownStore(let name): "there is no store \"\(name)\" in the data directory"
    case .system(let path, let error): "\(path): \(error)"
    }
  }
}
