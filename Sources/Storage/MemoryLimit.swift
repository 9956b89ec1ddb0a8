import Basics

/// How much memory the entries of a store may take.
package struct MemoryLimit: Equatable, Sendable {
  private static let units: [(suffix: String, bytes: Int)] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)]
  static let range = 1 << 20...1 << 40

  package let bytes: Int
}

extension MemoryLimit: CustomStringConvertible {
  /// Reads a whole number of `KiB`, `MiB` or `GiB`, 1 MiB to 1,024 GiB; nil for anything else.
  package init?(_ text: String) {
    guard let unit = Self.units.first(where: { text.hasSuffix($0.suffix) }),
      let number = Int(digits: text.dropLast(unit.suffix.count))
    else { return nil }
    let (bytes, overflows) = number.multipliedReportingOverflow(by: unit.bytes)
    guard !overflows, Self.range.contains(bytes) else { return nil }
    self.bytes = bytes
  }

  /// As it is read, in the largest unit that it is a whole number of.
  package var description: String {
    let unit = Self.units.first { bytes % $0.bytes == 0 }
    return unit.map { "\(bytes / $0.bytes)\($0.suffix)" } ?? "\(bytes) bytes"
  }
}
