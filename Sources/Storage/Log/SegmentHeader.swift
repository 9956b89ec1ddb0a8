import CLinux

/// What a segment begins with: `Protocol/log-format.md`, section 2.
struct SegmentHeader: Equatable, Sendable {
  static let byteCount = 64
  static let version: UInt16 = 1
  private static let magic: [UInt8] = Array("LARDRLOG".utf8)

  /// The store's, drawn when it was made.
  var identity: UInt64
  /// The number of the segment, which its file is named for.
  var number: UInt64
  /// The last of the segments that this one stands for: its own number, or more when others were merged into it.
  var lastNumber: UInt64
  /// No record has a lower revision.
  var firstRevision: UInt64
  /// The last revision of the segments that a compaction made this one of; 0 in a segment of commits.
  var lastRevision: UInt64 = 0
  /// What was not live when the store had this revision is not here; 0 in a segment of commits.
  var sweptRevision: UInt64 = 0

  var bytes: [UInt8] {
    var bytes = Self.magic
    bytes.appendLittleEndian(Self.version)
    bytes.appendLittleEndian(0 as UInt16)
    bytes.appendLittleEndian(0 as UInt32)
    for field in [identity, number, lastNumber, firstRevision, lastRevision, sweptRevision] {
      bytes.appendLittleEndian(field)
    }
    let crc = Self.checksum(bytes)
    for index in 0..<4 { bytes[12 + index] = UInt8(truncatingIfNeeded: crc >> (8 * UInt32(index))) }
    return bytes
  }

  /// Nil, and what is wrong, unless the bytes are a header.
  static func decode(_ bytes: [UInt8]) -> (header: SegmentHeader?, what: String) {
    guard bytes.count == byteCount, Array(bytes[..<8]) == magic else { return (nil, "this is no segment of a log") }
    guard bytes.integer(at: 8, as: UInt16.self) == version else {
      return (nil, "the format has version \(bytes.integer(at: 8, as: UInt16.self)), and this program knows \(version)")
    }
    guard bytes.integer(at: 12, as: UInt32.self) == checksum(bytes) else {
      return (nil, "the header's checksum is wrong")
    }
    let fields = (0..<6).map { bytes.integer(at: 16 + 8 * $0, as: UInt64.self) }
    let header = SegmentHeader(
      identity: fields[0], number: fields[1], lastNumber: fields[2], firstRevision: fields[3],
      lastRevision: fields[4], sweptRevision: fields[5])
    let isPossible = header.lastNumber >= header.number && header.lastNumber < .max
    return isPossible ? (header, "") : (nil, "the header contradicts itself")
  }

  /// Of all but the checksum itself.
  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    unsafe bytes.span.bytes.withUnsafeBytes { bytes in
      let crc = unsafe crc32c(0, bytes.baseAddress, 12)
      return unsafe crc32c(crc, bytes.baseAddress! + 16, byteCount - 16)
    }
  }
}

extension [UInt8] {
  mutating func appendLittleEndian<T: FixedWidthInteger>(_ value: T) {
    for index in 0..<T.bitWidth / 8 { append(UInt8(truncatingIfNeeded: value >> T(8 * index))) }
  }

  func integer<T: FixedWidthInteger>(at offset: Int, as type: T.Type) -> T {
    (0..<T.bitWidth / 8).reduce(0) { $0 | T(self[offset + $1]) << T(8 * $1) }
  }
}
