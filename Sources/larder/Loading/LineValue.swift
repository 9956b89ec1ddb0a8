import Basics
import Documents
import Larder

/// Reads the values of members in lines of JSON.
enum LineValue {
  /// The members that have the value of an entry, by their names in `EntryLine`.
  enum Form { case value, valueBase64, values, valuesBase64 }

  /// Returns the form of the member with this name; nil for another member.
  static func form(named name: Span<UInt8>) -> Form? {
    if name.equals("value") { return .value }
    if name.equals("valueBase64") { return .valueBase64 }
    if name.equals("values") { return .values }
    if name.equals("valuesBase64") { return .valuesBase64 }
    return nil
  }

  static func entryValue(_ content: Span<UInt8>, _ form: Form) throws(LineError) -> EntryValue {
    switch form {
    case .value: return .single(bytes(content))
    case .valueBase64: return .single(try base64(content))
    case .values, .valuesBase64:
      let ranges: [Range<Int>]
      do throws(JSONError) {
        ranges = try JSON.elements(of: content, limits: .envelope)
      } catch { throw LineError("the value of 'values' or 'valuesBase64' is not an array") }
      var elements: [[UInt8]] = []
      elements.reserveCapacity(ranges.count)
      for range in ranges {
        let element = content.extracting(range)
        elements.append(form == .values ? bytes(element) : try base64(element))
      }
      return .list(elements)
    }
  }

  /// Returns the text of a string, or the bytes of any other value unchanged.
  private static func bytes(_ content: Span<UInt8>) -> [UInt8] { JSONString.bytes(of: content) ?? content.toArray() }

  private static func base64(_ content: Span<UInt8>) throws(LineError) -> [UInt8] {
    guard let text = JSONString.bytes(of: content), let bytes = Base64.decode(text) else {
      throw LineError("a value is not valid Base64")
    }
    return bytes
  }

  static func key(_ content: Span<UInt8>, allowsIntegers: Bool = false) throws(LineError) -> String {
    try validKey(keyText(content, allowsIntegers: allowsIntegers))
  }

  /// Returns the key if its length is valid.
  static func validKey(_ key: String) throws(LineError) -> String {
    guard KeyLength.isValid(key.utf8.count) else {
      throw LineError("the key has \(key.utf8.count) bytes, but \(KeyLength.rule)")
    }
    return key
  }

  private static func keyText(_ content: Span<UInt8>, allowsIntegers: Bool) throws(LineError) -> String {
    if allowsIntegers && isInteger(content) { return content.toString() }
    guard let bytes = JSONString.bytes(of: content) else {
      throw LineError(allowsIntegers ? "the key is neither a string nor an integer" : "the key is not a string")
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Returns whether a valid value consists of digits, with an optional minus sign.
  private static func isInteger(_ content: Span<UInt8>) -> Bool {
    for index in 0..<content.count where content[index] &- UInt8(ascii: "0") > 9 {
      guard index == 0, content[0] == UInt8(ascii: "-") else { return false }
    }
    return true
  }

  /// Returns the value of the member `expiresInMilliseconds`.
  static func expiry(_ content: Span<UInt8>) throws(LineError) -> Duration {
    guard let number = Int64(content.toString()), DurationArgument.range.contains(number) else {
      throw LineError("'expiresInMilliseconds' is not a whole number from 1 to 2^53")
    }
    return .milliseconds(number)
  }
}
