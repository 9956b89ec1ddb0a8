import EntryFiles

/// A secret by which a client proves who it is: `ldr_`, 43 random digits of base 62, and 6 digits of their checksum.
///
/// 43 digits are 256 bits. The form makes tokens easy to find in texts where they should not be (the regular expression
/// is `ldr_[0-9A-Za-z]{49}`), and the checksum, the CRC-32 of the random digits, shows typing errors without a server.
package struct AccessToken: Equatable, Sendable {
  private static let prefix = "ldr_"
  private static let randomCount = 43
  private static let checksumCount = 6
  private static let digits = Array("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".utf8)

  /// The token. To a server, anyone who presents it is its owner.
  package let text: String

  /// Makes a new token from the system's random numbers, which are fit for secrets.
  package init() {
    var system = SystemRandomNumberGenerator()
    self.init(random: (0..<Self.randomCount).map { _ in Self.digits.randomElement(using: &system)! })
  }

  private init(random: [UInt8]) {
    text = Self.prefix + String(decoding: random + Self.checksum(of: random), as: UTF8.self)
  }

  /// Creates a token from its text, or returns nil if the text doesn't have the form of one, or a digit is wrong.
  package init?(_ text: String) {
    let bytes = Array(text.utf8)
    guard bytes.count == Self.prefix.utf8.count + Self.randomCount + Self.checksumCount, text.hasPrefix(Self.prefix)
    else { return nil }
    let random = Array(bytes[Self.prefix.utf8.count...].prefix(Self.randomCount))
    guard random.allSatisfy(Self.digits.contains),
      bytes.suffix(Self.checksumCount).elementsEqual(Self.checksum(of: random))
    else { return nil }
    self.text = text
  }

  /// What servers keep of it.
  package var digest: TokenDigest { TokenDigest(of: self) }

  /// The CRC-32 of bytes as digits of base 62: ISO 3309, as zlib and PNG compute it.
  private static func checksum(of bytes: [UInt8]) -> [UInt8] {
    var crc = UInt32.max
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0xEDB8_8320 }
    }
    var rest = Int(~crc)
    var digits: [UInt8] = []
    for _ in 0..<checksumCount {
      digits.append(Self.digits[rest % Self.digits.count])
      rest /= Self.digits.count
    }
    return digits.reversed()
  }
}

/// The SHA-256 digest of a token. It reveals nothing about the token, which is too random to be guessed.
package struct TokenDigest: Hashable, Sendable {
  /// 64 lowercase hexadecimal digits.
  package let text: String

  init(of token: AccessToken) { text = SHA256.hexadecimal(of: Array(token.text.utf8)) }

  init?(_ text: some StringProtocol) {
    guard text.utf8.count == 64, text.utf8.allSatisfy(Self.isDigit) else { return nil }
    self.text = String(text)
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (0x30...0x39).contains(byte) || (0x61...0x66).contains(byte) }

  /// Compares two digests in a time that doesn't depend on them.
  package static func == (a: TokenDigest, b: TokenDigest) -> Bool {
    var difference: UInt8 = 0
    for (x, y) in zip(a.text.utf8, b.text.utf8) { difference |= x ^ y }
    return difference == 0
  }
}
