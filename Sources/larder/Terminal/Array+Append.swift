import Documents

/// The parts of a line of JSON, appended to the bytes of the output.
extension [UInt8] {
  @inline(__always)
  mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  mutating func append(_ text: StaticString) {
    unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }

  mutating func append(number: UInt64) {
    append(contentsOf: String(number).utf8)
  }

  /// Appends text in quotes, with escapes where they are required.
  mutating func append(jsonString text: String) {
    JSONString.append(quoting: text, to: &self)
  }
}
