import Documents

/// A table of documents: one per line, with the fields that were asked for, or as much of the document as fits. The id is
/// the first column, except in CSV, whose columns are the fields.
///
/// The lines are taken in blocks, so that a table of any number of documents takes little memory.
struct DocumentTable {
  private static let id = FieldPath(names: ["_id"])
  private static let blockSize = 1_000

  private let columns: [FieldPath]
  private var table: Table
  /// The number of documents since the last block.
  private var count = 0
  private(set) var isEmpty = true

  init(_ fields: [FieldPath]) {
    let isExact = Output.format == .csv && !fields.isEmpty
    columns = isExact ? fields : [Self.id] + fields.filter { $0 != Self.id }
    table = Table(header: fields.isEmpty ? ["_id", "document"] : columns.map(\.description))
  }

  mutating func add(_ document: Document) throws {
    isEmpty = false
    count += 1
    let id = document.id ?? ""
    guard document.isProjection else {
      return table.add(id, String(decoding: document.text.withoutLineBreaks, as: UTF8.self))
    }
    let value = try document.value()
    table.add(columns.map { $0 == Self.id ? id : Self.text(of: $0, in: value) })
  }

  /// Returns nothing for a field that is missing.
  private static func text(of path: FieldPath, in document: JSONValue) -> String {
    path.names.reduce(document as JSONValue?) { $0?[$1] }?.cell ?? ""
  }

  /// Returns the lines of the documents since the last block, or nil if there are too few to be worth it.
  mutating func takeBlock() -> String? { count >= Self.blockSize ? takeText() : nil }

  /// Returns the lines of the documents since the last block.
  mutating func takeText() -> String {
    count = 0
    return table.takeText()
  }
}

extension JSONValue {
  /// The value in a table: a string without quotes, other values as JSON.
  var cell: String { string ?? description }
}

extension [UInt8] {
  /// JSON text on one line. Line breaks are white space in JSON: strings have escapes in their place.
  var withoutLineBreaks: [UInt8] {
    contains { $0 == UInt8(ascii: "\n") || $0 == UInt8(ascii: "\r") }
      ? filter { $0 != UInt8(ascii: "\n") && $0 != UInt8(ascii: "\r") } : self
  }
}
