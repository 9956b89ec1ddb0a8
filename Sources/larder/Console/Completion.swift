/// What Tab makes of a line: the word before the cursor becomes longer, or all that it may become is shown.
enum Completion: Equatable {
  case none
  /// So many characters (Unicode scalars) before the cursor give way to a text.
  case replace(scalars: Int, by: String)
  /// Lines to print.
  case show(String)

  /// More of them only scroll away what was there.
  private static let mostShown = 120

  /// - Parameters:
  ///   - word: the one that is typed, as the line has it; nil at its beginning.
  ///   - candidates: what it may become, all of which begin with its text. Those that are paths are shown by their last names.
  ///   - line: up to the cursor.
  init(of word: CommandWords.Word?, in line: String, to candidates: [String], arePaths: Bool = false, width: Int) {
    guard let first = candidates.first else {
      self = .none
      return
    }
    let common = candidates.dropFirst().reduce(first) { Self.commonBeginning($0, $1) }
    if candidates.count == 1 || common.unicodeScalars.count > (word?.text ?? "").unicodeScalars.count {
      let isWhole = candidates.count == 1 && !common.hasSuffix("/")
      let scalars = word.map { line.unicodeScalars[$0.start...].count } ?? 0
      self = .replace(
        scalars: scalars, by: CommandWords.quoted(common, with: word?.quote, isWhole: isWhole) + (isWhole ? " " : ""))
    } else {
      let folder = arePaths ? common.lastIndex(of: "/").map { common[...$0] } ?? "" : ""
      self = .show(Self.columns(candidates.map { String($0.dropFirst(folder.count)) }, width: width))
    }
  }

  /// Names beside each other, in columns, as many as fit.
  static func columns(_ names: [String], width: Int) -> String {
    let shown = names.prefix(mostShown).map { EscapedText.cut(EscapedText.line($0), to: width) }
    let column = (shown.map(EscapedText.width).max() ?? 0) + 2
    let count = max(1, width / column)
    let rows = (shown.count + count - 1) / count
    var lines = (0..<rows).map { row in
      var line = ""
      for index in stride(from: row, to: shown.count, by: rows) {
        line += shown[index] + String(repeating: " ", count: column - EscapedText.width(shown[index]))
      }
      while line.last == " " { line.removeLast() }
      return line
    }
    if names.count > shown.count { lines.append("… and more") }
    return lines.joined(separator: "\n")
  }

  private static func commonBeginning(_ one: String, _ other: String) -> String {
    let common = zip(one.unicodeScalars, other.unicodeScalars).prefix { $0 == $1 }
    return String(String.UnicodeScalarView(common.map(\.0)))
  }
}
