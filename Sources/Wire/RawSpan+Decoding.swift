extension RawSpan {
  /// Returns the little-endian integer at a byte offset, or nil if it would reach past the end.
  @inlinable
  public func integer<T: FixedWidthInteger & BitwiseCopyable>(at offset: Int, as type: T.Type) -> T? {
    guard offset >= 0, offset <= byteCount &- MemoryLayout<T>.size else { return nil }
    return unsafe T(littleEndian: unsafeLoadUnaligned(fromUncheckedByteOffset: offset, as: T.self))
  }

  /// Returns the revision at a byte offset, or nil if it would reach past the end, or no store can have it: revisions
  /// are below 2⁶³ (`Protocol/wire.md` §4), so that the one that follows another is a number, too.
  @inlinable
  public func revision(at offset: Int) -> UInt64? {
    guard let revision = integer(at: offset, as: UInt64.self), revision <= UInt64(Int64.max) else { return nil }
    return revision
  }

  public func toArray() -> [UInt8] {
    unsafe withUnsafeBytes { unsafe Array($0) }
  }

  /// Returns the bytes as a string. What is not UTF-8 becomes U+FFFD.
  public func toString() -> String {
    unsafe withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
  }

  /// Returns the string at `offset`, which follows its 1-byte size, and its end; or nil if it would reach past the end
  /// of the span.
  func shortText(at offset: Int) -> (text: String, end: Int)? {
    guard let size = integer(at: offset, as: UInt8.self), offset + 1 + Int(size) <= byteCount else { return nil }
    let end = offset + 1 + Int(size)
    return (extracting(offset + 1..<end).toString(), end)
  }
}

extension ByteBuffer {
  /// Appends a string after its 1-byte size.
  /// - Precondition: The string has at most 255 bytes.
  mutating func appendShort(_ text: String) {
    precondition(text.utf8.count <= 255)
    append(UInt8(text.utf8.count))
    append(text)
  }
}
