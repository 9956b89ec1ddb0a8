/// JSON strings: from their source to text, and back.
enum JSONString {
  /// Appends the text of a string's source (without its quotes), which a scanner has passed.
  static func append(_ source: Range<Int>, of scanner: JSONScanner, to text: inout [UInt8]) {
    var (position, copied) = (source.lowerBound, source.lowerBound)
    text.reserveCapacity(text.count + source.count)
    func copy(to text: inout [UInt8]) {
      if copied < position { unsafe text.append(contentsOf: scanner.bytes(copied..<position)) }
    }
    while position < source.upperBound {
      guard scanner[position] == UInt8(ascii: "\\") else {
        position += 1
        continue
      }
      copy(to: &text)
      switch scanner[position + 1] {
      case UInt8(ascii: "b"): text.append(0x08)
      case UInt8(ascii: "f"): text.append(0x0C)
      case UInt8(ascii: "n"): text.append(0x0A)
      case UInt8(ascii: "r"): text.append(0x0D)
      case UInt8(ascii: "t"): text.append(0x09)
      case UInt8(ascii: "u"):
        let (scalar, size) = unicodeEscape(at: position, of: scanner)
        text.append(contentsOf: UTF8.encode(scalar)!)
        position += size - 2
      case let byte: text.append(byte)
      }
      position += 2
      copied = position
    }
    copy(to: &text)
  }

  /// The scalar of one `\u` escape or of the two of a surrogate pair, and the size of the source.
  private static func unicodeEscape(at position: Int, of scanner: JSONScanner) -> (Unicode.Scalar, size: Int) {
    guard let first = scanner.codeUnit(at: position + 2) else { preconditionFailure("a scanner has passed the escape") }
    if let scalar = Unicode.Scalar(first) { return (scalar, 6) }
    guard let second = scanner.codeUnit(at: position + 8),
      let scalar = Unicode.Scalar(0x10000 + (UInt32(first & 0x3FF) << 10 | UInt32(second & 0x3FF)))
    else { preconditionFailure("a scanner has passed the surrogate pair") }
    return (scalar, 12)
  }

  /// Appends text as a JSON string with its quotes: only what has to be escaped is escaped.
  static func append(quoting text: Span<UInt8>, to output: inout [UInt8]) {
    output.reserveCapacity(output.count + text.count + 2)
    output.append(UInt8(ascii: "\""))
    for index in text.indices {
      switch text[index] {
      case UInt8(ascii: "\""): output += [UInt8(ascii: "\\"), UInt8(ascii: "\"")]
      case UInt8(ascii: "\\"): output += [UInt8(ascii: "\\"), UInt8(ascii: "\\")]
      case 0x08: output += [UInt8(ascii: "\\"), UInt8(ascii: "b")]
      case 0x09: output += [UInt8(ascii: "\\"), UInt8(ascii: "t")]
      case 0x0A: output += [UInt8(ascii: "\\"), UInt8(ascii: "n")]
      case 0x0C: output += [UInt8(ascii: "\\"), UInt8(ascii: "f")]
      case 0x0D: output += [UInt8(ascii: "\\"), UInt8(ascii: "r")]
      case let byte where byte < 0x20:
        output += Array("\\u00".utf8) + [hexadecimalDigits[Int(byte >> 4)], hexadecimalDigits[Int(byte & 15)]]
      case let byte: output.append(byte)
      }
    }
    output.append(UInt8(ascii: "\""))
  }

  private static let hexadecimalDigits = Array("0123456789abcdef".utf8)
}
