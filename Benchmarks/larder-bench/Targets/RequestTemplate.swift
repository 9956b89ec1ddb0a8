import Wire

/// A prepared request with the offsets of the numbers to patch.
struct RequestTemplate: Equatable {
  var bytes: [UInt8]
  /// The offsets of the twelve digits of each key.
  var keyOffsets: [Int] = []
  /// The offsets of the twelve digits of each key that no entry has.
  var absentKeyOffsets: [Int] = []
  /// The offset of a page request's 8-byte offset field.
  var pageOffsetField: Int?
  /// The offset of a scan request's 4-byte limit field.
  var pageLimitField: Int?

  init(_ bytes: [UInt8] = []) {
    self.bytes = bytes
  }

  /// Appends a key whose digits will be patched.
  mutating func appendKey() {
    keyOffsets.append(bytes.count + BenchKey.digitsOffset)
    bytes += BenchKey.bytes(0)
  }

  /// Appends a key that no entry has, and whose digits will be patched.
  mutating func appendAbsentKey() {
    absentKeyOffsets.append(bytes.count + BenchKey.digitsOffset)
    bytes += BenchKey.bytes(0)
  }

  mutating func append(_ text: String) { bytes += text.utf8 }
}

/// The keys of all workloads: `key:` followed by twelve digits.
enum BenchKey {
  static let size = 16
  static let digitsOffset = 4
  /// The number of possible keys.
  static let limit: UInt64 = 1_000_000_000_000

  static func bytes(_ number: UInt64) -> [UInt8] {
    let digits = String(number)
    return Array("key:".utf8) + Array(repeating: 48, count: 12 - digits.utf8.count) + Array(digits.utf8)
  }

  /// Replaces the twelve digits at `offset`.
  @inline(__always)
  static func patch(_ output: inout ByteBuffer, at offset: Int, _ number: UInt64) {
    let (high, low) = number.quotientAndRemainder(dividingBy: 100_000_000)
    output.replace(at: offset, with: UInt32(truncatingIfNeeded: eightDigits(high) >> 32))
    output.replace(at: offset &+ 4, with: eightDigits(low))
  }

  /// Returns the decimal digits of a number below 100,000,000, the first one in the lowest byte. Splits the number into
  /// two, four and eight lanes, and divides all lanes at once.
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

/// The values of all workloads, which are printable and of the same size within a run.
enum BenchValue {
  static func bytes(size: Int) -> [UInt8] {
    (0..<size).map { UInt8(97 + $0 % 26) }
  }
}
