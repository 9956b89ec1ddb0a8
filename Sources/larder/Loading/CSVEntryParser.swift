import Documents
import Larder

/// Parses lines of CSV into writes. The first line has the names of the fields: those of `larder dump`, or any names,
/// where one field is the key and the row is the value, as a JSON object.
///
/// A field in quotes can have line feeds, so a row can have several lines.
struct CSVEntryParser: EntryParser {
  /// The name of the field that is the key; nil for the fields of `larder dump`.
  private let keyField: String?
  /// The names in the first line; nil before it.
  private var names: [String]?
  /// The lines of a row whose quotes are still open.
  private var unfinished: [UInt8] = []
  private(set) var isInsideEntry = false

  init(keyField: String?) {
    self.keyField = keyField
  }

  var needsNames: Bool { names == nil }

  mutating func write(of line: Span<UInt8>) throws(LineError) -> Write? {
    unfinished.append(line)
    for index in line.indices where line[index] == UInt8(ascii: "\"") { isInsideEntry.toggle() }
    guard !isInsideEntry else {
      unfinished.append(UInt8(ascii: "\n"))
      return nil
    }
    let row = unfinished
    unfinished.removeAll(keepingCapacity: true)
    guard let text = String(validating: row, as: UTF8.self) else { throw LineError("it is not valid UTF-8") }
    guard let names else {
      names = try names(in: text)
      return nil
    }
    let fields = try CSV.fields(in: text)
    guard fields.count == names.count else {
      throw LineError("the row has \(fields.count) fields, but the first line has \(names.count) names")
    }
    return try keyField == nil ? entry(names, fields) : object(names, fields)
  }

  private func names(in text: String) throws(LineError) -> [String] {
    // Some programs begin a file with a byte order mark.
    let names = try CSV.fields(in: text.first == "\u{FEFF}" ? String(text.dropFirst()) : text)
    if let name = Dictionary(grouping: names, by: \.self).first(where: { $0.value.count > 1 })?.key {
      throw LineError("the name '\(name)' occurs twice")
    }
    let required = keyField.map { [$0] } ?? ["key", "value"]
    for name in required where !names.contains(name) {
      throw LineError(
        "the first line has no name '\(name)'" + (keyField == nil ? "; use --key FIELD to load other fields" : ""))
    }
    return names
  }

  private func entry(_ names: [String], _ fields: [String]) throws(LineError) -> Write {
    var (key, value) = ("", "")
    var expiry = LineExpiry()
    for (name, field) in zip(names, fields) {
      switch name {
      case "key": key = field
      case "value": value = field
      case "revision": break
      case LineExpiry.durationName: if !field.isEmpty { try expiry.readDuration(Array(field.utf8).span) }
      case LineExpiry.timeName: if !field.isEmpty { try expiry.readTime(Array(field.utf8).span) }
      default:
        throw LineError("an entry has no field '\(name)'; use --key FIELD to load other fields")
      }
    }
    return Write(try LineValue.validKey(key), .single(Array(value.utf8)), expiresIn: expiry.remaining)
  }

  /// Returns an object with a member for each field that isn't empty: a number or a Boolean if the field is one in
  /// JSON, and otherwise a string.
  private func object(_ names: [String], _ fields: [String]) throws(LineError) -> Write {
    var key = ""
    var json: [UInt8] = []
    for (name, field) in zip(names, fields) {
      if name == keyField { key = field }
      if field.isEmpty { continue }
      json.append(json.isEmpty ? UInt8(ascii: "{") : UInt8(ascii: ","))
      json.append(jsonString: name)
      json.append(UInt8(ascii: ":"))
      switch try? JSONValue(parsing: field) {
      case .integer, .double, .bool: json.append(contentsOf: field.utf8)
      default: json.append(jsonString: field)
      }
    }
    json.append(UInt8(ascii: "}"))
    return Write(try LineValue.validKey(key), json)
  }
}
