import CLinux

/// Nothing is checked: the bytes must be there.
extension UnsafeRawBufferPointer {
  /// The little-endian integer at that place.
  @inline(__always)
  func integer<T: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: T.Type) -> T {
    unsafe T(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }

  /// CRC32C of what had the checksum `crc` and these bytes behind it.
  @inline(__always)
  func checksum(after crc: UInt32 = 0) -> UInt32 { unsafe crc32c(crc, baseAddress, count) }

  /// The same, but for some of these bytes: where a checksum has its own place.
  @inline(__always)
  func checksum(after crc: UInt32 = 0, leavingOut range: Range<Int>) -> UInt32 {
    let before = unsafe UnsafeRawBufferPointer(rebasing: self[..<range.lowerBound]).checksum(after: crc)
    return unsafe UnsafeRawBufferPointer(rebasing: self[range.upperBound...]).checksum(after: before)
  }
}
