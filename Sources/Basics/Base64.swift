/// Padded Base64 as in RFC 4648 §4. Decoding is strict: it accepts only what encoding produces.
package enum Base64 {
  private static let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
  private static let padding = UInt8(ascii: "=")

  /// The value of each digit; 64 for bytes that aren't digits.
  private static let values: [UInt8] = {
    var values = [UInt8](repeating: 64, count: 256)
    for (value, digit) in digits.enumerated() { values[Int(digit)] = UInt8(value) }
    return values
  }()

  package static func append(_ bytes: Span<UInt8>, to output: inout [UInt8]) {
    let digits = digits
    output.reserveCapacity(output.count + (bytes.count + 2) / 3 * 4)
    for start in stride(from: 0, to: bytes.count, by: 3) {
      let count = min(3, bytes.count - start)
      var word: UInt32 = 0
      for index in 0..<3 { word = word << 8 | (index < count ? UInt32(bytes[start + index]) : 0) }
      for index in 0..<4 { output.append(index <= count ? digits[Int(word >> UInt32(18 - 6 * index) & 63)] : padding) }
    }
  }

  /// Returns the decoded bytes, or nil if the text is not strict Base64.
  package static func decode(_ text: [UInt8]) -> [UInt8]? {
    guard text.count.isMultiple(of: 4) else { return nil }
    let values = values
    let digits = text.count - text.suffix(2).count { $0 == padding }
    var bytes: [UInt8] = []
    bytes.reserveCapacity(digits * 3 / 4)
    var (word, bitCount) = (UInt32(0), UInt32(0))
    for digit in text[..<digits] {
      let value = values[Int(digit)]
      guard value < 64 else { return nil }
      word = word << 6 | UInt32(value)
      bitCount += 6
      guard bitCount >= 8 else { continue }
      bitCount -= 8
      bytes.append(UInt8(truncatingIfNeeded: word >> bitCount))
    }
    // The bits of the last digit that are in no byte are zero, and padding is only where digits are missing.
    guard word & (1 << bitCount - 1) == 0, text[digits...].allSatisfy({ $0 == padding }), bitCount < 6 else {
      return nil
    }
    return bytes
  }
}
