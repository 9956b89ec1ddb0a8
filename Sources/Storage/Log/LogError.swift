import Platform

/// Why a log can't be opened.
package enum LogError: Error, Equatable, Sendable {
  /// A file is not what was written: which one, from which byte on, and what is wrong there.
  case damaged(path: String, offset: Int, what: String)
  /// A call failed.
  case failed(path: String, SystemError)
  /// The entries don't fit into memory.
  case noMemory(StorageError)
}

extension LogError: CustomStringConvertible {
  package var description: String {
    switch self {
    case .damaged(let path, let offset, let what):
      "\(path) is damaged at byte \(offset): \(what); see what is intact with \"larder check\""
    case .failed(let path, let error): "\(path): \(error)"
    case .noMemory(let error): "\(error)"
    }
  }
}

extension LogError {
  /// Runs calls on a file, and says which file it was when one fails.
  static func on<Result>(_ path: String, _ body: () throws(SystemError) -> Result) throws(LogError) -> Result {
    do throws(SystemError) { return try body() } catch { throw .failed(path: path, error) }
  }
}
