import Glibc

extension Span<UInt8> {
  /// Returns how the bytes compare with others: a negative number, zero or a positive number. For UTF-8, this is the
  /// order of Unicode scalars.
  @inline(__always)
  func order(_ other: Span<UInt8>) -> Int {
    let shared = Swift.min(count, other.count)
    guard shared > 0 else { return count - other.count }
    let order = unsafe withUnsafeBytes { left in
      unsafe other.withUnsafeBytes { right in
        unsafe memcmp(left.baseAddress.unsafelyUnwrapped, right.baseAddress.unsafelyUnwrapped, shared)
      }
    }
    return order == 0 ? count - other.count : Int(order)
  }

  func hasPrefix(_ part: [UInt8]) -> Bool {
    count >= part.count && extracting(first: part.count).order(part.span) == 0
  }

  func hasSuffix(_ part: [UInt8]) -> Bool {
    count >= part.count && extracting(last: part.count).order(part.span) == 0
  }
}
