/// What a segment begins with: `Protocol/log-format.md`, section 2.
struct SegmentHeader: Equatable, Sendable {
  static let byteCount = 64
  static let version: UInt16 = 1
  /// No log ever comes to the last one, so that there is always a next.
  static let numbers = 1...UInt64(Int64.max)
  private static let magic: [UInt8] = Array("LARDRLOG".utf8)
  private static let checksumPlace = 12..<16

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
    bytes.append(littleEndian: Self.version)
    bytes.append(littleEndian: 0 as UInt16)
    bytes.append(littleEndian: 0 as UInt32)
    for field in [identity, number, lastNumber, firstRevision, lastRevision, sweptRevision] {
      bytes.append(littleEndian: field)
    }
    bytes.replace(at: Self.checksumPlace.lowerBound, littleEndian: bytes.checksum(leavingOut: Self.checksumPlace))
    return bytes
  }

  /// Nil, and what is wrong, unless the bytes are a header.
  static func decode(_ bytes: [UInt8]) -> (header: SegmentHeader?, what: String) {
    guard bytes.count == byteCount, Array(bytes[..<8]) == magic else { return (nil, "this is no segment of a log") }
    guard bytes.integer(at: 8, as: UInt16.self) == version else {
      return (nil, "the format has version \(bytes.integer(at: 8, as: UInt16.self)), and this program knows \(version)")
    }
    guard bytes.integer(at: checksumPlace.lowerBound, as: UInt32.self) == bytes.checksum(leavingOut: checksumPlace)
    else {
      return (nil, "the header's checksum is wrong")
    }
    let fields = (0..<6).map { bytes.integer(at: 16 + 8 * $0, as: UInt64.self) }
    let header = SegmentHeader(
      identity: fields[0], number: fields[1], lastNumber: fields[2], firstRevision: fields[3],
      lastRevision: fields[4], sweptRevision: fields[5])
    let isPossible =
      header.lastNumber >= header.number && header.lastNumber <= numbers.upperBound
      && max(header.firstRevision, header.lastRevision) <= CommitBuffer.revisions.upperBound
    return isPossible ? (header, "") : (nil, "the header contradicts itself")
  }
}
