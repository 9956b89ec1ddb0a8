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
}

extension UnsafeRawBufferPointer {
  func littleEndian<T: FixedWidthInteger & BitwiseCopyable>(at offset: Int) -> T {
    T(littleEndian: unsafe loadUnaligned(fromByteOffset: offset, as: T.self))
  }
}
