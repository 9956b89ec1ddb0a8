import Larder

/// Prints entries as lines of JSON, as a table, or as CSV.
struct EntryOutput: ~Copyable {
  private let format: OutputFormat
  private let keysOnly: Bool
  private var output = Output()
  private var table: EntryTable
  private var isEmpty = true

  init(format: OutputFormat = Output.format, keysOnly: Bool = false) {
    self.format = format
    self.keysOnly = keysOnly
    table = EntryTable(keysOnly: keysOnly)
  }

  /// Prints entries, or a sentence in place of a table without rows.
  static func write(_ entries: [Entry], keysOnly: Bool, orIfEmpty sentence: String) throws {
    var output = EntryOutput(keysOnly: keysOnly)
    for entry in entries { try output.add(entry) }
    try output.finish(orIfEmpty: sentence)
  }

  static func csvHeader(keysOnly: Bool) -> String {
    (["key"] + (keysOnly ? [] : ["value"]) + ["revision", LineExpiry.durationName, LineExpiry.timeName])
      .joined(separator: ",")
  }

  /// - Throws: `CommandFailure` for a value that CSV can't have.
  mutating func add(_ entry: Entry) throws {
    begin()
    switch format {
    case .json: EntryLine.append(entry, keysOnly: keysOnly, to: &output.bytes)
    case .csv: try appendCSV(entry)
    case .table: table.add(entry)
    }
    try output.flushIfLarge()
  }

  /// Adds a key that has no entry.
  mutating func add(missing key: String) throws {
    begin()
    switch format {
    case .json: EntryLine.append(missing: key, to: &output.bytes)
    case .csv: output.bytes += (CSV.field(key) + (keysOnly ? ",,,\n" : ",,,,\n")).utf8
    case .table: table.add(missing: key)
    }
  }

  /// Prints what is not printed yet.
  /// - Parameter sentence: What to print in place of a table without rows; nil for its header.
  mutating func finish(orIfEmpty sentence: String? = nil) throws {
    if isEmpty, format == .table, let sentence { return try output.writeLine(sentence) }
    begin()
    if format == .table { try output.write(table: table.text) } else { try output.flush() }
  }

  private mutating func begin() {
    if isEmpty, format == .csv { output.bytes += (Self.csvHeader(keysOnly: keysOnly) + "\n").utf8 }
    isEmpty = false
  }

  private mutating func appendCSV(_ entry: Entry) throws {
    var fields = [entry.key]
    if !keysOnly {
      guard let bytes = entry.bytes, let value = String(validating: bytes, as: UTF8.self) else {
        let reason = entry.bytes == nil ? "is a list" : "has bytes that are not UTF-8"
        throw CommandFailure(.usage, "'\(entry.key)' \(reason), which CSV can't represent; use --format json")
      }
      fields.append(value)
    }
    fields.append(String(entry.revision))
    fields.append(entry.expiresIn.map { String(max(1, $0.wholeMilliseconds)) } ?? "")
    fields.append(entry.expiresIn.map { String(LineExpiry.time($0)) } ?? "")
    output.bytes += CSV.line(fields).utf8
  }
}
