/// A JSON value as a tree, for small values and for people. Documents are evaluated without it, on their bytes.
///
/// ```swift
/// var value = try JSONValue(parsing: #"{"name": "mike", "pets": ["cat"]}"#)
/// value["age"] = 12
/// value["pets"]?[0] = "dog"
/// print(value)  // {"name":"mike","pets":["dog"],"age":12}
/// ```
///
/// Values are equal if they have the same place in the total order of documents: `1` equals `1.0`, strings are compared
/// by Unicode scalars, and the order of an object's members doesn't matter.
public enum JSONValue: Sendable {
  case null
  case bool(Bool)
  /// A number that is written without a fraction and an exponent, and fits into 64 bits.
  case integer(Int64)
  /// Any other number. An infinity stands for a number beyond the range of doubles.
  case double(Double)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)
}

// MARK: Reading

extension JSONValue {
  /// Reads JSON text in UTF-8. If members of an object have the same name, the last one counts.
  /// - Throws: `JSONError` for the first byte that is wrong.
  /// - Complexity: O(*n*) in one pass, without recursion.
  public init(parsing text: Span<UInt8>, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    self = try JSON.scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
      try Self.parse(&scanner, depth: 0, maxDepth: limits.maxDepth)
    }
  }

  /// Reads JSON text that says what to do, such as a selector: members with the same name are an error, because one of
  /// them would be lost.
  /// - Throws: `JSONError` for the first byte that is wrong.
  package init(
    parsingInstruction text: Span<UInt8>, limits: JSONLimits = JSONLimits()
  ) throws(JSONError) {
    self = try JSON.scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
      try Self.parse(&scanner, depth: 0, maxDepth: limits.maxDepth, hasUniqueNames: true)
    }
  }

  /// Reads JSON text; see `init(parsing:limits:)` for bytes.
  /// - Throws: `JSONError` for the first byte that is wrong, with its offset in UTF-8.
  public init(parsing text: String, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    try self.init(parsing: text.utf8.span, limits: limits)
  }

  /// An array or object whose closing bracket has not come yet.
  private struct OpenContainer {
    let isObject: Bool
    private var elements: [JSONValue] = []
    private var members = JSONObject()
    /// The name of the member that is being read.
    var name = ""

    init(isObject: Bool) { self.isObject = isObject }

    /// Whether there is a member with the name already.
    var hasMember: Bool { members[name] != nil }

    @inline(__always)
    mutating func append(_ value: JSONValue) {
      if isObject { members[name] = value } else { elements.append(value) }
    }

    @inline(__always)
    consuming func close() -> JSONValue { isObject ? .object(members) : .array(elements) }
  }

  /// Passes a value. Without recursion, because threads with small stacks read deep values, too.
  /// - Parameters:
  ///   - depth: The number of arrays and objects that the value is in.
  ///   - hasUniqueNames: Whether members with the same name are an error.
  static func parse(
    _ scanner: inout JSONScanner, depth: Int, maxDepth: Int, hasUniqueNames: Bool = false
  ) throws(JSONScanner.Failure) -> JSONValue {
    var containers: [OpenContainer] = []
    while true {
      guard let first = scanner.peek() else { throw scanner.failure(.value) }
      var value: JSONValue
      if first == UInt8(ascii: "{") || first == UInt8(ascii: "[") {
        guard depth + containers.count < maxDepth else { throw scanner.failure(.lessNesting) }
        scanner.move(to: scanner.position + 1)
        var container = OpenContainer(isObject: first == UInt8(ascii: "{"))
        // In ASCII, either closing bracket is the opening one plus 2.
        if !scanner.take(first + 2) {
          if container.isObject { container.name = try name(&scanner) }
          containers.append(container)
          continue
        }
        value = container.close()
      } else {
        value = try scalar(&scanner, first)
      }
      // A value has ended, and with it the containers whose closing brackets follow.
      while let innermost = containers.indices.last {
        containers[innermost].append(value)
        let isObject = containers[innermost].isObject
        if scanner.take(UInt8(ascii: ",")) {
          if isObject {
            _ = scanner.peek()
            let start = scanner.position
            containers[innermost].name = try name(&scanner)
            if hasUniqueNames, containers[innermost].hasMember { throw scanner.text.failure(.newName, at: start) }
          }
          break
        }
        guard scanner.take(isObject ? UInt8(ascii: "}") : UInt8(ascii: "]")) else {
          throw scanner.failure(isObject ? .commaOrBrace : .commaOrBracket)
        }
        value = containers.removeLast().close()
      }
      if containers.isEmpty { return value }
    }
  }

  private static func name(_ scanner: inout JSONScanner) throws(JSONScanner.Failure) -> String {
    let (name, hasEscapes) = try scanner.takeName()
    return string(name, hasEscapes, scanner.text)
  }

  private static func scalar(_ scanner: inout JSONScanner, _ first: UInt8) throws(JSONScanner.Failure) -> JSONValue {
    if first == UInt8(ascii: "\"") {
      let start = scanner.position + 1
      let hasEscapes = try scanner.skipString()
      return .string(string(start..<scanner.position - 1, hasEscapes, scanner.text))
    }
    let range = try scanner.skipValue()
    switch first {
    case UInt8(ascii: "t"): return .bool(true)
    case UInt8(ascii: "f"): return .bool(false)
    case UInt8(ascii: "n"): return .null
    default:
      switch unsafe JSONNumber(scanner.text.bytes(range)) {
      case .integer(let value): return .integer(value)
      case .double(let value): return .double(value)
      }
    }
  }

  private static func string(_ source: Range<Int>, _ hasEscapes: Bool, _ text: JSONText) -> String {
    guard hasEscapes else { return unsafe String(decoding: text.bytes(source), as: UTF8.self) }
    var output: [UInt8] = []
    JSONString.append(source, of: text, to: &output)
    return String(decoding: output, as: UTF8.self)
  }
}

