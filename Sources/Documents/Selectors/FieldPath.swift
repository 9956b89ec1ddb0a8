/// The path of a field in a document: the names of the members that lead to it.
///
/// As text, names are joined by dots, and a backslash makes the next character part of a name: `pet.species` is two
/// names, `a\.b` is one. In a document, a path goes through objects by name. It goes through an array by index if a
/// name is one (`tags.0`), and otherwise into each object in the array.
public struct FieldPath: Hashable, Sendable {
  /// The names. There is at least one, and none is empty.
  public let names: [String]

  /// Creates a path from names, in which dots and backslashes have no meaning.
  /// - Precondition: There is at least one name, and none is empty.
  public init(names: [String]) {
    precondition(!names.isEmpty && !names.contains(""), "a field's path needs at least one name and no empty names")
    self.names = names
  }

  /// Creates a path from text. Returns nil if a name is empty.
  ///
  /// A backslash at the end stands for itself.
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
    if isEscaped { name.append("\\") }
    names.append(String(name))
    guard !names.contains("") else { return nil }
    self.names = names
  }

  /// Paths are equal if their names have the same Unicode scalars.
  public static func == (left: FieldPath, right: FieldPath) -> Bool {
    left.names.elementsEqual(right.names) { $0.utf8.elementsEqual($1.utf8) }
  }

  public func hash(into hasher: inout Hasher) {
    for name in names {
      for byte in name.utf8 { hasher.combine(byte) }
      hasher.combine(0xFF as UInt8)
    }
  }

  /// Whether the path has so few and short names as one in a selector.
  var isWithinLimits: Bool {
    names.count <= SelectorParser.maxNameCount
      && names.reduce(0) { $0 + $1.utf8.count } <= SelectorParser.maxPathByteCount
  }

  static func + (left: FieldPath?, right: FieldPath) -> FieldPath {
    left.map { FieldPath(names: $0.names + right.names) } ?? right
  }

  /// Returns the path that leads from a field above to this one. Returns nil if they are the same field.
  /// - Precondition: This path begins with the names of the other one.
  func relative(to parent: FieldPath?) -> FieldPath? {
    guard let parent else { return self }
    precondition(
      names.starts(with: parent.names) { $0.utf8.elementsEqual($1.utf8) }, "the field is not under the other")
    return names.count == parent.names.count ? nil : FieldPath(names: Array(names[parent.names.count...]))
  }

  /// Returns the array index that a name stands for, or nil for other names. An index beyond the range of `Int` is that
  /// of no element.
  static func index(_ name: String) -> Int? {
    let digits = name.utf8
    guard digits.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }),
      digits.count == 1 || digits.first != UInt8(ascii: "0")
    else { return nil }
    return Int(name) ?? .max
  }
}

extension FieldPath: ExpressibleByStringLiteral {
  /// Creates a path from a literal.
  /// - Precondition: No name is empty. To read a path that isn't known when the program is written, call
  ///   `init(_:)` with a `String`, which returns nil in that case.
  public init(stringLiteral text: String) {
    guard let path = FieldPath(text) else { preconditionFailure("\"\(text)\" is not a field's path: a name is empty") }
    self = path
  }
}

extension FieldPath: CustomStringConvertible {
  /// The path as text, which `init(_:)` reads as an equal path. A `$` that the text would begin with is escaped, so
  /// that the text is never the name of an operator.
  public var description: String {
    var text = String.UnicodeScalarView()
    for (index, name) in names.enumerated() {
      if index > 0 { text.append(".") }
      for scalar in name.unicodeScalars {
        if scalar == "." || scalar == "\\" || (scalar == "$" && text.isEmpty) { text.append("\\") }
        text.append(scalar)
      }
    }
    return String(text)
  }
}
