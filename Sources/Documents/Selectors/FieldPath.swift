/// Where a field is in a document: the names of the members that lead to it.
///
/// As text, names are joined by dots; a backslash makes the next character part of a name, so that `a\.b` is one name. In a document, a path
/// goes through objects by name, through an array by index if a name is one (`tags.0`), and otherwise into each of the array's objects.
public struct FieldPath: Hashable, Sendable {
  /// The names, at least one; each has at least one character.
  public let names: [String]

  /// - Precondition: there is at least one name, and none is empty.
  public init(names: [String]) {
    precondition(!names.isEmpty && !names.contains(""), "a path has at least one name, and no name is empty")
    self.names = names
  }

  /// Reads a path as text; nil if a name is empty.
  public init?(_ text: String) {
    var (names, name, isEscaped) = ([String](), String.UnicodeScalarView(), false)
    for scalar in text.unicodeScalars {
      if isEscaped {
        name.append(scalar)
        isEscaped = false
      } else if scalar == "\\" {
        isEscaped = true
      } else if scalar == "." {
        names.append(String(name))
        name = .init()
      } else {
        name.append(scalar)
      }
    }
    // A backslash at the end stands for itself.
    if isEscaped { name.append("\\") }
    names.append(String(name))
    guard !names.contains(where: { $0.unicodeScalars.isEmpty }) else { return nil }
    self.names = names
  }

  public static func == (left: FieldPath, right: FieldPath) -> Bool {
    left.names.elementsEqual(right.names) { $0.utf8.elementsEqual($1.utf8) }
  }

  public func hash(into hasher: inout Hasher) {
    for name in names {
      for byte in name.utf8 { hasher.combine(byte) }
      hasher.combine(0xFF as UInt8)
    }
  }

  static func + (left: FieldPath?, right: FieldPath) -> FieldPath {
    left.map { FieldPath(names: $0.names + right.names) } ?? right
  }

  /// The array index that a name is; nil for other names.
  static func index(_ name: String) -> Int? {
    let digits = name.utf8
    guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      digits.count == 1 || digits.first != UInt8(ascii: "0")
    else { return nil }
    return Int(name)
  }
}

extension FieldPath: CustomStringConvertible {
  public var description: String {
    names.enumerated().map { index, name in
      var text = ""
      for (position, scalar) in name.unicodeScalars.enumerated() {
        if scalar == "." || scalar == "\\" || (scalar == "$" && index == 0 && position == 0) { text += "\\" }
        text.unicodeScalars.append(scalar)
      }
      return text
    }.joined(separator: ".")
  }
}
