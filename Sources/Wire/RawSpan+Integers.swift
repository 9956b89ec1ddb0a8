extension RawSpan {
  /// The little-endian integer at a byte offset, or nil when it would reach past the end.
  @inlinable
  public func integer<T: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: T.Type) -> T? {
    guard offset >= 0, offset <= byteCount &- MemoryLayout<T>.size else { return nil }
    return unsafe T(littleEndian: unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: T.self))
  }

  public func toArray() -> [UInt8] {
    unsafe withUnsafeBytes { unsafe Array($0) }
  }

  /// The bytes as text, with U+FFFD for what is not UTF-8.
  public func toString() -> String {
    unsafe withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }
}
