import Glibc
import Platform

/// Buffered standard output. Text for a terminal is escaped first: see `EscapedText`.
struct Output: ~Copyable {
  /// The bytes to write. Append to them, and call `flushIfLarge` regularly and `flush` at the end.
  var bytes: [UInt8] = []

  static var isTerminal: Bool { isatty(STDOUT_FILENO) == 1 }

  /// The options of the current command.
  @TaskLocal static var options: OutputOptions?

  /// The format that the command's options request or, without one, the console; otherwise tables on a terminal, and
  /// lines of JSON elsewhere.
  static var format: OutputFormat {
    options?.format ?? ConsoleSession.current?.format ?? (isTerminal ? .table : .json)
  }

  /// A Boolean value that indicates whether to print tables.
  static var showsTables: Bool { format == .table }

  /// A Boolean value that indicates whether to show a page that is replaced repeatedly, with --watch.
  static var showsPages: Bool { showsTables && isTerminal }

  /// A Boolean value that indicates whether results are rows: of a table, or of CSV.
  static var showsRows: Bool { format != .json }

  private static var hasColor: Bool {
    switch options?.color ?? .auto {
    case .always: true
    case .never: false
    case .auto: isTerminal && environment("NO_COLOR") == nil && environment("TERM") != "dumb"
    }
  }

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

  /// Writes text for people, which is escaped even if it isn't for a terminal, because it may soon be on one.
  mutating func writeLine(_ line: some StringProtocol) throws {
    bytes.append(contentsOf: EscapedText.lines(line.utf8).utf8)
    bytes.append(UInt8(ascii: "\n"))
    try flush()
  }

  /// Writes a table, or a sentence in place of one without rows. CSV always has its header.
  mutating func write(_ table: Table, orIfEmpty sentence: String) throws {
    if table.isEmpty, Self.showsTables { return try writeLine(sentence) }
    try write(table: table.text)
  }

  /// Writes the lines of a table: with a bold header if there is color, and in a pager if they don't fit the terminal.
  /// - Parameters:
  ///   - hasHeader: Whether the first line is a header.
  ///   - isWhole: Whether these are all lines, so that they can be in a pager.
  mutating func write(table: String, hasHeader: Bool = true, isWhole: Bool = true) throws {
    try flush()
    var text = (Self.isTerminal ? EscapedText.lines(Array(table.utf8)) : table) + "\n"
    if Self.hasColor, Self.format == .table, hasHeader, let end = text.firstIndex(of: "\n") {
      text = "\u{1B}[1m" + text[..<end] + "\u{1B}[0m" + text[end...]
    }
    let isLong = Self.isTerminal && text.utf8.count { $0 == UInt8(ascii: "\n") } >= Terminal.size.height
    if isWhole, isLong, Self.options?.noPager == false, Pager.show(text) { return }
    try text.withUTF8 { try unsafe Self.write(UnsafeRawBufferPointer($0)) }
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
