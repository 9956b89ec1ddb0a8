import Glibc
import Platform

/// Buffered standard output. Text for a terminal is escaped first: see `EscapedText`.
struct Output: ~Copyable {
  /// The bytes to write. Append to them, and call `flushIfLarge` regularly and `flush` at the end.
  var bytes: [UInt8] = []

  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// A Boolean value that indicates whether to print tables: on a terminal, unless the console's format is JSON.
  static var showsTables: Bool { isTerminal && ConsoleSession.current?.format != .json }

  /// Writes the bytes if there are enough of them to be worth a system call.
  @inline(__always)
  mutating func flushIfLarge() throws {
    if bytes.count >= 64 << 10 { try flush() }
  }

  /// Writes the bytes. They must not end inside a character.
  mutating func flush() throws {
    if Self.isTerminal { bytes = Array(EscapedText.lines(bytes).utf8) }
    try unsafe bytes.withUnsafeBytes { try unsafe Self.write($0) }
    bytes.removeAll(keepingCapacity: true)
  }

  mutating func writeLine(_ line: some StringProtocol) throws {
    bytes.append(contentsOf: line.utf8)
    bytes.append(UInt8(ascii: "\n"))
    try flush()
  }

  private static func write(_ bytes: UnsafeRawBufferPointer) throws {
    var rest = unsafe bytes[...]
    while unsafe !rest.isEmpty {
      let count = unsafe Glibc.write(STDOUT_FILENO, UnsafeRawBufferPointer(rebasing: rest).baseAddress, rest.count)
      if count >= 0 {
        unsafe rest = unsafe rest.dropFirst(count)
        continue
      }
      switch errno {
      case EINTR: continue
      case EAGAIN:
        var descriptor = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        _ = unsafe poll(&descriptor, 1, -1)
      case EPIPE: throw OutputClosed()
      default: throw CommandFailure(.usage, "can't write to standard output: \(systemMessage())")
      }
    }
  }
}

/// The reader of the output has closed its end. The command ends silently and successfully.
struct OutputClosed: Error {}

/// Returns the message for `errno`.
func systemMessage() -> String {
  unsafe String(cString: strerror(errno))
}
