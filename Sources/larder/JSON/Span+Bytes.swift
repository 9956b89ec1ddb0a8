import Glibc

/// Conversions from spans to arrays, strings and C functions: the only unsafe code of the JSON types.
extension Span<UInt8> {
  @inline(__always)
  func toArray() -> [UInt8] {
    unsafe withUnsafeBufferPointer { unsafe Array($0) }
  }

  /// Returns the text of UTF-8 bytes.
  @inline(__always)
  func toString() -> String {
    unsafe withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
  }

  @inline(__always)
  func firstIndex(of byte: UInt8) -> Int? {
    unsafe withUnsafeBytes { bytes in
      guard let base = bytes.baseAddress, let found = unsafe memchr(base, Int32(byte), bytes.count) else { return nil }
      return unsafe UnsafeRawPointer(found) - base
    }
  }

  /// A Boolean value that indicates whether the bytes are valid UTF-8, without surrogates and overlong forms.
  var isUTF8: Bool { (try? UTF8Span(validating: self)) != nil }

  @inline(__always)
  func equals(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    return unsafe withUnsafeBytes { unsafe count == 0 || memcmp($0.baseAddress!, text.utf8Start, count) == 0 }
  }

  func equals(_ bytes: [UInt8]) -> Bool {
    unsafe withUnsafeBufferPointer { unsafe $0.elementsEqual(bytes) }
  }
}

extension [UInt8] {
  @inline(__always)
  mutating func append(_ bytes: Span<UInt8>) {
    unsafe bytes.withUnsafeBufferPointer { unsafe append(contentsOf: $0) }
  }

  mutating func append(_ text: StaticString) {
    unsafe append(contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
  }
}
