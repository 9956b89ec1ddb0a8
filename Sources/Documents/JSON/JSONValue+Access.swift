// What makes a `JSONValue` pleasant to write and to take apart.

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

  /// Creates an object. If names are equal, the last one counts.
  public init(dictionaryLiteral elements: (String, JSONValue)...) {
    var object = JSONObject()
    for (name, value) in elements { object[name] = value }
    self = .object(object)
  }
}

extension JSONValue {
  /// The value of an object's member; nil if there is no such member, or if this is no object.
  ///
  /// Setting it replaces the value, or appends a member if the name is new. Setting it to nil removes the member;
  /// assign `JSONValue.null` for a member that is null.
  /// - Precondition: When you set a value, this is an object.
  public subscript(name: String) -> JSONValue? {
    get { object?[name] }
    set {
      guard var object else { return precondition(newValue == nil, "only an object has members") }
      // With no other reference to the members, they are changed in place.
      self = .null
      object[name] = newValue
      self = .object(object)
    }
  }

  /// The element of an array; nil if there is no such element, or if this is no array.
  ///
  /// Setting it replaces the element. Setting it to nil removes the element.
  /// - Precondition: When you set a value, this is an array that has such an element.
  public subscript(index: Int) -> JSONValue? {
    get {
      guard let array, array.indices.contains(index) else { return nil }
      return array[index]
    }
    set {
      guard var array, array.indices.contains(index) else {
        return precondition(newValue == nil, "only an array of more than \(index) elements has an element \(index)")
      }
      self = .null
      if let newValue { array[index] = newValue } else { array.remove(at: index) }
      self = .array(array)
    }
  }

  /// The text of a string; nil for other values.
  public var string: String? { if case .string(let value) = self { value } else { nil } }

  /// The Boolean value; nil for values other than `true` and `false`.
  public var bool: Bool? { if case .bool(let value) = self { value } else { nil } }

  /// The value of an `integer`; nil for other values, also for 1.0.
  public var integer: Int64? { if case .integer(let value) = self { value } else { nil } }

  /// The value of any number, rounded to the nearest double; nil for other values.
  public var double: Double? { number?.double }

  /// The elements of an array; nil for other values.
  public var array: [JSONValue]? { if case .array(let elements) = self { elements } else { nil } }

  /// The members of an object; nil for other values.
  public var object: JSONObject? { if case .object(let members) = self { members } else { nil } }
}
