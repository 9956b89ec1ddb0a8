import FoundationEssentials

/// The reason why a filter or a request can't be lowered to a selector.
public struct FilterError: Error, Equatable, Sendable {
  /// What is wrong, for programs.
  public enum Code: String, Sendable {
    /// A key path is no field of the documents, or it isn't known which one.
    case unknownField
    /// The type refuses the values that it is probed with to find out its fields.
    case unprobedType
    /// A value can't be encoded, or has no order.
    case badValue
    /// A `#Predicate` has an expression that filters don't have, or a filter for elements one that is for whole
    /// documents.
    case unsupportedExpression
    /// A limit or an offset is negative, or is not allowed where the request is used.
    case badRequest
  }

  /// What is wrong, for programs.
  public let code: Code
  /// What is wrong and what to do, for people.
  public let reason: String

  package init(_ code: Code, _ reason: String) {
    self.code = code
    self.reason = reason
  }
}

extension FilterError: CustomStringConvertible, LocalizedError {
  public var description: String { reason }
  /// The description. It isn't translated.
  public var errorDescription: String? { description }
}
