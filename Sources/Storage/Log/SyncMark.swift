/// A record of the log's own: how much of the segment was on the disk when it was written. `Protocol/log-format.md`, section 3.
///
/// A crash may leave any part of what wasn't synced, in any order; a mark behind a broken place tells whether that place was.
struct SyncMark: Equatable, Sendable {
  static let byteCount = 40
  static let kind: UInt8 = 5
  /// Where the store's identity is in the record.
  static let identityOffset = 24

  var revision: UInt64
  var identity: UInt64
  /// Everything before this place was on the disk.
  var syncedByteCount: Int

  var bytes: [UInt8] {
    var body: [UInt8] = []
    body.append(littleEndian: UInt32(Self.byteCount - 8))
    body.append(littleEndian: revision)
    body.append(littleEndian: Self.kind)
    body.append(littleEndian: 0 as UInt8)
    body.append(littleEndian: 0 as UInt16)
    body.append(littleEndian: 16 as UInt32)
    body.append(littleEndian: identity)
    body.append(littleEndian: UInt64(syncedByteCount))
    var bytes = Array(body[..<4])
    bytes.append(littleEndian: body.checksum())
    return bytes + body[4...]
  }

  /// Nil unless the bytes begin with such a record of that store.
  static func decode(_ bytes: UnsafeRawBufferPointer, identity: UInt64) -> SyncMark? {
    guard bytes.count >= byteCount, unsafe bytes.integer(at: 0, as: UInt32.self) == UInt32(byteCount - 8),
      unsafe bytes[16] == kind, unsafe bytes.integer(at: identityOffset, as: UInt64.self) == identity
    else { return nil }
    let mark = unsafe SyncMark(
      revision: bytes.integer(at: 8, as: UInt64.self), identity: identity,
      syncedByteCount: Int(clamping: bytes.integer(at: 32, as: UInt64.self)))
    let whole = unsafe UnsafeRawBufferPointer(rebasing: bytes[..<byteCount])
    return unsafe mark.bytes.elementsEqual(whole) ? mark : nil
  }
}
