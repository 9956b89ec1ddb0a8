import Documents
import Larder

/// Parses lines of JSON into writes: lines as `EntryLine` formats them, or any objects, where one member is the key and
/// the whole line is the value.
struct EntryLineParser {
  /// The name of the member that contains the key; nil for lines of `EntryLine`.
  private let keyField: [UInt8]?
  /// The members of the current line.
  private var members = JSONMembers()

  init(keyField: String?) {
    self.keyField = keyField.map { Array($0.utf8) }
  }

  mutating func parse(_ line: Span<UInt8>) throws(LineError) -> Write {
    do throws(JSONError) { try members.read(line, limits: .envelope) } catch { throw LineError(error) }
    if let keyField { return try object(line, keyField) }
    return try entry(line)
  }

  // MARK: Any object

  private func object(_ line: Span<UInt8>, _ keyField: [UInt8]) throws(LineError) -> Write {
    var key: Range<Int>?
    for member in members.all where isNamed(keyField, member, in: line) {
      guard key == nil else { throw LineError("the member '\(text(keyField))' occurs twice") }
      key = member.value
    }
    guard let key else { throw LineError("there is no member '\(text(keyField))'") }
    return Write(try self.key(line.extracting(key), allowsIntegers: true), line.toArray())
  }

  private func isNamed(_ name: [UInt8], _ member: JSONMembers.Member, in line: Span<UInt8>) -> Bool {
    if !member.nameHasEscapes { return line.extracting(member.name).equals(name) }
    return JSONString.bytes(of: line.extracting(member.quotedName)) == name
  }

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  // MARK: An entry's line

  private enum Field { case key, value, valueBase64, values, valuesBase64, expiry, revision }

  private func entry(_ line: Span<UInt8>) throws(LineError) -> Write {
    var key: String?
    var value: EntryValue?
    var expiry: Duration?
    for member in members.all {
      let content = line.extracting(member.value)
      let field = try field(member, in: line)
      switch field {
      case .key:
        guard key == nil else { throw LineError("the member 'key' occurs twice") }
        key = try self.key(content, allowsIntegers: false)
      case .expiry:
        guard expiry == nil else { throw LineError("the member 'expiresInMilliseconds' occurs twice") }
        expiry = .milliseconds(try milliseconds(content))
      case .revision: break
      case .value, .valueBase64, .values, .valuesBase64:
        guard value == nil else { throw LineError("the entry has more than one value") }
        value = try self.value(content, field)
      }
    }
    guard let key else { throw LineError("the entry has no 'key'; use --key FIELD to load other objects") }
    guard let value else { throw LineError("the entry has no 'value', 'valueBase64', 'values' or 'valuesBase64'") }
    return Write(key, value, expiresIn: expiry)
  }

  private func field(_ member: JSONMembers.Member, in line: Span<UInt8>) throws(LineError) -> Field {
    let name = line.extracting(member.name)
    if name.equals("key") { return .key }
    if name.equals("value") { return .value }
    if name.equals("revision") { return .revision }
    if name.equals("expiresInMilliseconds") { return .expiry }
    if name.equals("valueBase64") { return .valueBase64 }
    if name.equals("values") { return .values }
    if name.equals("valuesBase64") { return .valuesBase64 }
    throw LineError(
      "an entry has no member \(line.extracting(member.quotedName).toString()); use --key FIELD to load other objects")
  }

  private func value(_ content: Span<UInt8>, _ field: Field) throws(LineError) -> EntryValue {
    switch field {
    case .value: return .single(bytes(content))
    case .valueBase64: return .single(try base64(content))
    default:
      let ranges: [Range<Int>]
      do throws(JSONError) {
        ranges = try JSON.elements(of: content, limits: .envelope)
      } catch { throw LineError("the value of 'values' or 'valuesBase64' is not an array") }
      var elements: [[UInt8]] = []
      elements.reserveCapacity(ranges.count)
      for range in ranges {
        let element = content.extracting(range)
        elements.append(field == .values ? bytes(element) : try base64(element))
      }
      return .list(elements)
    }
  }

  // MARK: Parts

  /// Returns the text of a string, or the bytes of any other value unchanged.
  private func bytes(_ content: Span<UInt8>) -> [UInt8] { JSONString.bytes(of: content) ?? content.toArray() }

  private func base64(_ content: Span<UInt8>) throws(LineError) -> [UInt8] {
    guard let text = JSONString.bytes(of: content), let bytes = Base64.decode(text) else {
      throw LineError("a value is not valid Base64")
    }
    return bytes
  }

  private func key(_ content: Span<UInt8>, allowsIntegers: Bool) throws(LineError) -> String {
    let key = try keyText(content, allowsIntegers: allowsIntegers)
    guard KeyLength.isValid(key.utf8.count) else {
      throw LineError("the key has \(key.utf8.count) bytes, but \(KeyLength.rule)")
    }
    return key
  }

  private func keyText(_ content: Span<UInt8>, allowsIntegers: Bool) throws(LineError) -> String {
    if allowsIntegers && isInteger(content) { return content.toString() }
    guard let bytes = JSONString.bytes(of: content) else {
      throw LineError(allowsIntegers ? "the key is neither a string nor an integer" : "the key is not a string")
    }
    return text(bytes)
  }

  /// Returns whether a valid value consists of digits, with an optional minus sign.
  private func isInteger(_ content: Span<UInt8>) -> Bool {
    for index in 0..<content.count where content[index] &- UInt8(ascii: "0") > 9 {
      guard index == 0, content[0] == UInt8(ascii: "-") else { return false }
    }
    return true
  }

  private func milliseconds(_ content: Span<UInt8>) throws(LineError) -> Int64 {
    guard let number = Int64(content.toString()), DurationArgument.range.contains(number) else {
      throw LineError("'expiresInMilliseconds' is not a whole number from 1 to 2^53")
    }
    return number
  }
}

/// Why a line can't be loaded.
struct LineError: Error, Equatable, CustomStringConvertible {
  let description: String

  init(_ reason: String) { description = reason }

  init(_ error: JSONError) { description = "\(error.reason), at column \(error.column)" }
}
