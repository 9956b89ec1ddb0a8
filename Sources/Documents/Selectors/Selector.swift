/// A query over documents: which of them match.
///
/// It is the tree that JSON selectors, Swift code and predicates in text all become. Its JSON form (`json`) reads back as an equal selector.
public indirect enum Selector: Equatable, Sendable {
  /// Every part matches; no parts match every document.
  case and([Selector])
  /// At least one part matches.
  case or([Selector])
  /// The part doesn't match.
  case not(Selector)
  /// A field satisfies a condition. Inside of `Condition.elemMatch` and the like, the path can be nil: the element itself.
  case field(FieldPath?, Condition)
  /// Some element of the field's values doesn't satisfy the inner selector, all of whose conditions are about that field and about one
  /// element at a time. A field without elements counts as one that satisfies nothing.
  case someElementNot(FieldPath?, Selector)
  /// Two computed operands compare as asked for.
  case expression(Expression.Comparison, Expression, Expression)
  /// A text index finds the words.
  case text(String)

  /// Matches every document.
  public static var all: Selector { .and([]) }
}
