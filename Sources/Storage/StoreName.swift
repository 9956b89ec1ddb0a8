/// A name that a store may have: 1 to 128 ASCII letters, digits, `.`, `_` and `-`, the first a letter, a digit or `_`.
///
/// The rule keeps every name a harmless file name, so that an engine on disk may use it as one: no separator, no
/// leading dot or dash, nothing that depends on a locale.
package struct StoreName: Hashable, Sendable {
  package static let maximumLength = 128

  package let text: String

  /// Throws `StorageError.invalidStoreName` for anything that breaks the rule.
  package init(_ text: String) throws(StorageError) {
    let bytes = text.utf8
    guard let first = bytes.first, bytes.count <= Self.maximumLength, Self.mayLead(first),
      bytes.allSatisfy(Self.mayFollow)
    else { throw .invalidStoreName(text) }
    self.text = text
  }

  private static func mayLead(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
    default: false
    }
  }

  private static func mayFollow(_ byte: UInt8) -> Bool {
    mayLead(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
  }
}

extension StoreName: Comparable, CustomStringConvertible {
  package static func < (left: StoreName, right: StoreName) -> Bool { left.text < right.text }
  package var description: String { text }
}
