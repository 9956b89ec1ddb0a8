/// A part of a selector, to be tested on a document. Classes with constants, because a call of one of their methods
/// counts no references.
class SelectorTest: @unchecked Sendable {
  /// Returns whether the test holds.
  /// - Parameters:
  ///   - element: The element of an array that the selector is about; nil for a document.
  ///   - values: The values of the selector's paths.
  func holds(_ element: SourceValue?, _ values: borrowing FieldValues) -> Bool { preconditionFailure("abstract") }

  /// Returns whether a test that is about one element at a time holds for an element, or for nothing if it is nil.
  func holds(forOne element: SourceValue?) -> Bool { preconditionFailure("abstract") }
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

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues) -> Bool {
    first.holds(element, values) == needsBoth ? second.holds(element, values) : !needsBoth
  }

  override func holds(forOne element: SourceValue?) -> Bool {
    first.holds(forOne: element) == needsBoth ? second.holds(forOne: element) : !needsBoth
  }
}

/// Always holds, or never.
private final class ConstantTest: SelectorTest, @unchecked Sendable {
  private let holds: Bool

  init(_ holds: Bool) { self.holds = holds }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues) -> Bool { holds }
  override func holds(forOne element: SourceValue?) -> Bool { holds }
}

/// Holds if another test doesn't.
final class NotTest: SelectorTest, @unchecked Sendable {
  private let test: SelectorTest

  init(_ test: SelectorTest) { self.test = test }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues) -> Bool { !test.holds(element, values) }
  override func holds(forOne element: SourceValue?) -> Bool { !test.holds(forOne: element) }
}

/// Holds if some value of a path satisfies a condition.
final class FieldTest: SelectorTest, @unchecked Sendable {
  private let path: Int
  private let condition: ConditionTest

  init(_ path: Int, _ condition: ConditionTest) {
    self.path = path
    self.condition = condition
  }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues) -> Bool {
    values.hasValue(of: path) { condition.holds(for: $0) }
  }

  override func holds(forOne element: SourceValue?) -> Bool { condition.holds(forOne: element) }
}

/// Holds if a path leads to some value, or to none.
final class ExistenceTest: SelectorTest, @unchecked Sendable {
  private let path: Int
  private let exists: Bool

  init(_ path: Int, _ exists: Bool) {
    self.path = path
    self.exists = exists
  }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues) -> Bool {
    values.isEmpty(path) != exists
  }

  override func holds(forOne element: SourceValue?) -> Bool {
    guard let element, !element.isArray else { return false }
    return exists
  }
}

/// Holds if the element that the selector is about satisfies a condition.
final class ElementTest: SelectorTest, @unchecked Sendable {
  private let condition: ConditionTest

  init(_ condition: ConditionTest) { self.condition = condition }

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues) -> Bool {
    guard let element else { preconditionFailure("a selector of documents has no condition without a field") }
    return condition.holds(for: element)
  }

  override func holds(forOne element: SourceValue?) -> Bool { condition.holds(forOne: element) }
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

  override func holds(_ element: SourceValue?, _ values: borrowing FieldValues) -> Bool {
    var isEmpty = true
    func fails(_ value: SourceValue) -> Bool {
      guard value.isArray else {
        isEmpty = false
        return !test.holds(forOne: value)
      }
      return value.hasElement { element in
        isEmpty = false
        return !test.holds(forOne: element)
      }
    }
    let isFailed = path.map { values.hasValue(of: $0, where: fails) } ?? element.map(fails) ?? false
    return isFailed || isEmpty && !test.holds(forOne: nil)
  }

  override func holds(forOne element: SourceValue?) -> Bool { !test.holds(forOne: element) }
}
