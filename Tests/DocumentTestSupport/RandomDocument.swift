/// A random JSON value with its spelling: white space, escapes, how numbers are written.
package struct RandomDocument {
  package indirect enum Value {
    case scalar(String)
    /// Each element with the white space around it.
    case array([(before: String, value: Value, after: String)], whenEmpty: String)
    /// Each member's name as a string's source, and all before and after the value.
    case object([(name: String, before: String, value: Value, after: String)], whenEmpty: String)
  }

  package let value: Value

  /// Names that are often the same, with what they are in JSON text.
  package static let names = [
    "a": ["\"a\"", #""\u0061""#], "b": ["\"b\""], "0": ["\"0\"", #""\u0030""#], "1": ["\"1\""], "2": ["\"2\""],
    "x.y": ["\"x.y\""], "$z": ["\"$z\"", #""\u0024z""#], "é": ["\"é\"", #""\u00E9""#], "_id": ["\"_id\""],
  ]
  package static let sortedNames = names.keys.sorted()

  private static let scalars = [
    "null", "true", "false", "0", "-0", "1", "41", "-7", "1.50", "2e3", "1E-2", "9223372036854775807",
    "-9223372036854775808", "12345678901234567890", "1e308", #""""#, #""x""#, #""é""#, #""\u00e9\n\/""#,
  ]

  package init(value: Value) { self.value = value }

  /// - Parameter hasDuplicates: Whether objects can have members of equal names.
  package init(hasDuplicates: Bool, using random: inout some RandomNumberGenerator) {
    value = Self.object(hasDuplicates, 4, &random)
  }

  private static func space(_ random: inout some RandomNumberGenerator) -> String {
    ["", "", "", " ", "\n", "\t \r"].randomElement(using: &random)!
  }

  package static func value(_ hasDuplicates: Bool, _ depth: Int, _ random: inout some RandomNumberGenerator) -> Value {
    switch Int.random(in: 0..<(depth > 0 ? 5 : 2), using: &random) {
    case 0...1: return .scalar(scalars.randomElement(using: &random)!)
    case 2:
      let elements = (0..<Int.random(in: 0...3, using: &random)).map { _ in
        (space(&random), value(hasDuplicates, depth - 1, &random), space(&random))
      }
      return .array(elements, whenEmpty: space(&random))
    default: return object(hasDuplicates, depth, &random)
    }
  }

  private static func object(_ hasDuplicates: Bool, _ depth: Int, _ random: inout some RandomNumberGenerator) -> Value {
    var names = (0..<Int.random(in: 0...5, using: &random)).map { _ in sortedNames.randomElement(using: &random)! }
    if !hasDuplicates { names = Set(names).sorted().shuffled(using: &random) }
    let members = names.map { name in
      let spelling = Self.names[name]!.randomElement(using: &random)!
      let before = space(&random) + spelling + space(&random) + ":" + space(&random)
      return (name, before, value(hasDuplicates, depth - 1, &random), space(&random))
    }
    return .object(members, whenEmpty: space(&random))
  }

  /// The text, with the value at a path replaced.
  package func text(replacing path: [String]? = nil, by replacement: String = "") -> String {
    Self.text(value, path.map { $0[...] }, replacement)
  }

  private static func text(_ value: Value, _ path: ArraySlice<String>?, _ replacement: String) -> String {
    func inner(_ name: String) -> ArraySlice<String>? { path?.first == name ? path?.dropFirst() : nil }
    if path?.isEmpty == true { return replacement }
    switch value {
    case .scalar(let text): return text
    case .array(let elements, let whenEmpty):
      let texts = elements.enumerated().map { index, element in
        element.before + text(element.value, inner(String(index)), replacement) + element.after
      }
      return "[" + (texts.isEmpty ? whenEmpty : texts.joined(separator: ",")) + "]"
    case .object(let members, let whenEmpty):
      let texts = members.map { $0.before + text($0.value, inner($0.name), replacement) + $0.after }
      return "{" + (texts.isEmpty ? whenEmpty : texts.joined(separator: ",")) + "}"
    }
  }

  /// The paths of all values in the document.
  package var paths: [[String]] { Self.paths(value) }

  private static func paths(_ value: Value) -> [[String]] {
    let inner: [(String, Value)] =
      switch value {
      case .scalar: []
      case .array(let elements, _): elements.enumerated().map { (String($0), $1.value) }
      case .object(let members, _): members.map { ($0.name, $0.value) }
      }
    return inner.flatMap { name, value in [[name]] + paths(value).map { [name] + $0 } }
  }
}
