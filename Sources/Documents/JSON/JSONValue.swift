/// A JSON value as a tree, for people and for small values. Documents are evaluated without it, on their bytes.
///
/// Values are equal if they are the same in the total order of documents: `1` equals `1.0`, strings are compared by Unicode scalars, and
/// the order of an object's members doesn't matter.
public enum JSONValue: Sendable {
  case null
  case bool(Bool)
  /// A number that is written as an integer and fits into 64 bits.
  case integer(Int64)
  /// Any other number. An infinity stands for a number beyond the range of doubles.
  case double(Double)
  case string(String)
  case array([JSONValue])
  case object(JSONObject)
}

// MARK: Reading

extension JSONValue {
  /// Reads JSON text. Of equal member names the last one counts.
  /// - Throws: `JSONError` for the first byte that is wrong.
  /// - Complexity: O(*n*) in one pass.
  public init(parsing text: Span<UInt8>, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    self = try JSON.scan(text, limits) { (scanner) throws(JSONScanner.Failure) in
      try Self.parse(&scanner, depth: 0, maxDepth: limits.maxDepth)
    }
  }

  /// Reads JSON text; see `init(parsing:limits:)` for bytes.
  public init(parsing text: String, limits: JSONLimits = JSONLimits()) throws(JSONError) {
    try self.init(parsing: Array(text.utf8).span, limits: limits)
  }

  static func parse(
    _ scanner: inout JSONScanner, depth: Int, maxDepth: Int
  ) throws(JSONScanner.Failure) -> JSONValue {
    guard let first = scanner.peek() else { throw scanner.failure(.value) }
    let start = scanner.position
    switch first {
    case UInt8(ascii: "{"):
      guard depth < maxDepth else { throw scanner.failure(.lessNesting) }
      scanner.move(to: start + 1)
      var object = JSONObject()
      if scanner.take(UInt8(ascii: "}")) { return .object(object) }
      repeat {
        let (name, hasEscapes) = try scanner.takeName()
        let text = string(name, hasEscapes, scanner)
        object[text] = try parse(&scanner, depth: depth + 1, maxDepth: maxDepth)
      } while scanner.take(UInt8(ascii: ","))
      guard scanner.take(UInt8(ascii: "}")) else { throw scanner.failure(.commaOrBrace) }
      return .object(object)
    case UInt8(ascii: "["):
      guard depth < maxDepth else { throw scanner.failure(.lessNesting) }
      scanner.move(to: start + 1)
      var array: [JSONValue] = []
      if scanner.take(UInt8(ascii: "]")) { return .array(array) }
      repeat {
        array.append(try parse(&scanner, depth: depth + 1, maxDepth: maxDepth))
      } while scanner.take(UInt8(ascii: ","))
      guard scanner.take(UInt8(ascii: "]")) else { throw scanner.failure(.commaOrBracket) }
      return .array(array)
    case UInt8(ascii: "\""):
      let hasEscapes = try scanner.skipString()
      return .string(string(start + 1..<scanner.position - 1, hasEscapes, scanner))
    default:
      return scalar(try scanner.skipValue(), scanner)
    }
  }

  /// A number, `true`, `false` or `null` that a scanner has passed.
  private static func scalar(_ range: Range<Int>, _ scanner: JSONScanner) -> JSONValue {
    switch scanner[range.lowerBound] {
    case UInt8(ascii: "t"): return .bool(true)
    case UInt8(ascii: "f"): return .bool(false)
    case UInt8(ascii: "n"): return .null
    default:
      switch unsafe JSONNumber(scanner.bytes(range)) {
      case .integer(let value): return .integer(value)
      case .double(let value): return .double(value)
      }
    }
  }

  private static func string(_ source: Range<Int>, _ hasEscapes: Bool, _ scanner: JSONScanner) -> String {
    guard hasEscapes else { return unsafe String(decoding: scanner.bytes(source), as: UTF8.self) }
    var text: [UInt8] = []
    JSONString.append(source, of: scanner, to: &text)
    return String(decoding: text, as: UTF8.self)
  }
}

// MARK: Writing

extension JSONValue: CustomStringConvertible {
  /// The value as JSON text on one line, without spaces. Reading it gives an equal value, except that not-a-number is written as `null`.
  public var description: String { String(decoding: encoded(), as: UTF8.self) }

  /// The bytes of `description`.
  public func encoded() -> [UInt8] {
    var output: [UInt8] = []
    append(to: &output)
    return output
  }

