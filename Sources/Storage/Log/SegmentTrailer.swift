/// What a sealed segment ends with: `Protocol/log-format.md`, section 4.
///
/// Everything before it was on the disk when it was written, so it also tells damage from a torn tail.
struct SegmentTrailer: Equatable, Sendable {
  static let byteCount = 32

  /// Where the trailer is: the end of the records.
  var offset: Int
  /// The store's revision when the segment was sealed.
  var lastRevision: UInt64
  var identity: UInt64

  var bytes: [UInt8] {
    var body: [UInt8] = []
    for field in [UInt64(offset), lastRevision, identity] { body.append(littleEndian: field) }
    var bytes: [UInt8] = []
    bytes.append(littleEndian: 0 as UInt32)
    bytes.append(littleEndian: body.checksum())
    return bytes + body
  }

  /// Nil unless the bytes are the trailer that belongs at that offset.
  static func decode(_ bytes: UnsafeRawBufferPointer, at offset: Int, identity: UInt64) -> SegmentTrailer? {
    guard bytes.count >= byteCount else { return nil }
    let found = unsafe SegmentTrailer(
      offset: Int(clamping: bytes.integer(at: 8, as: UInt64.self)),
      lastRevision: bytes.integer(at: 16, as: UInt64.self), identity: bytes.integer(at: 24, as: UInt64.self))
    guard unsafe bytes.integer(at: 0, as: UInt32.self) == 0, found.offset == offset, found.identity == identity,
      unsafe bytes.integer(at: 4, as: UInt32.self) == UnsafeRawBufferPointer(rebasing: bytes[8..<byteCount]).checksum()
    else { return nil }
    return found
  }
}
