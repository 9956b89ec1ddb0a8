/// A line of a text, or the part of it that fits the width, with a caret under one of its bytes.
struct LineExcerpt {
  private static let indent = "  "

  /// The excerpt and the caret, a line each; empty if the line is.
  let text: String

  /// - Parameters:
  ///   - line: Any bytes; what a terminal must not show is escaped.
  ///   - position: The index of the byte, or the end of the line.
  ///   - width: The maximum number of columns.
  init(_ line: ArraySlice<UInt8>, at position: Int, width: Int) {
    guard !line.isEmpty else {
      text = ""
      return
    }
    let columns = max(width - Self.indent.count, 20)
    let before = Self.end(of: Self.withoutIndentation(line[..<position]), columns: columns * 2 / 3)
    let caretColumn = EscapedText.width(before)
    let after = EscapedText.cut(Self.beginning(of: line[position...], columns: columns), to: columns - caretColumn)
    let caret = String(repeating: " ", count: caretColumn) + "^"
    text = "\(Self.indent)\(before)\(after)\n\(Self.indent)\(caret)\n"
  }

  private static func withoutIndentation(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    bytes.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") }
  }

  /// Returns the end of a text that fits, after an ellipsis if something is missing.
  private static func end(of bytes: ArraySlice<UInt8>, columns: Int) -> String {
    // A character has at most four bytes. What is too wide nevertheless is cut below.
    let rest = bytes.suffix(columns * 4).drop { $0 & 0xC0 == 0x80 }
    let scalars = EscapedText.line(rest).unicodeScalars
    var (start, remaining) = (scalars.endIndex, columns - 1)
    while start > scalars.startIndex {
      let previous = scalars.index(before: start)
      remaining -= EscapedText.width(String(scalars[previous]))
      if remaining < 0 { break }
      start = previous
    }
    let isWhole = start == scalars.startIndex && rest.startIndex == bytes.startIndex
    return (isWhole ? "" : "…") + String(scalars[start...])
  }

  /// Returns the beginning of a text, which is long enough to fill the columns.
  private static func beginning(of bytes: ArraySlice<UInt8>, columns: Int) -> String {
    var part = bytes.prefix(columns * 4)
    while part.endIndex < bytes.endIndex, bytes[part.endIndex] & 0xC0 == 0x80, !part.isEmpty { part.removeLast() }
    return EscapedText.line(part)
  }
}
