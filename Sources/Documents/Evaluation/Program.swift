/// A selector with numbered paths and prepared operands.
final class Program: Sendable {
  private let root: SelectorTest

  /// The paths that the selector looks at.
  let paths: PathTable

  private init() {
    root = PairTest.all([])
    paths = PathTable(PathTrie())
  }

  /// Matches every document.
  static let everything = Program()

  /// - Parameter paths: Paths that the program finds values of for its caller. The selector's paths follow them.
  /// - Throws: `SelectorError` if the selector needs a text index.
  init(_ tree: SelectorTree, after paths: PathTrie = PathTrie()) throws(SelectorError) {
    var paths = paths
    root = try Self.test(tree, &paths)
    self.paths = PathTable(paths)
  }

  /// Whether it matters which `_id` a document has.
  var needsID: Bool { paths.idEdge >= 0 }
  /// Whether it matters which `_rev` a document has.
  var needsRevision: Bool { paths.revisionEdge >= 0 }

  /// Returns a test of a tree, and adds the paths that it looks at.
  /// - Throws: `SelectorError` if the selector needs a text index.
  static func test(_ tree: SelectorTree, _ paths: inout PathTrie) throws(SelectorError) -> SelectorTest {
    switch tree {
    case .and(let parts): return PairTest.all(try tests(parts, &paths))
    case .or(let parts): return PairTest.any(try tests(parts, &paths))
    case .not(let part): return NotTest(try test(part, &paths))
    case .field(let path?, .exists(let exists)): return ExistenceTest(paths.add(path), exists)
    case .field(let path?, let condition): return FieldTest(paths.add(path), try ConditionTest.make(condition))
    case .field(nil, let condition): return ElementTest(try ConditionTest.make(condition))
    case .someElementNot(let path, let inner):
      return SomeElementNotTest(path.map { paths.add($0) }, try test(inner, &paths))
    case .expression(let comparison, let left, let right): return try ExpressionTest(comparison, left, right, &paths)
    case .text: throw SelectorError(.noTextIndex, at: "$.$text", "$text needs a text index, and there is none")
    }
  }

  private static func tests(_ parts: [SelectorTree], _ paths: inout PathTrie) throws(SelectorError) -> [SelectorTest] {
    var tests: [SelectorTest] = []
    for part in parts { tests.append(try test(part, &paths)) }
    return tests
  }

  /// Returns whether the selector matches a document. Text that isn't a JSON object doesn't match.
  func holds(for source: DocumentSource) -> Bool {
    guard source.isObject else { return false }
    return FieldValues.with(of: source, paths) { root.holds(nil, $0) } ?? false
  }

  /// Returns whether the selector matches a document, given the values that `paths` lead to in it.
  @inline(__always)
  func holds(_ values: borrowing FieldValues) -> Bool { root.holds(nil, values) }

  /// Returns whether the selector matches an element of an array.
  func holds(for element: SourceValue) -> Bool {
    guard let result = FieldValues.with(of: DocumentSource(element), paths, { root.holds(element, $0) }) else {
      preconditionFailure("the element has been passed before")
    }
    return result
  }
}
