/// Comma-separated values, as in RFC 4180, with line feeds between the lines.
enum CSV {
  /// Returns a line with its line feed.
  static func line(_ fields: [String]) -> String { fields.map(field).joined(separator: ",") + "\n" }

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
