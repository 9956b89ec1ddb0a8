/// A selector that is prepared for matching many documents.
///
/// Each document is scanned once. The values of all fields that the selector names are found on the way, and conditions
/// are evaluated where those values are in the text. Matching a document without arrays of objects allocates nothing.
///
///     let adults = try CompiledSelector(Selector(parsing: #"{"age": {"$gte": 18}}"#))
///     documents.filter(adults.matches)
public struct CompiledSelector: Sendable {
  private let program: Program

  /// - Throws: `SelectorError` if the selector needs a text index, or if it was built in Swift and exceeds a limit.
  public init(_ selector: Selector) throws(SelectorError) { program = try Program(selector.checkedTree()) }

  /// Returns whether a document matches. Text that isn't a JSON object doesn't match.
  /// - Complexity: O(*n*) in the size of the text, and for each condition O(*m*) in the size of its values.
  public func matches(_ document: Document) -> Bool {
    document.withSource { source in
      WorkBudget.withoutLimit { budget in program.holds(for: source, &budget) }
    }
  }

  /// Returns whether a document matches whose `_id` and `_rev`, if any, are members of its text.
  public func matches(_ text: Span<UInt8>) -> Bool {
    WorkBudget.withoutLimit { budget throws(ExhaustedBudgetError) in try matches(text, &budget) }
  }

  /// Returns whether a document matches; see `matches(_:)`.
  /// - Throws: If the budget is exhausted.
  package func matches(_ text: Span<UInt8>, _ budget: inout WorkBudget) throws(ExhaustedBudgetError) -> Bool {
    let isMatch = unsafe text.withUnsafeBufferPointer { bytes in
      program.holds(for: unsafe DocumentSource(bytes), &budget)
    }
    try budget.check()
    return isMatch
  }
}
