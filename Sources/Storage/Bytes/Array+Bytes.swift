extension [UInt8] {
  /// The bytes where they lie, with typed errors.
  func withBytes<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    unsafe try span.withUnsafeBytes(body)
  }

  mutating func append<T: FixedWidthInteger>(littleEndian value: T) {
    for shift in stride(from: 0, to: T.bitWidth, by: 8) { append(UInt8(truncatingIfNeeded: value >> T(shift))) }
  }

  mutating func replace<T: FixedWidthInteger>(at offset: Int, littleEndian value: T) {
    for index in 0..<T.bitWidth / 8 { self[offset + index] = UInt8(truncatingIfNeeded: value >> T(8 * index)) }
  }

  /// The little-endian integer at that place, all of which must be there.
  func integer<T: FixedWidthInteger>(at offset: Int, as type: T.Type) -> T {
    (0..<T.bitWidth / 8).reduce(0) { $0 | T(self[offset + $1]) << T(8 * $1) }
  }

  /// CRC32C of all bytes but those.
  func checksum(leavingOut range: Range<Int> = 0..<0) -> UInt32 {
    unsafe withBytes { unsafe $0.checksum(leavingOut: range) }
  }
}
