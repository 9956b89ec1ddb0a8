/// A statement that a connection prepares when it first runs it.
struct Statement: Hashable, Sendable {
  /// The name of the prepared statement.
  let name: String
  let sql: String

  init(_ name: String, _ sql: String) { (self.name, self.sql) = (name, sql) }
}

/// A parameter of a statement.
enum Parameter: Sendable {
  case integer(Int64)
  case text(String)
  case bytes([UInt8])
  case null

  /// Numbers, as the text of an array.
  static func array(_ numbers: [Int64]) -> Parameter {
    .text("{\(numbers.map(String.init).joined(separator: ","))}")
  }

  /// The value in PostgreSQL's binary format; nil for none.
  var binary: [UInt8]? {
    switch self {
    case .integer(let value): (0..<8).map { UInt8(truncatingIfNeeded: value >> (56 - 8 * $0)) }
    case .text(let text): Array(text.utf8)
    case .bytes(let bytes): bytes
    case .null: nil
    }
  }
}

/// What a statement has returned.
struct Rows: Sendable {
  /// The number of rows that it has changed, or returned.
  let count: Int
  /// The cells of the rows, in PostgreSQL's binary format.
  private let cells: [[[UInt8]?]]

  init(count: Int, cells: [[[UInt8]?]]) { (self.count, self.cells) = (count, cells) }

  /// Each row.
  var rows: [Row] { cells.map(Row.init) }

  struct Row {
    fileprivate let cells: [[UInt8]?]

    func isNull(_ column: Int) -> Bool { cells[column] == nil }

    /// - Precondition: The column has the type int8.
    func integer(_ column: Int) -> Int64 {
      (cells[column] ?? []).reduce(0) { $0 << 8 | Int64($1) }
    }

    func text(_ column: Int) -> String { String(decoding: cells[column] ?? [], as: UTF8.self) }
    func bytes(_ column: Int) -> [UInt8] { cells[column] ?? [] }
    func boolean(_ column: Int) -> Bool { cells[column] == [1] }
  }
}
