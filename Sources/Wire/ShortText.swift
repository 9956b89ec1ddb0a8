/// Text behind its 1-byte size: the names in stats and store bodies.
extension RawSpan {
  /// The text at `offset` and where it ends, or nil when it reaches past the end. What is not UTF-8 becomes U+FFFD.
  func shortText(at offset: Int) -> (text: String, end: Int)? {
    guard let size = integer(at: offset, as: UInt8.self), offset + 1 + Int(size) <= byteCount else { return nil }
    let end = offset + 1 + Int(size)
    return (extracting(offset + 1..<end).toString(), end)
  }
}

extension ByteBuffer {
  /// - Precondition: the text has at most 255 bytes.
  mutating func appendShort(_ text: String) {
    precondition(text.utf8.count <= 255)
    append(UInt8(text.utf8.count))
    append(text)
  }
}
