import Basics
import Larder

/// Entries as a table: a line each, with as much of the value as fits.
struct EntryTable {
  private let keysOnly: Bool
  private var rows: [(key: String, revision: String, expiry: String, value: String)] = []

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
    let expires = rows.contains { !$0.expiry.isEmpty }
    func cells(_ row: (key: String, revision: String, expiry: String, value: String)) -> [String] {
      [row.key, row.revision] + (expires ? [row.expiry] : []) + (keysOnly ? [] : [row.value])
    }
    var table = Table(header: cells(("KEY", "REVISION", "EXPIRES IN", "VALUE")))
    for row in rows { table.add(cells(row)) }
    return table.text
  }

  private static func text(_ value: EntryValue) -> String {
    switch value {
    case .single(let bytes): return text(bytes)
    case .list(let elements):
      return "[" + elements.prefix(Table.longestCell).map(text).joined(separator: ", ") + "]"
    }
  }

  private static func text(_ bytes: [UInt8]) -> String {
    EscapedText.line(bytes.prefix(Table.longestCell))
  }
}
