/// A place in JSON, for messages: `$` is the whole value, `$.age.$in[2]` an element of an array, and `$["a.b"]` a member
/// whose name isn't a plain identifier.
///
/// Its text is only made for an error, so that keeping track of places costs little, however long the names are.
indirect enum JSONPath: Sendable {
  case root
  case member(JSONPath, String)
  case element(JSONPath, Int)

  /// The longest name that is shown in full, in Unicode scalars.
  private static let maxNameLength = 64

  /// Returns a name for a message. Long names are cut.
  static func shown(_ name: String) -> String {
    let scalars = name.unicodeScalars
    guard let end = scalars.index(scalars.startIndex, offsetBy: maxNameLength, limitedBy: scalars.endIndex),
      end != scalars.endIndex
    else { return name }
    return String(scalars[..<end]) + "…"
  }

  /// Returns a Boolean value that indicates whether a name can follow a dot: ASCII letters, digits, `_` and `$`, and no
  /// digit at the start.
  private static func isIdentifier(_ name: String) -> Bool {
    guard let first = name.utf8.first, !isDigit(first) else { return false }
    return name.utf8.allSatisfy { byte in
      (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20) || isDigit(byte) || byte == UInt8(ascii: "_")
        || byte == UInt8(ascii: "$")
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}

extension JSONPath: CustomStringConvertible {
  var description: String {
    switch self {
    case .root: "$"
    case .member(let parent, let name):
      Self.isIdentifier(name)
        ? "\(parent).\(Self.shown(name))" : "\(parent)[\(JSONValue.string(Self.shown(name)))]"
    case .element(let parent, let index): "\(parent)[\(index)]"
    }
  }
}
