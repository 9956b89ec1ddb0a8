import Glibc

/// Conversions from spans to arrays and strings, and comparisons: the unsafe code of loading.
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

  /// A Boolean value that indicates whether there is nothing but spaces and tabs.
  var isBlank: Bool {
    for index in indices where self[index] != 0x20 && self[index] != 0x09 { return false }
    return true
  }

  @inline(__always)
  func equals(_ text: StaticString) -> Bool {
    guard count == text.utf8CodeUnitCount else { return false }
    return unsafe withUnsafeBytes { unsafe count == 0 || memcmp($0.baseAddress!, text.utf8Start, count) == 0 }
  }

  @inline(__always)
  func equals(_ bytes: [UInt8]) -> Bool {
    guard count == bytes.count else { return false }
    return unsafe withUnsafeBytes { unsafe count == 0 || memcmp($0.baseAddress!, bytes, count) == 0 }
  }
}
