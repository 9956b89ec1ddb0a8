/// Columns that are aligned for a person's eye: text to the left, numbers and quantities to the right. Cells may hold anything; see
/// `EscapedText`.
struct Table {
  private static let gap = "  "
  /// No cell shows more bytes than this, however wide the terminal.
  static let longestCell = 4_096

  private let header: [String]
  private var rows: [[String]] = []

  init(_ header: String...) {
    self.header = header
  }

  init(header: [String]) {
    self.header = header
  }

  mutating func add(_ cells: String...) {
    add(cells)
  }

  mutating func add(_ cells: [String]) {
    rows.append(cells.map { EscapedText.line($0.utf8.prefix(Self.longestCell)) })
  }

  /// Cut to the terminal's width.
  var text: String { text(width: Terminal.width) }

  func text(width: Int) -> String {
    let all = [header] + rows
    let natural = header.indices.map { column in all.map { EscapedText.width($0[column]) }.max() ?? 0 }
    let most = Self.widestColumn(natural, in: width - Self.gap.count * (header.count - 1))
    let isNumber = header.indices.map { column in !rows.isEmpty && rows.allSatisfy { Self.isQuantity($0[column]) } }
    return all.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let cell = EscapedText.cut(cell, to: most)
        let space = String(repeating: " ", count: min(most, natural[column]) - EscapedText.width(cell))
        line += (column > 0 ? Self.gap : "") + (isNumber[column] ? space + cell : cell + space)
      }
      while line.last == " " { line.removeLast() }
      return line
    }.joined(separator: "\n")
  }

  /// How wide columns may be for all of them to fit: the widest give way first, down to what still says something.
  private static func widestColumn(_ widths: [Int], in room: Int) -> Int {
    var left = room
    for (index, width) in widths.sorted().enumerated() {
      let share = left / (widths.count - index)
      if width > share { return max(8, share) }
      left -= width
    }
    return .max
  }

  /// Whether a cell is a number, perhaps with a unit behind a space, or says that there is none.
  private static func isQuantity(_ cell: String) -> Bool {
    let words = cell.split(separator: " ", omittingEmptySubsequences: false)
    guard cell != "–" else { return true }
    guard let number = words.first, number.first?.isASCII == true, number.first?.isNumber == true else { return false }
    return number.allSatisfy { $0.isNumber || $0 == "." || $0 == "," }
      && (words.count == 1 || (words.count == 2 && units.contains(words[1])))
  }

  private static let units: Set<Substring> = ["B", "KiB", "MiB", "GiB", "TiB", "µs", "ms", "s"]
}
