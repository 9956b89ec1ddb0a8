/// The reason why a selector, or another part of a query, is not accepted, and its place.
public struct SelectorError: Error, Equatable, Sendable {
  /// What is wrong, for programs. The raw values are stable: they are part of protocols and of other programs' code.
  public enum Code: String, CaseIterable, Sendable {
    /// The text is not JSON. The reason has line and column.
    case notJSON
    /// The selector is JSON, but not an object.
    case notAnObject
    /// An operator that is about a value is not under a field: `{"$gt": 3}`.
    case operatorWithoutField
    /// A name that begins with `$` is not an operator: `{"age": {"$gth": 3}}`.
    case unknownOperator
    /// An operator has the wrong kind of operand: `{"age": {"$in": 3}}`.
    case badOperand
    /// Selectors that an operator combines are missing or empty: `{"$or": []}`, `{"$and": [{}]}`, `{"age": {"$not":
    /// {}}}`.
    case emptyClause
    /// The path of a field has an empty name: `a..b`.
    case badPath
    /// A sort order is malformed.
    case badSort
    /// A list of fields to return is malformed.
    case badFields
    /// A number of documents to skip or to return is negative or not an integer.
    case badSkipOrLimit
    /// The text, the number of conditions, the number of operands or the path of a field exceeds its limit.
    case tooLarge
    /// The selector, or a value in it, is nested too deeply.
    case tooDeep
    /// `$text` is under a field, or there is more than one.
    case textNotAllowed
    /// `$text` needs a text index, and there is none.
    case noTextIndex
    /// `$options` has an unknown value, or no string operator is beside it.
    case badOptions
    /// The pattern of `$regex` is malformed, is not supported, or exceeds a limit. The reason has the offset.
    case badRegularExpression
    /// `$expr` is malformed, or is under a field.
    case badExpression
    /// A bookmark is not one that this query returned.
    case badBookmark
    /// The index that a query asks for doesn't exist, is still being built, or can't serve the query.
    case badIndex
    /// An aggregation is malformed.
    case badAggregation
  }

  /// What is wrong, for programs.
  public let code: Code
  /// The place as a JSON path: `$` is the whole, `$.age.$in[2]` an operand, and `$["a.b"]` a member whose name isn't a
  /// plain identifier. Names of more than 64 characters are cut.
  public let path: String
  /// What is wrong and what is expected, for people.
  public let reason: String

  /// Creates an error.
  /// - Parameter path: The place, as a JSON path.
  public init(_ code: Code, at path: String = "$", _ reason: String) {
    self.code = code
    self.path = path
    self.reason = reason
  }

  init(_ code: Code, at path: JSONPath, _ reason: String) { self.init(code, at: path.description, reason) }
}

extension SelectorError: CustomStringConvertible {
  /// The reason and the place: "$in takes an array (at $.age.$in)".
  public var description: String { "\(reason) (at \(path))" }
}
