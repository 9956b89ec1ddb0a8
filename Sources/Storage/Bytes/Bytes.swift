import CLinux

extension [UInt8] {
  /// Calls `body` with the bytes in place. Unlike `withUnsafeBytes`, it throws typed errors.
  func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe try span.withUnsafeBytes(body)
  }

  /// Appends an integer in little-endian order.
  mutating func append<T: FixedWidthInteger>(littleEndian value: T) {
    for shift in stride(from: 0, to: T.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> T(shift))) }
  }

  /// Overwrites the bytes at an offset with an integer in little-endian order.
  mutating func replace<T: FixedWidthInteger>(at offset: Int, littleEndian value: T) {
    for index in 0..<T.bitWidth / 8 { self[offset + index] = UInt8(truncatingIfNeeded: value >> T(8 * index)) }
  }

  /// Returns the little-endian integer at an offset. Traps if it extends beyond the array.
  func integer<T: FixedWidthInteger>(at offset: Int, as type: T.Type) -> T {
    (0..<T.bitWidth / 8).reduce(0) { $0 | T(self[offset + $1]) << T(8 * $1) }
  }

  /// Returns the CRC32C of all bytes outside a range.
  func checksum(excluding range: Range<Int> = 0..<0) -> UInt32 {
    unsafe withBytes { unsafe $0.checksum(excluding: range) }
  }
}

/// These functions don't check bounds.
extension UnsafeRawBufferPointer {
  /// Returns the little-endian integer at an offset.
  @inline(__always)
  func integer<T: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: T.Type) -> T {
    unsafe T(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
  }

  /// Returns the CRC32C of bytes with the checksum `crc` followed by these bytes.
  @inline(__always)
  func checksum(after crc: UInt32 = 0) -> UInt32 { unsafe crc32c(crc, baseAddress, count) }

  /// Returns the same checksum without the bytes of a range, such as the place of the checksum itself.
  @inline(__always)
  func checksum(after crc: UInt32 = 0, excluding range: Range<Int>) -> UInt32 {
    let before = unsafe UnsafeRawBufferPointer(rebasing: self[..<range.lowerBound]).checksum(after: crc)
    return unsafe UnsafeRawBufferPointer(rebasing: self[range.upperBound...]).checksum(after: before)
  }
}
