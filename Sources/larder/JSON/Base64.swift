/// Base64 as in RFC 4648 §4, with its padding.
enum Base64 {
  private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)

  /// The worth of each byte as a digit; 0xFF for those that are none.
  private static let worths: [UInt8] = {
    var worths = [UInt8](repeating: 0xFF, count: 256)
    for (worth, byte) in alphabet.enumerated() { worths[Int(byte)] = UInt8(worth) }
    return worths
  }()

  static func append(_ bytes: Span<UInt8>, to output: inout [UInt8]) {
    let alphabet = alphabet
    output.reserveCapacity(output.count + (bytes.count + 2) / 3 * 4)
    var place = 0
    while place < bytes.count {
      let left = bytes.count - place
      let second = left > 1 ? bytes[place + 1] : 0
      let third = left > 2 ? bytes[place + 2] : 0
      let group = Int(bytes[place]) << 16 | Int(second) << 8 | Int(third)
      output.append(alphabet[group >> 18])
      output.append(alphabet[group >> 12 & 63])
      output.append(left > 1 ? alphabet[group >> 6 & 63] : UInt8(ascii: "="))
      output.append(left > 2 ? alphabet[group & 63] : UInt8(ascii: "="))
      place += 3
    }
  }

  /// The bytes, or nil when the text is not strict Base64: bits that belong to no byte have to be zero.
  static func decode(_ text: [UInt8]) -> [UInt8]? {
    guard text.count % 4 == 0 else { return nil }
    let padding = text.suffix(2).reversed().prefix { $0 == UInt8(ascii: "=") }.count
    let digits = text.count - padding
    let worths = worths
    var output: [UInt8] = []
    output.reserveCapacity(text.count / 4 * 3)
    var group: UInt32 = 0
    for index in 0..<digits {
      let worth = worths[Int(text[index])]
      guard worth != 0xFF else { return nil }
      group = group << 6 | UInt32(worth)
      if index & 3 == 3 {
        output += [
          UInt8(truncatingIfNeeded: group >> 16), UInt8(truncatingIfNeeded: group >> 8),
          UInt8(truncatingIfNeeded: group),
        ]
        group = 0
      }
    }
    switch padding {
    case 1:
      guard group & 3 == 0 else { return nil }
      output += [UInt8(truncatingIfNeeded: group >> 10), UInt8(truncatingIfNeeded: group >> 2)]
    case 2:
      guard group & 15 == 0 else { return nil }
      output.append(UInt8(truncatingIfNeeded: group >> 4))
    default: break
    }
    return output
  }
}
