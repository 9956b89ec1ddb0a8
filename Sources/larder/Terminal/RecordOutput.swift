/// Prints records for programs: as lines of JSON, or as CSV with a header above the first record.
struct RecordOutput<Record> {
  enum Value {
    case number(UInt64)
    case text(String)
    case list([String])
  }

  /// A member of the JSON, and a column of the CSV. If a record has no value, the member is missing, and the field is
  /// empty.
  struct Column {
    fileprivate let name: String
    fileprivate let value: @Sendable (Record) -> Value?

    init(_ name: String, _ value: @escaping @Sendable (Record) -> Value?) {
      (self.name, self.value) = (name, value)
    }
  }

  private let columns: [Column]
  private var hasHeader = false

  init(_ columns: [Column]) {
    self.columns = columns
  }

  mutating func print(_ records: [Record]) throws {
    var output = Output()
    let isCSV = Output.format == .csv
    if isCSV, !hasHeader { output.bytes += CSV.line(columns.map(\.name)).utf8 }
    hasHeader = true
    for record in records {
      if isCSV {
        output.bytes += CSV.line(columns.map { $0.value(record)?.field ?? "" }).utf8
      } else {
        append(record, to: &output.bytes)
      }
    }
    try output.flush()
  }

  /// Appends a record as a line of JSON.
  private func append(_ record: Record, to output: inout [UInt8]) {
    output.append("{")
    var isFirst = true
    for column in columns {
      guard let value = column.value(record) else { continue }
      if !isFirst { output.append(",") }
      isFirst = false
      output.append(jsonString: column.name)
      output.append(":")
      value.append(to: &output)
    }
    output.append("}\n")
  }
}

extension RecordOutput.Value {
  /// The value as a field of CSV, without quotes.
  fileprivate var field: String {
    switch self {
    case .number(let number): String(number)
    case .text(let text): text
    case .list(let elements): elements.joined(separator: " ")
    }
  }

  /// Appends the value as JSON.
  fileprivate func append(to output: inout [UInt8]) {
    switch self {
    case .number(let number): output.append(number: number)
    case .text(let text): output.append(jsonString: text)
    case .list(let elements):
      output.append("[")
      for (index, element) in elements.enumerated() {
        if index > 0 { output.append(",") }
        output.append(jsonString: element)
      }
      output.append("]")
    }
  }
}

extension RecordOutput.Column: Sendable {}
