import FoundationEssentials

/// The place in a raw predicate where something else was expected.
public struct PredicateSyntaxError: Error, Equatable, Sendable {
  /// The place, as an offset in UTF-8. An interpolated value counts as two bytes, `%@`.
  public let offset: Int
  /// What is expected there, for people: "a closing parenthesis".
  public let expected: String

  package init(at offset: Int, _ expected: String) {
    self.offset = offset
    self.expected = expected
  }
}

extension PredicateSyntaxError: CustomStringConvertible, LocalizedError {
  /// "the predicate needs a closing parenthesis at offset 12".
  public var description: String { "the predicate needs \(expected) at offset \(offset)" }
  /// The description. It isn't translated.
  public var errorDescription: String? { description }
}
