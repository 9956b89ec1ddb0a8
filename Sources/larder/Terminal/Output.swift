import Glibc
import Platform

/// Standard output, written in large pieces. What reaches a terminal doesn't steer it: see `EscapedText`.
struct Output: ~Copyable {
  /// What waits to be written. Append to it, and call `written` now and then.
  var bytes: [UInt8] = []

  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Whether a person reads it, who has not asked for JSON in the console.
  static var showsTables: Bool { isTerminal && ConsoleSession.current?.format != .json }

  /// Writes what waits if there is enough of it to be worth a call.
  @inline(__always)
  mutating func flushIfLarge() throws {
    if bytes.count >= 64 << 10 { try flush() }
  }

  /// What waits must not end within a character.
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
        var wanted = pollfd(fd: STDOUT_FILENO, events: Int16(POLLOUT), revents: 0)
        _ = unsafe poll(&wanted, 1, -1)
      case EPIPE: throw OutputClosed()
      default: throw CommandFailure(.usage, "can't write to standard output: \(systemMessage())")
      }
    }
  }
}

/// Whoever read the output has had enough: the command ends quietly, and has done its work.
struct OutputClosed: Error {}

/// What `errno` stands for, in words.
func systemMessage() -> String {
  unsafe String(cString: strerror(errno))
}
