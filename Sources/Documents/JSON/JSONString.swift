/// JSON strings: from their source to text, and back.
package enum JSONString {
  // MARK: Reading

  /// Returns the text of a JSON string in UTF-8; nil if the source is not exactly one string in its quotes.
  package static func bytes(of source: Span<UInt8>) -> [UInt8]? {
    guard source.count >= 2, source[0] == UInt8(ascii: "\"") else { return nil }
    return unsafe source.withUnsafeBytes { bytes in
      let text = unsafe JSONText(bytes)
      let string: (end: Int, hasEscapes: Bool)
      do throws(JSONText.Failure) { string = try text.endOfString(at: 0) } catch { return nil }
      guard string.end == text.end else { return nil }
      let content = 1..<text.end - 1
      guard string.hasEscapes else { return unsafe Array(text.bytes(content)) }
      var output: [UInt8] = []
      output.reserveCapacity(content.count)
      append(content, of: text, to: &output)
      return output
    }
  }

  /// Appends the text of a string that has been passed.
  /// - Parameter source: The string without its quotes.
  static func append(_ source: Range<Int>, of text: JSONText, to output: inout [UInt8]) {
    var (position, copied) = (source.lowerBound, source.lowerBound)
    while position < source.upperBound {
      guard text[position] == UInt8(ascii: "\\") else {
        position += 1
        continue
      }
      unsafe output.append(contentsOf: text.bytes(copied..<position))
      switch text[position + 1] {
      case UInt8(ascii: "b"): output.append(0x08)
      case UInt8(ascii: "f"): output.append(0x0C)
      case UInt8(ascii: "n"): output.append(0x0A)
      case UInt8(ascii: "r"): output.append(0x0D)
      case UInt8(ascii: "t"): output.append(0x09)
      case UInt8(ascii: "u"):
        let (scalar, size) = unicodeEscape(at: position, of: text)
        output.append(contentsOf: UTF8.encode(scalar)!)
        position += size - 2
      case let byte: output.append(byte)
      }
      position += 2
      copied = position
    }
    unsafe output.append(contentsOf: text.bytes(copied..<source.upperBound))
  }

  /// Returns the scalar of one `\u` escape, or of the two of a surrogate pair, and the size of its source.
  private static func unicodeEscape(at position: Int, of text: JSONText) -> (Unicode.Scalar, size: Int) {
    let first = text.codeUnit(at: position + 2)
    if let scalar = Unicode.Scalar(first) { return (scalar, 6) }
    let second = text.codeUnit(at: position + 8)
    guard let scalar = Unicode.Scalar(0x10000 + (UInt32(first & 0x3FF) << 10 | UInt32(second & 0x3FF))) else {
      preconditionFailure("the surrogate pair has been passed")
    }
    return (scalar, 12)
  }

  // MARK: Writing

  /// Appends text as a JSON string in its quotes. Only characters that require an escape are escaped.
  /// - Parameter text: Valid UTF-8.
  package static func append(quoting text: Span<UInt8>, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "\""))
    var copied = 0
    for index in text.indices {
      let byte = text[index]
      guard byte < 0x20 || byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") else { continue }
      append(text.extracting(copied..<index), to: &output)
      copied = index + 1
      output.append(UInt8(ascii: "\\"))
      switch byte {
      case 0x08: output.append(UInt8(ascii: "b"))
      case 0x09: output.append(UInt8(ascii: "t"))
      case 0x0A: output.append(UInt8(ascii: "n"))
      case 0x0C: output.append(UInt8(ascii: "f"))
      case 0x0D: output.append(UInt8(ascii: "r"))
      case 0..<0x20:
        output.append(contentsOf: [UInt8(ascii: "u"), UInt8(ascii: "0"), UInt8(ascii: "0")])
        output.append(hexadecimalDigits[Int(byte >> 4)])
        output.append(hexadecimalDigits[Int(byte & 15)])
      default: output.append(byte)
      }
    }
    append(text.extracting(copied..<text.count), to: &output)
    output.append(UInt8(ascii: "\""))
  }

  /// Appends text as a JSON string in its quotes.
  package static func append(quoting text: String, to output: inout [UInt8]) {
    append(quoting: text.utf8.span, to: &output)
  }

  private static func append(_ text: Span<UInt8>, to output: inout [UInt8]) {
    unsafe text.withUnsafeBufferPointer { unsafe output.append(contentsOf: $0) }
  }

  private static let hexadecimalDigits = Array("0123456789abcdef".utf8)
}
