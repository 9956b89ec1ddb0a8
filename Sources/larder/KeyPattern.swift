import ArgumentParser

/// A pattern for keys, as in a shell: `*` matches any text, `?` one character, `[abc]`, `[a-z]` and `[^a-z]` one of
/// several characters, and a backslash makes the next character stand for itself. Characters are Unicode scalars.
struct KeyPattern {
  private enum Element {
    case text(Unicode.Scalar)
    case anyScalar
    case anyText
    case oneOf([ClosedRange<Unicode.Scalar>], isNegated: Bool)

    func matches(_ scalar: Unicode.Scalar) -> Bool {
      switch self {
      case .text(let text): text == scalar
      case .anyScalar: true
      case .anyText: false
      case .oneOf(let ranges, let isNegated): ranges.contains { $0.contains(scalar) } != isNegated
      }
    }
  }

  let text: String
  private let elements: [Element]

  init(_ text: String) throws(ValidationError) {
    self.text = text
    var elements: [Element] = []
    var rest = text.unicodeScalars[...]
    while let scalar = rest.popFirst() {
      switch scalar {
      case "*": elements.append(.anyText)
      case "?": elements.append(.anyScalar)
      case "[": elements.append(try Self.oneOf(&rest))
      case "\\": elements.append(.text(try Self.escaped(&rest)))
      default: elements.append(.text(scalar))
      }
    }
    self.elements = elements
  }

  /// Reads what follows an opening bracket.
  private static func oneOf(_ rest: inout Substring.UnicodeScalarView) throws(ValidationError) -> Element {
    let isNegated = rest.first == "^" || rest.first == "!"
    if isNegated { rest.removeFirst() }
    var ranges: [ClosedRange<Unicode.Scalar>] = []
    while let scalar = rest.popFirst() {
      if scalar == "]", !ranges.isEmpty { return .oneOf(ranges, isNegated: isNegated) }
      let start = scalar == "\\" ? try escaped(&rest) : scalar
      var end = start
      if rest.first == "-", let next = rest.dropFirst().first, next != "]" {
        rest.removeFirst(2)
        end = next == "\\" ? try escaped(&rest) : next
      }
      guard start <= end else { throw ValidationError("the range \(start)-\(end) is empty") }
      ranges.append(start...end)
    }
    throw ValidationError("a [ has no ]; write \\[ for the character itself")
  }

  private static func escaped(_ rest: inout Substring.UnicodeScalarView) throws(ValidationError) -> Unicode.Scalar {
    guard let scalar = rest.popFirst() else {
      throw ValidationError("it ends in a backslash; write two for the character itself")
    }
    return scalar
  }

  /// The text with which all matching keys begin.
  var prefix: String {
    var prefix = String.UnicodeScalarView()
    for case .text(let scalar) in elements.prefix(while: { if case .text = $0 { true } else { false } }) {
      prefix.append(scalar)
    }
    return String(prefix)
  }

  /// Complexity: O(key · pattern).
  func matches(_ key: String) -> Bool {
    let key = Array(key.unicodeScalars)
    var (position, index) = (0, 0)
    // Where the latest `*` is, and the end of the text that it matches so far.
    var star: (index: Int, end: Int)?
    while position < key.count {
      if index < elements.count, case .anyText = elements[index] {
        star = (index, position)
        index += 1
      } else if index < elements.count, elements[index].matches(key[position]) {
        index += 1
        position += 1
      } else if let latest = star {
        star = (latest.index, latest.end + 1)
        (index, position) = (latest.index + 1, latest.end + 1)
      } else {
        return false
      }
    }
    return elements[index...].allSatisfy { if case .anyText = $0 { true } else { false } }
  }
}
