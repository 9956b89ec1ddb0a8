/// Columns that are aligned for a person's eye: the first to the left, numbers to the right.
struct Table {
  private let header: [String]
  private var rows: [[String]] = []

  init(_ header: String...) {
    self.header = header
  }

  mutating func add(_ cells: String...) {
    rows.append(cells)
  }

  var text: String {
    let all = [header] + rows
    let widths = header.indices.map { column in all.map { $0[column].count }.max() ?? 0 }
    return all.map { row in
      var line = ""
      for (column, cell) in row.enumerated() {
        let space = String(repeating: " ", count: widths[column] - cell.count)
        let isNumber = !rows.isEmpty && rows.allSatisfy { UInt64($0[column]) != nil }
        line += (column > 0 ? "  " : "") + (isNumber ? space + cell : cell + space)
      }
      while line.last == " " { line.removeLast() }
      return line
    }.joined(separator: "\n")
  }
}
