/// The name of a store: 1 to 128 ASCII letters, digits, `.`, `_` and `-`, starting with a letter, a digit or `_`.
///
/// The rule makes every name a safe file name, so that an engine on disk can use it as one: no separator, no leading
/// dot or dash, nothing that depends on a locale.
package struct StoreName: Hashable, Sendable {
  package static let maxLength = 128

  package let text: String

  /// - Throws: `StorageError.invalidStoreName` for a text that breaks the rule.
  package init(_ text: String) throws(StorageError) {
    let bytes = text.utf8
    guard let first = bytes.first, bytes.count <= Self.maxLength, Self.isValidFirst(first),
      bytes.allSatisfy(Self.isValid)
    else { throw .invalidStoreName(text) }
    self.text = text
  }

  private static func isValidFirst(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"): true
    case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"): true
    default: false
    }
  }

  private static func isValid(_ byte: UInt8) -> Bool {
    isValidFirst(byte) || byte == UInt8(ascii: ".") || byte == UInt8(ascii: "-")
  }
}

extension StoreName: Comparable, CustomStringConvertible {
  package static func < (left: StoreName, right: StoreName) -> Bool { left.text < right.text }
  package var description: String { text }
}
