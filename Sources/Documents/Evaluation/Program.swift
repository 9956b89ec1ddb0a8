/// A selector with numbered paths and prepared operands.
final class Program: Sendable {
  private indirect enum Test: Sendable {
    case all([Test])
    case any([Test])
    case not(Test)
    /// A condition on the values of a path.
    case field(path: Int, ConditionTest)
    /// A condition on the value that the program runs on, an element of an array.
    case element(ConditionTest)
    case someElementNot(path: Int?, Test)
    case expression(ExpressionTest)
  }

  private let root: Test

  /// The paths that the selector looks at.
  let paths: PathTrie

  /// - Parameter paths: Paths that the program finds values of for its caller. The selector's paths follow them.
  /// - Throws: `SelectorError` if the selector needs a text index.
  init(_ tree: SelectorTree, after paths: PathTrie = PathTrie()) throws(SelectorError) {
    var paths = paths
    root = try Self.test(tree, &paths)
    self.paths = paths
  }

  private static func test(_ tree: SelectorTree, _ paths: inout PathTrie) throws(SelectorError) -> Test {
    switch tree {
    case .and(let parts): return .all(try tests(parts, &paths))
    case .or(let parts): return .any(try tests(parts, &paths))
    case .not(let part): return .not(try test(part, &paths))
    case .field(let path?, let condition): return .field(path: paths.add(path), try ConditionTest(condition))
    case .field(nil, let condition): return .element(try ConditionTest(condition))
    case .someElementNot(let path, let inner):
      return .someElementNot(path: path.map { paths.add($0) }, try test(inner, &paths))
    case .expression(let comparison, let left, let right):
      return .expression(try ExpressionTest(comparison, left, right, &paths))
    case .text: throw SelectorError(.noTextIndex, at: "$.$text", "$text needs a text index, and there is none")
    }
  }

  private static func tests(_ parts: [SelectorTree], _ paths: inout PathTrie) throws(SelectorError) -> [Test] {
    var tests: [Test] = []
    for part in parts { tests.append(try test(part, &paths)) }
    return tests
  }

  /// Returns whether the selector matches a document of which the values of `paths` have been found.
  func holds(_ values: borrowing FieldValues) -> Bool { holds(root, nil, values) }

  /// Returns whether the selector matches an element of an array.
  func holds(for element: SourceValue) -> Bool {
    guard let result = FieldValues.with(of: DocumentSource(element), paths, { holds(root, element, $0) }) else {
      preconditionFailure("the element was scanned before")
    }
    return result
  }

  private func holds(_ test: Test, _ element: SourceValue?, _ values: borrowing FieldValues) -> Bool {
    switch test {
    case .all(let tests):
      for test in tests where !holds(test, element, values) { return false }
      return true
    case .any(let tests):
      for test in tests where holds(test, element, values) { return true }
      return false
    case .not(let test): return !holds(test, element, values)
    case .field(let path, let condition): return condition.holds(for: path, of: values)
    case .element(let condition):
      guard let element else { preconditionFailure("a selector of documents has no condition without a field") }
      return condition.holds(for: element)
    case .someElementNot(let path, let inner): return someElementFails(inner, path, element, values)
    case .expression(let expression): return expression.holds(values)
    }
  }

  /// Returns whether some element fails a test, or there is no element and the test is false of nothing.
  private func someElementFails(
    _ test: Test, _ path: Int?, _ element: SourceValue?, _ values: borrowing FieldValues
  ) -> Bool {
    var isEmpty = true
    func fails(_ value: SourceValue) -> Bool {
      guard value.isArray else {
        isEmpty = false
        return !holds(test, forOne: value)
      }
      return value.hasElement { element in
        isEmpty = false
        return !holds(test, forOne: element)
      }
    }
    let isFailed = path.map { values.hasValue(of: $0, where: fails) } ?? element.map(fails) ?? false
    return isFailed || isEmpty && !holds(test, forOne: nil)
  }

  /// Returns whether a test that is about one element at a time holds for an element, or for nothing if it is nil.
  private func holds(_ test: Test, forOne element: SourceValue?) -> Bool {
    switch test {
    case .all(let tests): return tests.allSatisfy { holds($0, forOne: element) }
    case .any(let tests): return tests.contains { holds($0, forOne: element) }
    case .not(let test), .someElementNot(_, let test): return !holds(test, forOne: element)
    case .field(_, let condition), .element(let condition):
      guard let element, !element.isArray else { return false }
      return condition.holds(for: element)
    case .expression: preconditionFailure("an expression is not about one element")
    }
  }
}
