/// The reason why an index is not accepted, and its place.
public struct DocumentIndexError: Error, Equatable, Sendable {
  /// What is wrong, for programs. The raw values are stable.
  public enum Code: String, CaseIterable, Sendable {
    /// The definition isn't a JSON object, or has an unknown member.
    case badDefinition
    /// The index has no fields.
    case noFields
    /// The index has more than 32 fields.
    case tooManyFields
    /// A field is malformed or occurs twice, or its path has an empty name or exceeds a limit.
    case badField
    /// The name is empty, has more than 128 bytes, or has control characters.
    case badName
    /// The selector is not accepted, or has `$text`.
    case badSelector
    /// An index of that name has another definition. Delete it first.
    case otherDefinition
  }

  /// What is wrong, for programs.
  public let code: Code
  /// The place in the definition, as a JSON path: `$.fields[1]`.
  public let path: String
  /// What is wrong and what is expected, for people.
  public let reason: String

  /// Creates an error.
  /// - Parameter path: The place in the definition, as a JSON path.
  public init(_ code: Code, at path: String = "$", _ reason: String) {
    self.code = code
    self.path = path
    self.reason = reason
  }

  init(_ code: Code, at path: JSONPath, _ reason: String) { self.init(code, at: path.description, reason) }
}

extension DocumentIndexError: CustomStringConvertible {
  /// The reason and the place: "an index has at least one field (at $.fields)".
  public var description: String { "\(reason) (at \(path))" }
}
