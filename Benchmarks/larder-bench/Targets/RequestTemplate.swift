import Wire

/// A request that is made already, with the places where numbers are patched in.
struct RequestTemplate: Equatable {
  var bytes: [UInt8]
  /// Where the twelve digits of keys are.
  var keyPlaces: [Int] = []
  /// Where the 8-byte offset of a page is.
  var offsetPlace: Int?
  /// Where the 4-byte limit of a scan is.
  var limitPlace: Int?

  init(_ bytes: [UInt8] = []) {
    self.bytes = bytes
  }

  /// Adds a key whose digits are patched.
  mutating func appendKey() {
    keyPlaces.append(bytes.count + BenchKey.digitsPlace)
    bytes += BenchKey.bytes(0)
  }

  mutating func append(_ text: String) { bytes += text.utf8 }
}

/// The keys of all workloads: `key:` and twelve digits.
enum BenchKey {
  static let size = 16
  static let digitsPlace = 4
  /// The greatest number of a key.
  static let limit: UInt64 = 1_000_000_000_000

  static func bytes(_ number: UInt64) -> [UInt8] {
    let digits = String(number)
    return Array("key:".utf8) + Array(repeating: 48, count: 12 - digits.utf8.count) + Array(digits.utf8)
  }

  /// Writes twelve digits over those at `place`.
  @inline(__always)
  static func patch(_ output: inout ByteBuffer, at place: Int, _ number: UInt64) {
    let (high, low) = number.quotientAndRemainder(dividingBy: 100_000_000)
    output.replace(at: place, with: UInt32(truncatingIfNeeded: eightDigits(high) >> 32))
    output.replace(at: place &+ 4, with: eightDigits(low))
  }

  /// The decimal digits of a number below 100,000,000, the first one in the lowest byte. The number is halved into two, four and
  /// eight lanes, and all lanes are divided at once.
  @inline(__always)
  static func eightDigits(_ number: UInt64) -> UInt64 {
    let fours = number / 10_000 | (number % 10_000) << 32
    let hundreds = ((fours &* 10_486) >> 20) & 0x0000_007F_0000_007F
    let twos = hundreds | (fours &- hundreds &* 100) << 16
    let tens = ((twos &* 103) >> 10) & 0x000F_000F_000F_000F
    let ones = tens | (twos &- tens &* 10) << 8
    return ones &+ 0x3030_3030_3030_3030
  }
}