// MARK: Writing

extension JSONValue: CustomStringConvertible {
  /// The value as JSON text on one line, without spaces.
  ///
  /// Reading it gives an equal value, with one exception: not-a-number, which JSON doesn't have, is written as `null`.
  /// Infinities are written as `1e999` and `-1e999`.
  public var description: String { String(decoding: encoded(), as: UTF8.self) }

  /// Returns the bytes of `description`, in UTF-8.
  /// - Complexity: O(*n*) in the size of the result.
  public func encoded() -> [UInt8] {
    var output: [UInt8] = []
    append(to: &output)
    return output
  }

  /// Appends the bytes of `description`.
  func append(to output: inout [UInt8]) {
    switch self {
    case .array(let elements): Self.append(elements, to: &output)
    case .object(let members): Self.append(members, to: &output)
    default: appendScalar(to: &output)
    }
  }

  private static func append(_ elements: [JSONValue], to output: inout [UInt8]) {
    output.append(UInt8(ascii: "["))
    for index in elements.indices {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      elements[index].append(to: &output)
    }
    output.append(UInt8(ascii: "]"))
  }

  private static func append(_ members: JSONObject, to output: inout [UInt8]) {
    output.append(UInt8(ascii: "{"))
    for index in members.indices {
      if index > 0 { output.append(UInt8(ascii: ",")) }
      JSONString.append(quoting: members[index].name, to: &output)
      output.append(UInt8(ascii: ":"))
      members[index].value.append(to: &output)
    }
    output.append(UInt8(ascii: "}"))
  }

  private func appendScalar(to output: inout [UInt8]) {
    switch self {
    case .null, .array, .object: output.append(contentsOf: "null".utf8)
    case .bool(let value): output.append(contentsOf: (value ? "true" : "false").utf8)
    case .integer(let value): output.append(contentsOf: String(value).utf8)
    case .double(let value): output.append(contentsOf: Self.text(of: value).utf8)
    case .string(let value): JSONString.append(quoting: value, to: &output)
    }
  }

  private static func text(of double: Double) -> String {
    if double.isNaN { return "null" }
    if double.isInfinite { return double < 0 ? "-1e999" : "1e999" }
    return double.description
  }
}

// MARK: Order

extension JSONValue: Comparable {
  /// Values are equal if they have the same place in the total order.
  public static func == (left: JSONValue, right: JSONValue) -> Bool { order(left, right) == 0 }

  /// The total order of documents: null, false, true, numbers, strings, arrays, objects.
  ///
  /// Numbers are compared exactly, strings by Unicode scalars, arrays element by element, and objects member by member
  /// in the order of their names.
  public static func < (left: JSONValue, right: JSONValue) -> Bool { order(left, right) < 0 }

  /// Compares values.
  /// - Returns: A negative number, zero or a positive number.
  static func order(_ left: JSONValue, _ right: JSONValue) -> Int {
    switch (left, right) {
    case (.array(let left), .array(let right)): order(left, right)
    case (.object(let left), .object(let right)): order(left.sorted, right.sorted)
    default: scalarOrder(left, right)
    }
  }

  private static func order(_ left: [JSONValue], _ right: [JSONValue]) -> Int {
    for index in 0..<min(left.count, right.count) {
      let order = order(left[index], right[index])
      if order != 0 { return order }
    }
    return left.count - right.count
  }

  private static func order(_ left: [JSONObject.Element], _ right: [JSONObject.Element]) -> Int {
    for index in 0..<min(left.count, right.count) {
      let names = order(left[index].name, right[index].name)
      if names != 0 { return names }
      let values = order(left[index].value, right[index].value)
      if values != 0 { return values }
    }
    return left.count - right.count
  }

  /// Compares values that are not both arrays and not both objects.
  private static func scalarOrder(_ left: JSONValue, _ right: JSONValue) -> Int {
    if case .string(let left) = left, case .string(let right) = right { return order(left, right) }
    if let left = left.number, let right = right.number { return JSONNumber.order(left, right) }
    return left.rank - right.rank
  }

  private static func order(_ left: String, _ right: String) -> Int {
    left.hasSameScalars(as: right) ? 0 : left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
  }

  var rank: Int {
    switch self {
    case .null: 0
    case .bool(let value): value ? 2 : 1
    case .integer, .double: 3
    case .string: 4
    case .array: 5
    case .object: 6
    }
  }

  /// The number; nil for other values.
  var number: JSONNumber? {
    switch self {
    case .integer(let value): .integer(value)
    case .double(let value): .double(value)
    default: nil
    }
  }
}
