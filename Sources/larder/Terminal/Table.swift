import Basics
import Larder

/// A table of aligned columns: text on the left, numbers and quantities on the right. Cells may contain anything; they
/// are escaped.
struct Table {
  private static let columnGap = "  "
  /// The maximum number of bytes that a cell shows, even on a wide terminal.
  static let maxCellBytes = 4_096
  /// The width to which text is cut before columns are omitted.
  private static let minTextWidth = 8

  private let header: [String]
  private let omissible: [String]
  private let uncut: [String]
  /// A Boolean value that indicates whether the rows are CSV, with whole cells as they are.
  private let isCSV = Output.format == .csv
  private var rows: [[String]] = []
  /// The widths of the columns in the rows that were taken, and which columns have numbers; nil if none were taken.
  private var taken: (widths: [Int], isNumber: [Bool])?

  init(_ header: String...) {
    self.init(header: header)
  }

  /// - Parameters:
  ///   - omissible: The columns to omit from a terminal that is too narrow for all, the least important first.
  ///   - uncut: The columns whose text is never cut, because rows with the same beginning would look alike.
  init(header: [String], omissible: [String] = [], uncut: [String] = []) {
    (self.header, self.omissible, self.uncut) = (header, omissible, uncut)
  }

  var isEmpty: Bool { rows.isEmpty }

  mutating func add(_ cells: String...) {
    add(cells)
  }

  mutating func add(_ cells: [String]) {
    rows.append(isCSV ? cells : cells.map { EscapedText.line($0.utf8.prefix(Self.maxCellBytes)) })
  }

  /// The table's lines, cut to the terminal's width.
  var text: String { text(width: Terminal.width) }

  func text(width: Int) -> String {
    isCSV ? csv : text(widths, isNumber, width: width)
  }

  /// Returns the lines of the rows so far and removes the rows. Only the first text has the header. Rows that are added
  /// later have the same columns, except that they can be wider.
  mutating func takeText(width: Int = Terminal.width) -> String {
    let (widths, isNumber) = (widths, isNumber)
    let text = isCSV ? csv : text(widths, isNumber, width: width)
    taken = (widths, isNumber)
    rows.removeAll(keepingCapacity: true)
    return text
  }

  private var csv: String { lines.map { CSV.line($0).dropLast() }.joined(separator: "\n") }

  private var lines: [[String]] { taken == nil ? [header] + rows : rows }

  private var widths: [Int] {
    var widths = taken?.widths ?? header.map { _ in 0 }
    for line in lines {
      for (column, cell) in line.enumerated() { widths[column] = max(widths[column], EscapedText.width(cell)) }
    }
    return widths
  }

  /// Returns whether the cells of a column are shown whole, even if the lines don't fit then.
  private func isWhole(_ column: Int, _ isNumber: [Bool]) -> Bool {
    isNumber[column] || uncut.contains(header[column])
  }

  private var isNumber: [Bool] {
    taken?.isNumber
      ?? header.indices.map { column in
        let cells = rows.lazy.map { $0[column] }.filter { !Self.isMissing($0) }
        return !cells.isEmpty && cells.allSatisfy(Self.isQuantity)
      }
  }

  private func text(_ widths: [Int], _ isNumber: [Bool], width: Int) -> String {
    let columns = columns(widths, isNumber, width: width)
    return lines.map { row in
      var cells = columns.map { column, width in
        let cell = EscapedText.cut(row[column], to: width)
        let space = String(repeating: " ", count: width - EscapedText.width(cell))
        return isNumber[column] ? space + cell : cell + space
      }.joined(separator: Self.columnGap)
      while cells.last == " " { cells.removeLast() }
      return cells
    }.joined(separator: "\n")
  }

  /// Returns the columns to show, and widths with which they fit. Text is cut before columns are omitted, and these
  /// before numbers are cut.
  private func columns(_ widths: [Int], _ isNumber: [Bool], width: Int) -> [(column: Int, width: Int)] {
    var columns = Array(header.indices)
    for omitted in omissible + [nil] {
      let available = width - Self.columnGap.count * (columns.count - 1)
      let wholeWidth = columns.filter { isWhole($0, isNumber) }.reduce(0) { $0 + widths[$1] }
      let textWidths = columns.filter { !isWhole($0, isNumber) }.map { widths[$0] }
      let textWidth = Self.maxColumnWidth(textWidths, available: available - wholeWidth)
      if textWidth >= Self.minTextWidth {
        return columns.map { ($0, isWhole($0, isNumber) ? widths[$0] : min(widths[$0], textWidth)) }
      }
      columns.removeAll { header[$0] == omitted }
    }
    let available = width - Self.columnGap.count * (columns.count - 1)
    let maxWidth = max(1, Self.maxColumnWidth(columns.map { widths[$0] }, available: available))
    return columns.map { ($0, uncut.contains(header[$0]) ? widths[$0] : min(widths[$0], maxWidth)) }
  }

  /// Returns the maximum width of a column with which all columns fit. The widest columns shrink first.
  private static func maxColumnWidth(_ widths: [Int], available: Int) -> Int {
    guard available >= 0 else { return 0 }
    var remaining = available
    for (index, width) in widths.sorted().enumerated() {
      let share = remaining / (widths.count - index)
      if width > share { return share }
      remaining -= width
    }
    return .max
  }

  private static func isMissing(_ cell: String) -> Bool { ["", "-", "–"].contains(cell) }

  /// Returns whether a cell is a number, with or without a unit after a space.
  private static func isQuantity(_ cell: String) -> Bool {
    let words = cell.split(separator: " ", omittingEmptySubsequences: false)
    guard let number = words.first, number.first?.isASCII == true, number.first?.isNumber == true else { return false }
    return number.allSatisfy { $0.isNumber || $0 == "." || $0 == "," }
      && (words.count == 1 || (words.count == 2 && units.contains(words[1])))
  }

  private static let units: Set<Substring> = ["B", "KiB", "MiB", "GiB", "TiB", "µs", "ms", "s"]
}

/// A table of entries: one per line, with as much of the value as fits.
struct EntryTable {
  private typealias Row = (key: String, revision: String, expiry: String, value: String)

  private let keysOnly: Bool
  private var rows: [Row] = []

  init(keysOnly: Bool = false) {
    self.keysOnly = keysOnly
  }

  mutating func add(_ entry: Entry) {
    let expiry = entry.expiresIn.map { HumanReadable.time(seconds: ($0.wholeMilliseconds + 999) / 1_000) }
    rows.append((entry.key, String(entry.revision), expiry ?? "", keysOnly ? "" : Self.text(entry.value)))
  }

  mutating func add(missing key: String) {
    rows.append((key, "-", "", "(missing)"))
  }

  var text: String {
    let showsExpiry = rows.contains { !$0.expiry.isEmpty }
    func cells(_ row: Row) -> [String] {
      [row.key, row.revision] + (showsExpiry ? [row.expiry] : []) + (keysOnly ? [] : [row.value])
    }
    var table = Table(header: cells(("KEY", "REVISION", "EXPIRES IN", "VALUE")))
    for row in rows { table.add(cells(row)) }
    return table.text
  }

  private static func text(_ value: EntryValue) -> String {
    switch value {
    case .single(let bytes): return text(bytes)
    case .list(let elements):
      return "[" + elements.prefix(Table.maxCellBytes).map(text).joined(separator: ", ") + "]"
    }
  }

  private static func text(_ bytes: [UInt8]) -> String {
    EscapedText.line(bytes.prefix(Table.maxCellBytes))
  }
}
