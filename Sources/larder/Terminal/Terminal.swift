import Glibc
import Platform

/// The terminal, usually on standard output.
enum Terminal {
  /// The size in columns and rows; 80 by 24 if it is unknown.
  static var size: (width: Int, height: Int) { size(of: STDOUT_FILENO) }

  static func size(of descriptor: Int32) -> (width: Int, height: Int) {
    var size = winsize()
    guard unsafe ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// The width of lines that fit; unlimited if standard output is not a terminal.
  static var width: Int { Output.isTerminal ? size.width : .max }

  /// Sets the process's character set to UTF-8, whatever the environment says, because all output is UTF-8. True on
  /// success.
  static let isUTF8: Bool = unsafe setlocale(LC_CTYPE, "C.UTF-8") != nil

  static func write(_ text: String, to descriptor: Int32 = STDOUT_FILENO) {
    var text = text
    text.withUTF8 { _ = unsafe Glibc.write(descriptor, $0.baseAddress, $0.count) }
  }
}

/// The keys that are pressed on the terminal of standard input, without Return and without showing them, until the value
/// goes out of scope. There are none if another process group has the terminal.
private struct TerminalKeys: ~Copyable {
  /// The settings to restore; nil if they were not changed.
  private let settings: termios?

  init() {
    var settings = termios()
    guard tcgetpgrp(STDIN_FILENO) == getpgrp(), unsafe tcgetattr(STDIN_FILENO, &settings) == 0 else {
      self.settings = nil
      return
    }
    self.settings = settings
    settings.c_lflag &= ~tcflag_t(ICANON | ECHO)
    _ = unsafe tcsetattr(STDIN_FILENO, TCSANOW, &settings)
  }

  deinit {
    guard var settings else { return }
    _ = unsafe tcsetattr(STDIN_FILENO, TCSAFLUSH, &settings)
  }

  /// Takes the keys pressed so far, and returns whether q is among them.
  func takeQuit() -> Bool {
    guard settings != nil else { return false }
    var (hasQuit, byte) = (false, UInt8(0))
    var descriptor = pollfd(fd: STDIN_FILENO, events: Int16(POLLIN), revents: 0)
    while unsafe poll(&descriptor, 1, 0) > 0, unsafe read(STDIN_FILENO, &byte, 1) == 1 {
      if byte == UInt8(ascii: "q") || byte == UInt8(ascii: "Q") { hasQuit = true }
    }
    return hasQuit
  }
}

/// The terminal's alternate screen, which shows one page after another. The normal screen returns when the value goes
/// out of scope.
struct AlternateScreen: ~Copyable {
  /// The last line of a page.
  static let hint = "Press q or Ctrl-C to quit"
  /// How long a key may go unnoticed.
  private static let keyInterval = Duration.milliseconds(100)

  private let keys = TerminalKeys()

  init() {
    // Switch to the alternate screen, and hide the cursor.
    Terminal.write("\u{1B}[?1049h\u{1B}[?25l")
  }

  deinit { Terminal.write("\u{1B}[?25h\u{1B}[?1049l") }

  /// Waits until the next page is due.
  /// - Returns: Whether there is to be a next page: false once the person has pressed q.
  func wait(for pause: Duration) async throws -> Bool {
    let end = ContinuousClock.now + pause
    while true {
      if keys.takeQuit() { return false }
      let rest = ContinuousClock.now.duration(to: end)
      guard rest > .zero else { return true }
      try await Task.sleep(for: min(rest, Self.keyInterval))
    }
  }

  var size: (width: Int, height: Int) { Terminal.size }

  /// Replaces the page with as many of the lines as fit, without flicker.
  func show(_ lines: [String]) {
    let (width, height) = size
    Terminal.write(Self.page(lines, width: width, height: height))
  }

  /// Returns the text and control sequences that show lines. The lines may contain anything, including text from the
  /// server: see `EscapedText`.
  static func page(_ lines: [String], width: Int, height: Int) -> String {
    var page = "\u{1B}[H"
    for (row, line) in lines.prefix(height).enumerated() {
      let line = EscapedText.cut(EscapedText.line(line), to: width)
      // After a line that fills its row, the cursor is still on the last character, which "erase to the end of the
      // line" would erase.
      page += (row == 0 ? "" : "\r\n") + line + (EscapedText.width(line) < width ? "\u{1B}[K" : "")
    }
    return lines.count < height ? page + "\r\n\u{1B}[J" : page
  }
}

/// Writes lines to standard error. They may contain text from a server or a file: see `EscapedText`.
func logLine(_ lines: String) { Platform.logLine(EscapedText.lines(lines.utf8)) }
