/// Columns that are aligned for a person's eye: the first to the left, numbers to the right. Cells may hold anything; see `VisibleText`.
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
    rows.append(cells.map { VisibleText.line($0.utf8.prefix(Self.longestCell)) })
  }

  /// Cut to the terminal's width.
  var text: String { text(width: Terminal.width) }

  func text(width: Int) -> String {
    let all = [header] + rows
    let natural = header.indices.map { column in all.map { VisibleText.width($0[column]) }.max() ?? 0 }
    let most = Self.widestColumn(natural, in: width - Self.gap.count * (header.count - 1))
    let isNumber = header.indices.map { column in !rows.isEmpty && rows.allSatisfy { UInt64($0[column]) != nil } }
    return all.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let cell = VisibleText.cut(cell, to: most)
        let space = String(repeating: " ", count: min(most, natural[column]) - VisibleText.width(cell))
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
}
