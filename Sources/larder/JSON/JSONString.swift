/// The encoding of JSON strings. Only characters that require an escape are escaped.
enum JSONString {
  /// Appends UTF-8 bytes as a quoted string.
  static func append(_ text: Span<UInt8>, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    var plain = 0
    for index in 0..<text.count {
      let byte = text[index]
      guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
      output.append(text.extracting(plain..<index))
      plain = index + 1
      output.append(UInt8(ascii: "\\"))
      switch byte {
      case 0x08: output.append(UInt8(ascii: "b"))
      case 0x09: output.append(UInt8(ascii: "t"))
      case 0x0A: output.append(UInt8(ascii: "n"))
      case 0x0C: output.append(UInt8(ascii: "f"))
      case 0x0D: output.append(UInt8(ascii: "r"))
      case 0..<0x20:
        output.append(contentsOf: "u00".utf8)
        output.append(UInt8(ascii: "0") + byte >> 4)
        output.append(lowerHexDigit(byte & 0xF))
      default: output.append(byte)
      }
    }
    output.append(text.extracting(plain..<text.count))
    output.append(UInt8(ascii: "\""))
  }

  /// Returns the bytes of a quoted string that a scanner has validated.
  /// - Throws: `JSONError` for half of a surrogate pair, which is not a character.
  static func decode(_ string: Span<UInt8>) throws(JSONError) -> [UInt8] {
    let text = string.extracting(1..<string.count - 1)
    guard let first = text.firstIndex(of: UInt8(ascii: "\\")) else { return text.toArray() }
    var output: [UInt8] = []
    output.reserveCapacity(text.count)
    output.append(text.extracting(0..<first))
    var position = first
    while position < text.count {
      let byte = text[position]
      position += 1
      guard byte == UInt8(ascii: "\\") else {
        output.append(byte)
        continue
      }
      let escape = text[position]
      position += 1
      switch escape {
      case UInt8(ascii: "b"): output.append(0x08)
      case UInt8(ascii: "t"): output.append(0x09)
      case UInt8(ascii: "n"): output.append(0x0A)
      case UInt8(ascii: "f"): output.append(0x0C)
      case UInt8(ascii: "r"): output.append(0x0D)
      case UInt8(ascii: "u"): output.append(contentsOf: String(try scalar(text, at: &position)).utf8)
      default: output.append(escape)
      }
    }
    return output
  }

  /// Reads the digits after `\u`, and the second half of a surrogate pair.
  private static func scalar(_ text: Span<UInt8>, at position: inout Int) throws(JSONError) -> Unicode.Scalar {
    let unit = codeUnit(text, at: position)
    position += 4
    if let scalar = Unicode.Scalar(unit) { return scalar }
    let follows =
      text.count - position >= 6 && text[position] == UInt8(ascii: "\\") && text[position + 1] == UInt8(ascii: "u")
    let second = follows ? codeUnit(text, at: position + 2) : 0
    guard UTF16.isLeadSurrogate(unit), UTF16.isTrailSurrogate(second),
      let scalar = Unicode.Scalar(0x10000 + UInt32(unit - 0xD800) << 10 + UInt32(second - 0xDC00))
    else { throw JSONError("a string contains half of a surrogate pair, which is not a character") }
    position += 6
    return scalar
  }

  private static func codeUnit(_ text: Span<UInt8>, at position: Int) -> UInt16 {
    (position..<position + 4).reduce(0) { $0 << 4 | (hexDigitValue(text[$1]) ?? 0) }
  }

  private static func lowerHexDigit(_ value: UInt8) -> UInt8 {
    value < 10 ? UInt8(ascii: "0") + value : UInt8(ascii: "a") + value - 10
  }
}

extension [UInt8] {
  mutating func append(jsonString text: String) {
    JSONString.append(text.utf8.span, to: &self)
  }

  mutating func append(number: UInt64) {
    append(contentsOf: String(number).utf8)
  }
}
