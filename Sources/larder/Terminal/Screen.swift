import Glibc

/// A terminal that shows one page after the other, and is as it was before when it ends.
struct Screen: ~Copyable {
  init() {
    // The other screen, and no cursor.
    Self.write("\u{1B}[?1049h\u{1B}[?25l")
  }

  deinit { Self.write("\u{1B}[?25h\u{1B}[?1049l") }

  /// Columns and rows.
  var size: (width: Int, height: Int) {
    var size = winsize()
    guard unsafe ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return (80, 24) }
    return (Int(size.ws_col), Int(size.ws_row))
  }

  /// Shows lines from the top, as much of them as there is room for. What was there before goes without a flicker.
  func show(_ lines: [String]) {
    let (width, height) = size
    Self.write(Self.page(lines, width: width, height: height))
  }

  /// What has a terminal show lines. They may hold anything, for some of it comes from the server: see `EscapedText`.
  static func page(_ lines: [String], width: Int, height: Int) -> String {
    var page = "\u{1B}[H"
    for (row, line) in lines.prefix(height).enumerated() {
      let line = EscapedText.cut(EscapedText.line(line), to: width)
      // Behind a line that fills its row the cursor still stands on the last character, which is not to be erased.
      page += (row == 0 ? "" : "\r\n") + line + (EscapedText.width(line) < width ? "\u{1B}[K" : "")
    }
    return lines.count < height ? page + "\r\n\u{1B}[J" : page
  }

  private static func write(_ text: String) {
    var text = text
    text.withUTF8 { _ = unsafe Glibc.write(STDOUT_FILENO, $0.baseAddress, $0.count) }
  }
}
