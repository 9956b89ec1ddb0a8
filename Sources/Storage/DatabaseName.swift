/// The name of a database in the settings of a server: 1 to 32 lowercase ASCII letters, digits and `-`, beginning with a
/// letter.
package struct DatabaseName: Hashable, Sendable, LosslessStringConvertible {
  package let description: String

  /// - Returns: nil for anything else.
  package init?(_ text: String) {
    guard (1...32).contains(text.utf8.count), let first = text.utf8.first,
      (UInt8(ascii: "a")...UInt8(ascii: "z")) ~= first,
      text.utf8.allSatisfy({ (0x61...0x7A) ~= $0 || (0x30...0x39) ~= $0 || $0 == UInt8(ascii: "-") })
    else { return nil }
    description = text
  }
}
