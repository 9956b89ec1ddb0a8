import Larder

/// Parses lines of JSON into writes: lines as `EntryLine` formats them, or any objects, where one member is the key and
/// the whole line is the value.
struct EntryLineParser {
  /// The name of the member that contains the key; nil for lines of `EntryLine`.
  private let keyField: [UInt8]?
  /// The members of the current line; the array is reused to avoid allocations.
  private var members: [JSONScanner.Member] = []

  init(keyField: String?) {
    self.keyField = keyField.map { Array($0.utf8) }
  }

  mutating func parse(_ line: Span<UInt8>) throws(JSONError) -> Write {
    guard line.isUTF8 else { throw JSONError("the line is not valid UTF-8") }
    try JSONScanner.members(of: line, into: &members)
    if let keyField { return try object(line, keyField) }
    return try entry(line)
  }

  // MARK: Any object

  private func object(_ line: Span<UInt8>, _ keyField: [UInt8]) throws(JSONError) -> Write {
    var key: Range<Int>?
    for member in members where try isNamed(keyField, member, in: line) {
      guard key == nil else { throw JSONError("the member '\(text(keyField))' occurs twice") }
      key = member.value
    }
    guard let key else { throw JSONError("there is no member '\(text(keyField))'") }
    return Write(try self.key(line.extracting(key), allowsIntegers: true), line.toArray())
  }

  private func isNamed(_ name: [UInt8], _ member: JSONScanner.Member, in line: Span<UInt8>) throws(JSONError) -> Bool {
    let plain = line.extracting(member.name.lowerBound + 1..<member.name.upperBound - 1)
    if plain.firstIndex(of: UInt8(ascii: "\\")) == nil { return plain.equals(name) }
    return try JSONString.decode(line.extracting(member.name)) == name
  }

  private func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

  // MARK: An entry's line

  private enum Field { case key, value, valueBase64, values, valuesBase64, expiry, revision }

  private func entry(_ line: Span<UInt8>) throws(JSONError) -> Write {
    var key: String?
    var value: EntryValue?
    var expiry: Duration?
    for member in members {
      let content = line.extracting(member.value)
      let field = try field(member, in: line)
      switch field {
      case .key:
        guard key == nil else { throw JSONError("the member 'key' occurs twice") }
        key = try self.key(content, allowsIntegers: false)
      case .expiry:
        guard expiry == nil else { throw JSONError("the member 'expiresInMilliseconds' occurs twice") }
        expiry = .milliseconds(try milliseconds(content))
      case .revision: break
      case .value, .valueBase64, .values, .valuesBase64:
        guard value == nil else { throw JSONError("the entry has more than one value") }
        value = try self.value(content, field)
      }
    }
    guard let key else { throw JSONError("the entry has no 'key'; use --key FIELD to load other objects") }
    guard let value else { throw JSONError("the entry has no 'value', 'valueBase64', 'values' or 'valuesBase64'") }
    return Write(key, value, expiresIn: expiry)
  }

  private func field(_ member: JSONScanner.Member, in line: Span<UInt8>) throws(JSONError) -> Field {
    let plain = line.extracting(member.name.lowerBound + 1..<member.name.upperBound - 1)
    if plain.equals("key") { return .key }
    if plain.equals("value") { return .value }
    if plain.equals("revision") { return .revision }
    if plain.equals("expiresInMilliseconds") { return .expiry }
    if plain.equals("valueBase64") { return .valueBase64 }
    if plain.equals("values") { return .values }
    if plain.equals("valuesBase64") { return .valuesBase64 }
    throw JSONError(
      "an entry has no member \(line.extracting(member.name).toString()); use --key FIELD to load other objects")
  }

  private func value(_ content: Span<UInt8>, _ field: Field) throws(JSONError) -> EntryValue {
    switch field {
    case .value: return .single(try bytes(content))
    case .valueBase64: return .single(try base64(content))
    default:
      var elements: [[UInt8]] = []
      for range in try JSONScanner.elements(of: content) {
        let element = content.extracting(range)
        elements.append(field == .values ? try bytes(element) : try base64(element))
      }
      return .list(elements)
    }
  }

  // MARK: Parts

  /// Returns the text of a string, or the bytes of any other value unchanged.
  private func bytes(_ content: Span<UInt8>) throws(JSONError) -> [UInt8] {
    content[0] == UInt8(ascii: "\"") ? try JSONString.decode(content) : content.toArray()
  }

  private func base64(_ content: Span<UInt8>) throws(JSONError) -> [UInt8] {
    guard content[0] == UInt8(ascii: "\""), let bytes = Base64.decode(try JSONString.decode(content)) else {
      throw JSONError("a value is not valid Base64")
    }
    return bytes
  }

  private func key(_ content: Span<UInt8>, allowsIntegers: Bool) throws(JSONError) -> String {
    let key = try keyText(content, allowsIntegers: allowsIntegers)
    guard KeyLength.isValid(key.utf8.count) else {
      throw JSONError("the key has \(key.utf8.count) bytes, but \(KeyLength.rule)")
    }
    return key
  }

  private func keyText(_ content: Span<UInt8>, allowsIntegers: Bool) throws(JSONError) -> String {
    if allowsIntegers && isInteger(content) { return content.toString() }
    guard content[0] == UInt8(ascii: "\"") else {
      throw JSONError(allowsIntegers ? "the key is neither a string nor an integer" : "the key is not a string")
    }
    if content.firstIndex(of: UInt8(ascii: "\\")) != nil { return text(try JSONString.decode(content)) }
    return content.extracting(1..<content.count - 1).toString()
  }

  /// Returns whether a value that the scanner has validated consists of digits, with an optional minus sign.
  private func isInteger(_ content: Span<UInt8>) -> Bool {
    for index in 0..<content.count where content[index] &- UInt8(ascii: "0") > 9 {
      guard index == 0, content[0] == UInt8(ascii: "-") else { return false }
    }
    return true
  }

  private func milliseconds(_ content: Span<UInt8>) throws(JSONError) -> Int64 {
    guard let number = Int64(content.toString()), DurationArgument.range.contains(number) else {
      throw JSONError("'expiresInMilliseconds' is not a whole number from 1 to 2^53")
    }
    return number
  }
}
