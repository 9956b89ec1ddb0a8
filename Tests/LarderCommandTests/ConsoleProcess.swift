import Foundation
import Testing

/// A real `larder` console on a pseudo terminal. It ends when this object is released.
final class ConsoleProcess {
  private let process = Process()
  private let terminal: Int32
  private let home: TemporaryFolder

  /// TIOCSPTLCK and TIOCGPTN, which Swift does not import.
  private static let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)

  init(_ address: String) throws {
    home = try TemporaryFolder()
    let terminal = unsafe open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(terminal >= 0)
    self.terminal = terminal
    var (locked, number): (Int32, Int32) = (0, 0)
    try #require(unsafe ioctl(terminal, Self.setLock, &locked) == 0 && ioctl(terminal, Self.getNumber, &number) == 0)
    let other = unsafe open("/dev/pts/\(number)", O_RDWR | O_NOCTTY | O_CLOEXEC)
    try #require(other >= 0)
    let handle = FileHandle(fileDescriptor: other, closeOnDealloc: true)
    process.executableURL = Command.products.appending(path: "larder")
    process.environment = ["HOME": home.path, "TERM": "xterm", "LARDER_SERVER": address]
    (process.standardInput, process.standardOutput, process.standardError) = (handle, handle, handle)
    try process.run()
    _ = try readToPrompt()
  }

  deinit {
    process.terminate()
    close(terminal)
  }

  /// Types a line.
  /// - Returns: The console's output up to its next prompt, without control sequences.
  func run(_ line: String) throws -> String {
    try type(line + "\r")
    return try readToPrompt()
  }

  /// Types a line, waits for a question, and types the answer.
  /// - Returns: The console's output after the answer, up to its next prompt.
  func answer(_ line: String, question: String, _ answer: String) throws -> String {
    try type(line + "\r")
    _ = try readOutput(upTo: NSRegularExpression.escapedPattern(for: question))
    try type(answer + "\r")
    return try readToPrompt()
  }

  /// Quits the console.
  /// - Returns: The exit status.
  func quit() throws -> Int32 {
    try type("quit\r")
    process.waitUntilExit()
    return process.terminationStatus
  }

  private func type(_ text: String) throws {
    let bytes = Array(text.utf8)
    try #require(unsafe write(terminal, bytes, bytes.count) == bytes.count)
  }

  /// Reads up to a prompt at the beginning of a line.
  private func readToPrompt() throws -> String { try readOutput(upTo: "\n\\S*larder\\.sock> ") }

  private func readOutput(upTo pattern: String) throws -> String {
    let pattern = try Regex(pattern)
    var output: [UInt8] = []
    while true {
      var descriptor = pollfd(fd: terminal, events: Int16(POLLIN), revents: 0)
      // Removes carriage returns, because Swift merges them with the line feeds after them into one character.
      let text = String(decoding: output.filter { $0 != 0x0D }, as: UTF8.self)
        .replacing(try Regex("\u{1B}\\[[0-9;?]*[A-Za-z]|\u{1B}[()][A-Z0-9]|\u{1B}[=>]|[\u{7}\u{8}]"), with: "")
      if text.firstMatch(of: pattern) != nil { return text }
      try #require(unsafe poll(&descriptor, 1, 10_000) == 1, "what was expected did not come, but \(text)")
      var piece = [UInt8](repeating: 0, count: 4_096)
      let count = unsafe read(terminal, &piece, piece.count)
      try #require(count > 0, "the console has ended: \(text)")
      output += piece[..<count]
    }
  }
}
