extension Selector {
  /// What a field's value must be. See the documentation's table of operators for what each does with arrays.
  public indirect enum Condition: Equatable, Sendable {
    case equal(JSONValue, StringOptions = [])
    case less(JSONValue)
    case lessOrEqual(JSONValue)
    case greater(JSONValue)
    case greaterOrEqual(JSONValue)
    case `in`([JSONValue], StringOptions = [])
    case exists(Bool)
    case type(JSONType)
    /// An array of that many elements.
    case size(Int)
    case remainder(divisor: Int64, remainder: Int64)
    case regex(String, StringOptions = [])
    case beginsWith(String, StringOptions = [])
    case endsWith(String, StringOptions = [])
    case contains(String, StringOptions = [])
    /// The whole string, where `*` is any run and `?` one character; a backslash escapes the next.
    case like(String, StringOptions = [])
    /// An array that has every operand.
    case all([JSONValue])
    case elemMatch(Selector)
    case allMatch(Selector)
    case keyMapMatch(Selector)
  }

  /// What string operators ignore.
  public struct StringOptions: OptionSet, Sendable {
    public let rawValue: UInt8
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    public static let ignoringCase = StringOptions(rawValue: 1)
    public static let ignoringDiacritics = StringOptions(rawValue: 2)
  }
}

/// The kinds of JSON values, by their names in `$type`.
public enum JSONType: String, CaseIterable, Sendable {
  case null, boolean, number, string, array, object
}
