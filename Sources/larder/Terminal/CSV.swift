/// Comma-separated values, as in RFC 4180, with line feeds between the lines.
enum CSV {
  /// Returns a line with its line feed.
  static func line(_ fields: [String]) -> String { fields.map(field).joined(separator: ",") + "\n" }

  /// Returns the fields of a row, whose quotes are all closed.
  static func fields(in row: String) throws(LineError) -> [String] {
    var fields: [String] = []
    var field = String.UnicodeScalarView()
    var scalars = row.unicodeScalars[...]
    while true {
      if scalars.first == "\"" {
        scalars.removeFirst()
        while let scalar = scalars.popFirst() {
          if scalar != "\"" {
            field.append(scalar)
          } else if scalars.first == "\"" {
            field.append(scalars.removeFirst())
          } else {
            break
          }
        }
        guard scalars.isEmpty || scalars.first == "," else {
          throw LineError("a comma is missing after the closing quote of field \(fields.count + 1)")
        }
      } else {
        while let scalar = scalars.first, scalar != "," {
          guard scalar != "\"" else {
            throw LineError("field \(fields.count + 1) has a quote, but doesn't begin with one; put it in quotes")
          }
          field.append(scalars.removeFirst())
        }
      }
      fields.append(String(field))
      field.removeAll()
      guard scalars.popFirst() != nil else { return fields }
    }
  }

  /// Returns a field, in quotes if it needs them.
  static func field(_ text: String) -> String {
    let needsQuotes = text.utf8.contains { ",\"\n\r".utf8.contains($0) } || text.first == " " || text.last == " "
    guard needsQuotes else { return text }
    var field = "\""
    for scalar in text.unicodeScalars {
      if scalar == "\"" { field.unicodeScalars.append(scalar) }
      field.unicodeScalars.append(scalar)
    }
    return field + "\""
  }
}
