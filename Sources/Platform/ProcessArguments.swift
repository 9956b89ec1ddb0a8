import CLinux
import Glibc

/// The words of the command line that started the process.
///
/// `CommandLine` of the standard library finds them in `/proc` or near the environment. In a process without `/proc`, it
/// has none, and a server would start without its settings.
package enum ProcessArguments {
  /// Returns the words without the program's name.
  ///
  /// Throws an error without `/proc`, too: Dispatch looks there for its threads, and ends the process if it finds none.
  package static func words() throws(ProcessArgumentsError) -> [String] {
    guard unsafe access("/proc/self/task", X_OK) == 0 else { throw .noProc }
    let count = Int(process_argument_count())
    guard count > 0, let arguments = unsafe process_arguments() else { throw .unknown }
    var words: [String] = []
    for index in 1..<max(1, count) {
      guard let argument = unsafe arguments[index] else { break }
      guard let word = unsafe String(validatingCString: argument) else { throw .notUTF8(index: index) }
      words.append(word)
    }
    return words
  }
}

/// The reason why the process can't start with its arguments.
package enum ProcessArgumentsError: Error, Equatable, Sendable, CustomStringConvertible {
  case noProc
  case unknown
  /// Swift would silently replace the argument's invalid bytes.
  case notUTF8(index: Int)

  package var description: String {
    switch self {
    case .noProc: "there is no /proc, which the process needs to run threads; run: mount -t proc proc /proc"
    case .unknown: "the system doesn't tell with which arguments the process was started"
    case .notUTF8(let index): "argument \(index) is not valid UTF-8"
    }
  }
}
