/// A selector whose paths are numbered and whose operands are ready to be compared.
///
/// Made once; immutable.
final class Program: Sendable {
  /// The paths that the selector looks at.
  let paths: PathTrie
  private let root: Test

  private indirect enum Test: Sendable {
    case all([Test])
    case any([Test])
    case not(Test)
    /// A condition on the values of a path; on the value itself if the path is nil.
    case condition(path: Int?, ConditionTest)
    case someElementNot(path: Int?, Test)
    case expression(ExpressionTest)
  }

  convenience init(_ tree: SelectorTree) throws(SelectorError) {
    var paths = PathTrie()
    let root = try Self.compile(tree, &paths)
    self.init(paths, root)
  }

  private init(_ paths: PathTrie, _ root: Test) {
    self.paths = paths
    self.root = root
  }

  private static func compile(_ tree: SelectorTree, _ paths: inout PathTrie) throws(SelectorError) -> Test {
    func number(_ path: FieldPath?) -> Int? { path.map { paths.add($0) } }
    switch tree {
    case .and(let parts): return .all(try compile(parts, &paths))
    case .or(let parts): return .any(try compile(parts, &paths))
    case .not(let part): return .not(try compile(part, &paths))
    case .field(let path, let condition): return .condition(path: number(path), try ConditionTest(condition))
    case .someElementNot(let path, let inner):
      return .someElementNot(path: number(path), try compile(inner, &paths))
    case .expression(let comparison, let left, let right):
      return .expression(try ExpressionTest(comparison, left, right, &paths))
    case .text: throw SelectorError(.noTextIndex, at: "$.$text", "$text needs a text index, and there is none")
    }
  }

  private static func compile(_ parts: [SelectorTree], _ paths: inout PathTrie) throws(SelectorError) -> [Test] {
    var tests: [Test] = []
    for part in parts { tests.append(try compile(part, &paths)) }
    return tests
  }

  /// Whether the selector matches a value, of which the values of `paths` have been found.
  func holds(for value: SourceValue, _ found: PathMatches, _ scanner: JSONScanner) -> Bool {
    holds(root, value, found, scanner)
  }

  /// Whether the selector matches an element of an array, which has been scanned as a part of its document.
  func holds(forElement value: SourceValue, _ scanner: JSONScanner) -> Bool {
    guard paths.count > 0 else { return holds(root, value, PathMatches(), scanner) }
    var (inner, found) = (scanner, PathMatches())
    inner.move(to: value.range.lowerBound)
    do throws(JSONScanner.Failure) {
      try found.scan(&inner, paths)
    } catch { preconditionFailure("the element was scanned before") }
    return holds(root, value, found, scanner)
  }

  private func holds(_ test: Test, _ value: SourceValue, _ found: PathMatches, _ scanner: JSONScanner) -> Bool {
    switch test {
    case .all(let tests): return tests.allSatisfy { holds($0, value, found, scanner) }
    case .any(let tests): return tests.contains { holds($0, value, found, scanner) }
    case .not(let test): return !holds(test, value, found, scanner)
    case .condition(let path, let condition):
      guard let path else { return condition.holds(for: [value], scanner) }
      return condition.holds(for: found.values(of: path, scanner), scanner)
    case .someElementNot(let path, let inner):
      let values = path.map { found.values(of: $0, scanner) } ?? [value]
      var isEmpty = true
      for value in values {
        if value.type == .array {
          for element in value.elements(scanner) {
            isEmpty = false
            if !holdsForElement(inner, element, scanner) { return true }
          }
        } else {
          isEmpty = false
          if !holdsForElement(inner, value, scanner) { return true }
        }
      }
      return isEmpty && !holdsForElement(inner, nil, scanner)
    case .expression(let expression): return expression.holds(found, scanner)
    }
  }

  /// Whether conditions that are about one element at a time hold for one; for nothing if it is nil.
  private func holdsForElement(_ test: Test, _ element: SourceValue?, _ scanner: JSONScanner) -> Bool {
    switch test {
    case .all(let tests): return tests.allSatisfy { holdsForElement($0, element, scanner) }
    case .any(let tests): return tests.contains { holdsForElement($0, element, scanner) }
    case .not(let test), .someElementNot(_, let test): return !holdsForElement(test, element, scanner)
    case .condition(_, let condition):
      guard let element, element.type != .array else { return false }
      return condition.holds(for: [element], scanner)
    case .expression: preconditionFailure("an expression is not about one element")
    }
  }
}

extension PathMatches {
  func values(of path: Int, _ scanner: JSONScanner) -> [SourceValue] {
    var values: [SourceValue] = []
    for match in matches where match.path == path { values.append(SourceValue(match.range, scanner)) }
    return values
  }
}
