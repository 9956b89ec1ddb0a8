/// A size in bytes, written as a whole number of bytes, `KiB`, `MiB` or `GiB`, such as `65536` or `2GiB`.
package struct ByteSize: Equatable, Sendable {
  private static let units: [(suffix: String, bytes: Int)] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]

  package let bytes: Int

  package init(bytes: Int) { self.bytes = bytes }
}

extension ByteSize: LosslessStringConvertible {
  /// Parses a size; nil for anything else.
  package init?(_ text: String) {
    let unit = Self.units.first { text.hasSuffix($0.suffix) } ?? ("", 1)
    guard let number = Int(digits: text.dropLast(unit.suffix.count)) else { return nil }
    let (bytes, overflows) = number.multipliedReportingOverflow(by: unit.bytes)
    guard !overflows else { return nil }
    self.bytes = bytes
  }

  /// The size in the largest unit that divides it.
  package var description: String {
    let unit = Self.units.first { bytes >= $0.bytes && bytes % $0.bytes == 0 } ?? ("", 1)
    return "\(bytes / unit.bytes)\(unit.suffix)"
  }
}
