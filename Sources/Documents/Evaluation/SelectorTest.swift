/// A part of a selector, to be tested on a document. Classes with constants, because a call of one of their methods
/// counts no references.
class SelectorTest: @unchecked Sendable {
  /// Returns whether the test holds.
  /// - Parameters:
  ///   - element: The element of an array that the selector is about; nil for a document.
  ///   - values: The values of the selector's paths.
  ///   - budget: Once it is exhausted, the result means nothing.
  func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    preconditionFailure("abstract")
  }

  /// Returns whether a test that is about one element at a time holds for an element, or for nothing if it is nil.
  func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool { preconditionFailure("abstract") }
}

/// Holds if both of two tests hold, or if one of them does.
final class PairTest: SelectorTest, @unchecked Sendable {
  private let first: SelectorTest
  private let second: SelectorTest
  private let needsBoth: Bool

  private init(_ first: SelectorTest, _ second: SelectorTest, needsBoth: Bool) {
    self.first = first
    self.second = second
    self.needsBoth = needsBoth
  }

  /// Returns a test that holds if all of some tests hold: a balanced tree, which is not deep.
  static func all(_ tests: [SelectorTest]) -> SelectorTest { combining(tests[...], needsBoth: true) }

  /// Returns a test that holds if one of some tests holds: a balanced tree, which is not deep.
  static func any(_ tests: [SelectorTest]) -> SelectorTest { combining(tests[...], needsBoth: false) }

  private static func combining(_ tests: ArraySlice<SelectorTest>, needsBoth: Bool) -> SelectorTest {
    guard tests.count > 1 else { return tests.first ?? ConstantTest(needsBoth) }
    let half = tests.count / 2
    return PairTest(
      combining(tests.prefix(half), needsBoth: needsBoth), combining(tests.dropFirst(half), needsBoth: needsBoth),
      needsBoth: needsBoth)
  }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    first.holds(element, values, &budget) == needsBoth ? second.holds(element, values, &budget) : !needsBoth
  }

  override func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool {
    first.holds(forOne: element, &budget) == needsBoth ? second.holds(forOne: element, &budget) : !needsBoth
  }
}

/// Always holds, or never.
private final class ConstantTest: SelectorTest, @unchecked Sendable {
  private let holds: Bool

  init(_ holds: Bool) { self.holds = holds }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    holds
  }

  override func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool { holds }
}

/// Holds if another test doesn't.
final class NotTest: SelectorTest, @unchecked Sendable {
  private let test: SelectorTest

  init(_ test: SelectorTest) { self.test = test }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    !test.holds(element, values, &budget)
  }

  override func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool {
    !test.holds(forOne: element, &budget)
  }
}

/// Holds if some value of a path satisfies a condition.
final class FieldTest: SelectorTest, @unchecked Sendable {
  private let path: Int
  private let condition: ConditionTest

  init(_ path: Int, _ condition: ConditionTest) {
    self.path = path
    self.condition = condition
  }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    values.hasValue(of: path) { condition.holdsOrEnds(for: $0, &budget) }
  }

  override func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool {
    condition.holds(forOne: element, &budget)
  }
}

/// Holds if a path leads to some value, or to none.
final class ExistenceTest: SelectorTest, @unchecked Sendable {
  private let path: Int
  private let exists: Bool

  init(_ path: Int, _ exists: Bool) {
    self.path = path
    self.exists = exists
  }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    budget.spend()
    return values.isEmpty(path) != exists
  }

  override func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool {
    guard let element, !element.isArray else { return false }
    return exists
  }
}

/// Holds if the element that the selector is about satisfies a condition.
final class ElementTest: SelectorTest, @unchecked Sendable {
  private let condition: ConditionTest

  init(_ condition: ConditionTest) { self.condition = condition }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    guard let element else { preconditionFailure("a selector of documents has no condition without a field") }
    return condition.holdsOrEnds(for: element, &budget)
  }

  override func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool {
    condition.holds(forOne: element, &budget)
  }
}

/// Holds if some element fails a test, or there is no element and the test is false of nothing.
final class SomeElementNotTest: SelectorTest, @unchecked Sendable {
  private let path: Int?
  private let test: SelectorTest

  /// - Parameter path: The path whose elements are tested; nil for the element that the selector is about.
  init(_ path: Int?, _ test: SelectorTest) {
    self.path = path
    self.test = test
  }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool {
    var isEmpty = true
    var isFailed = false
    if let path {
      isFailed = values.hasValue(of: path) { value in hasFailure(in: value, &isEmpty, &budget) }
    } else if let element {
      isFailed = hasFailure(in: element, &isEmpty, &budget)
    }
    return isFailed || isEmpty && !test.holds(forOne: nil, &budget)
  }

  /// Returns whether a value, or some element of it if it is an array, fails the test.
  /// - Parameter isEmpty: Becomes false if there is something to test.
  private func hasFailure(in value: SourceValue, _ isEmpty: inout Bool, _ budget: inout WorkBudget) -> Bool {
    guard value.isArray else {
      isEmpty = false
      return !budget.spend() || !test.holds(forOne: value, &budget)
    }
    return value.hasElement(&budget) { element, budget in
      isEmpty = false
      return !test.holds(forOne: element, &budget)
    }
  }

  override func holds(forOne element: SourceValue?, _ budget: inout WorkBudget) -> Bool {
    !test.holds(forOne: element, &budget)
  }
}
