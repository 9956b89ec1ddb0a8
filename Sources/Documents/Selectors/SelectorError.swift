/// Why JSON is no selector, sort or projection, and where.
public struct SelectorError: Error, Equatable, Sendable {
  /// Stable names of the reasons.
  public enum Code: String, CaseIterable, Sendable {
    case notJSON
    case notAnObject
    case operatorWithoutField
    case unknownOperator
    case badOperand
    case emptyClause
    case badPath
    case badSort
    case badFields
    case badSkipOrLimit
    case tooLarge
    case tooDeep
    case textNotAllowed
    case noTextIndex
    case badOptions
    case badRegularExpression
    case badExpression
    case badBookmark
  }

  public let code: Code
  /// Where, as a JSON path: `$` is the whole, `$.age.$in[2]` an element.
  public let path: String
  public let reason: String

  public init(_ code: Code, at path: String, _ reason: String) {
    self.code = code
    self.path = path
    self.reason = reason
  }
}

extension SelectorError: CustomStringConvertible {
  public var description: String { "\(reason) (at \(path))" }
}
