import Glibc

/// The descriptors 0 to 2, which a process gets from the one that starts it.
package enum StandardDescriptors {
  /// Occupies those that are closed, so that no file or socket gets their numbers: log lines and results would go there.
  /// Reading 0 and writing to 1 or 2 fails, as it does when they are closed. To be called before anything else.
  /// - Returns: Whether each of them is open now.
  package static func reserve() -> Bool {
    for number: Int32 in 0...2 where fcntl(number, F_GETFD) < 0 {
      let wrongMode = number == STDIN_FILENO ? O_WRONLY : O_RDONLY
      // In a root directory without devices, a folder does: it can be neither read nor written.
      if unsafe open("/dev/null", wrongMode) < 0, unsafe open("/", O_RDONLY | O_DIRECTORY) < 0 { return false }
    }
    return true
  }
}

/// Standard output, for programs that print little.
package enum StandardOutput {
  package struct WriteError: Error, CustomStringConvertible {
    private let reason: String

    fileprivate init(_ error: SystemError) { reason = error.reason }

    package var description: String { "can't write to standard output: \(reason)" }
  }

  /// Writes a text, waiting for as long as that takes.
  package static func write(_ text: String) throws(WriteError) {
    var rest = Array(text.utf8)[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes { unsafe Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
      if count >= 0 {
        rest = rest.dropFirst(count)
      } else if errno == EAGAIN {
        var entry = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        _ = unsafe poll(&entry, 1, -1)
      } else if errno != EINTR {
        throw WriteError(SystemError("write"))
      }
    }
  }
}
