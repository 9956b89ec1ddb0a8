/// JSON strings: from their source to text, and back.
package enum JSONString {
  // MARK: Reading

  /// Returns the text of a JSON string in UTF-8; nil if the source is not exactly one string in its quotes.
  package static func bytes(of source: Span<UInt8>) -> [UInt8]? {
    guard source.count >= 2, source[0] == UInt8(ascii: "\"") else { return nil }
    return unsafe source.withUnsafeBytes { bytes in
      var scanner = unsafe JSONScanner(bytes)
      let hasEscapes: Bool
      do throws(JSONScanner.Failure) { hasEscapes = try scanner.skipString() } catch { return nil }
      guard scanner.position == scanner.end else { return nil }
      let text = 1..<scanner.end - 1
      guard hasEscapes else { return unsafe Array(scanner.bytes(text)) }
      var output: [UInt8] = []
      output.reserveCapacity(text.count)
      append(text, of: scanner, to: &output)
      return output
    }
  }

  /// Appends the text of a string that a scanner has passed.
  /// - Parameter source: The string without its quotes.
  static func append(_ source: Range<Int>, of scanner: JSONScanner, to text: inout [UInt8]) {
    var (position, copied) = (source.lowerBound, source.lowerBound)
    while position < source.upperBound {
      guard scanner[position] == UInt8(ascii: "\\") else {
        position += 1
        continue
      }
      unsafe text.append(contentsOf: scanner.bytes(copied..<position))
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
    unsafe text.append(contentsOf: scanner.bytes(copied..<source.upperBound))
  }

  /// Returns the scalar of one `\u` escape, or of the two of a surrogate pair, and the size of its source.
  private static func unicodeEscape(at position: Int, of scanner: JSONScanner) -> (Unicode.Scalar, size: Int) {
    let first = scanner.codeUnit(at: position + 2)
    if let scalar = Unicode.Scalar(first) { return (scalar, 6) }
    let second = scanner.codeUnit(at: position + 8)
    guard let scalar = Unicode.Scalar(0x10000 + (UInt32(first & 0x3FF) << 10 | UInt32(second & 0x3FF))) else {
      preconditionFailure("a scanner has passed the surrogate pair")
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