  func append(to output: inout [UInt8]) {
    switch self {
    case .null: output += Array("null".utf8)
    case .bool(let value): output += Array((value ? "true" : "false").utf8)
    case .integer(let value): output += Array(String(value).utf8)
    case .double(let value): output += Array(Self.text(of: value).utf8)
    case .string(let value): JSONString.append(quoting: Array(value.utf8).span, to: &output)
    case .array(let elements):
      output.append(UInt8(ascii: "["))
      for (index, element) in elements.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        element.append(to: &output)
      }
      output.append(UInt8(ascii: "]"))
    case .object(let members):
      output.append(UInt8(ascii: "{"))
      for (index, member) in members.enumerated() {
        if index > 0 { output.append(UInt8(ascii: ",")) }
        JSONString.append(quoting: Array(member.name.utf8).span, to: &output)
        output.append(UInt8(ascii: ":"))
        member.value.append(to: &output)
      }
      output.append(UInt8(ascii: "}"))
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
  public static func == (left: JSONValue, right: JSONValue) -> Bool { order(left, right) == 0 }

  /// The total order of documents: null, false, true, numbers, strings, arrays, objects.
  public static func < (left: JSONValue, right: JSONValue) -> Bool { order(left, right) < 0 }

  /// Negative, zero or positive.
  static func order(_ left: JSONValue, _ right: JSONValue) -> Int {
    switch (left, right) {
    case (.string(let left), .string(let right)): return order(left, right)
    case (.array(let left), .array(let right)):
      for (left, right) in zip(left, right) {
        let order = order(left, right)
        if order != 0 { return order }
      }
      return left.count - right.count
    case (.object(let left), .object(let right)):
      for (left, right) in zip(left.sorted, right.sorted) {
        let names = order(left.name, right.name)
        if names != 0 { return names }
        let values = order(left.value, right.value)
        if values != 0 { return values }
      }
      return left.count - right.count
    default:
      if let left = left.number, let right = right.number { return JSONNumber.order(left, right) }
      return left.rank - right.rank
    }
  }

  private static func order(_ left: String, _ right: String) -> Int {
    left.utf8.elementsEqual(right.utf8) ? 0 : left.utf8.lexicographicallyPrecedes(right.utf8) ? -1 : 1
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

  var number: JSONNumber? {
    switch self {
    case .integer(let value): .integer(value)
    case .double(let value): .double(value)
    default: nil
    }
  }
}

// MARK: For people

extension JSONValue: ExpressibleByNilLiteral, ExpressibleByBooleanLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByStringInterpolation, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  public init(nilLiteral: ()) { self = .null }
  public init(booleanLiteral value: Bool) { self = .bool(value) }
  public init(integerLiteral value: Int64) { self = .integer(value) }
  public init(floatLiteral value: Double) { self = .double(value) }
  public init(stringLiteral value: String) { self = .string(value) }
  public init(arrayLiteral elements: JSONValue...) { self = .array(elements) }
  /// Of equal names the last one counts.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    var object = JSONObject()
    for (name, value) in elements { object[name] = value }
    self = .object(object)
  }
}

extension JSONValue {
  /// The value of a member; nil if there is none, or if this is not an object.
  public subscript(name: String) -> JSONValue? {
    guard case .object(let members) = self else { return nil }
    return members[name]
  }

  /// An element; nil if there is none, or if this is not an array.
  public subscript(index: Int) -> JSONValue? {
    guard case .array(let elements) = self, elements.indices.contains(index) else { return nil }
    return elements[index]
  }

  /// The text of a string; nil for other values.
  public var string: String? { if case .string(let value) = self { value } else { nil } }
  /// nil for values other than `true` and `false`.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }
  /// The value of an integer; nil for other values.
  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }
  /// The value of any number, rounded if it is an integer that doubles don't have; nil for other values.
  public var double: Double? { number?.double }
}

extension JSONValue: Codable {
  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }
    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  public init(from decoder: any Decoder) throws {
    if let container = try? decoder.container(keyedBy: Name.self) {
      var object = JSONObject()
      for name in container.allKeys { object[name.stringValue] = try container.decode(JSONValue.self, forKey: name) }
      self = .object(object)
    } else if var container = try? decoder.unkeyedContainer() {
      var elements: [JSONValue] = []
      while !container.isAtEnd { elements.append(try container.decode(JSONValue.self)) }
      self = .array(elements)
    } else {
      let container = try decoder.singleValueContainer()
      if container.decodeNil() {
        self = .null
      } else if let value = try? container.decode(Bool.self) {
        self = .bool(value)
      } else if let value = try? container.decode(Int64.self) {
        self = .integer(value)
      } else if let value = try? container.decode(Double.self) {
        self = .double(value)
      } else {
        self = .string(try container.decode(String.self))
      }
    }
  }

  public func encode(to encoder: any Encoder) throws {
    switch self {
    case .object(let members):
      var container = encoder.container(keyedBy: Name.self)
      for (name, value) in members { try container.encode(value, forKey: Name(stringValue: name)) }
    case .array(let elements):
      var container = encoder.unkeyedContainer()
      for element in elements { try container.encode(element) }
    default:
      var container = encoder.singleValueContainer()
      switch self {
      case .null, .array, .object: try container.encodeNil()
      case .bool(let value): try container.encode(value)
      case .integer(let value): try container.encode(value)
      case .double(let value): try container.encode(value)
      case .string(let value): try container.encode(value)
      }
    }
  }
}
