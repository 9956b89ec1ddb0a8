/// The header of records that were written together: `Protocol/log-format.md`, section 3.
///
/// Only the segment's writer can make one: it contains the segment's salt, and its checksum covers its offset in the
/// file, so that not even a copy of it elsewhere in the segment is one. Nothing that a client wrote is mistaken for a
/// frame, and so for a record, wherever a reader starts after a damaged place.
///
/// In memory, its fields are as in the file.
struct LogFrame {
  static let byteCount = 24
  /// The maximum size of the records in a frame of commits, unless it has only one record. Damage to a record may cost
  /// all that follow it in its frame.
  static let usualRecordByteCount = 32 << 10
  /// The offset of the salt in the frame.
  static let saltOffset = 8
  private static let checksumRange = 4..<8

  private let recordByteCount: UInt32
  private var checksum: UInt32 = 0
  private let salt: UInt64
  private let synced: UInt64

  /// - Parameters:
  ///   - recordByteCount: The size of the records, which follow the frame's header.
  ///   - syncedByteCount: The end of the part of the segment that is on disk.
  ///   - offset: The offset of the frame in the file.
  init(recordByteCount: Int, salt: UInt64, syncedByteCount: Int, at offset: Int) {
    self.recordByteCount = UInt32(recordByteCount).littleEndian
    self.salt = salt.littleEndian
    synced = UInt64(syncedByteCount).littleEndian
    checksum = unsafe withBytes { unsafe Self.checksum(of: $0, at: offset) }.littleEndian
  }

  /// The end of the part of the segment that was on disk when the frame was written.
  var syncedByteCount: Int { Int(clamping: UInt64(littleEndian: synced)) }

  /// Returns `syncedByteCount` of the intact frame at the beginning of the bytes.
  static func syncedByteCount(_ bytes: UnsafeRawBufferPointer) -> Int {
    unsafe bytes.loadUnaligned(as: LogFrame.self).syncedByteCount
  }

  /// Calls `body` with the bytes of the header.
  func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe try withUnsafeBytes(of: self, body)
  }

  /// Decodes the frame at the beginning of the bytes; nil unless it is one that was written at that offset.
  /// - Parameter salt: The segment's salt; nil if it is unknown.
  static func decode(_ bytes: UnsafeRawBufferPointer, at offset: Int, salt: UInt64?) -> LogFrame? {
    guard bytes.count >= byteCount else { return nil }
    let frame = unsafe bytes.loadUnaligned(as: LogFrame.self)
    let found = UInt64(littleEndian: frame.salt)
    guard frame.recordByteCount != 0, found == salt ?? found, found & 1 == 1, frame.syncedByteCount <= offset,
      UInt32(littleEndian: frame.checksum)
        == (unsafe checksum(of: UnsafeRawBufferPointer(rebasing: bytes[..<byteCount]), at: offset))
    else { return nil }
    return frame
  }

  /// Checks the frame's header at the beginning of the bytes.
  ///
  /// - Parameters:
  ///   - bytes: The bytes that were read, from the frame's beginning on.
  ///   - remaining: The number of bytes in the file from there on.
  /// - Returns: For an intact header, the size of the records.
  static func check(
    _ bytes: UnsafeRawBufferPointer, at offset: Int, remaining: Int, salt: UInt64?
  ) -> LogRecord.CheckResult {
    guard remaining >= 4 else { return remaining == 0 ? .end : .damaged("a frame is truncated") }
    guard bytes.count >= 4 else { return .incomplete(byteCount: min(byteCount, remaining)) }
    let recordByteCount = unsafe Int(bytes.integer(at: 0, as: UInt32.self))
    if recordByteCount == 0 { return .end }
    guard remaining >= byteCount else { return .damaged("a frame is truncated") }
    guard bytes.count >= byteCount else { return .incomplete(byteCount: byteCount) }
    guard unsafe decode(bytes, at: offset, salt: salt) != nil else { return .damaged("a frame's checksum is wrong") }
    return .intact(byteCount: recordByteCount)
  }

  /// Returns the salt of the frame at the beginning of the bytes; nil unless they are a frame of any segment.
  static func salt(_ bytes: UnsafeRawBufferPointer, at offset: Int) -> UInt64? {
    unsafe decode(bytes, at: offset, salt: nil).map { UInt64(littleEndian: $0.salt) }
  }

  private static func checksum(of header: UnsafeRawBufferPointer, at offset: Int) -> UInt32 {
    let crc = unsafe header.checksum(excluding: checksumRange)
    return unsafe withUnsafeBytes(of: UInt64(offset).littleEndian) { unsafe $0.checksum(after: crc) }
  }
}
