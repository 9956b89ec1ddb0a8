/// A selector with numbered paths and prepared operands.
///
/// Safe because it keeps what it refers to without counting references.
@safe
final class Program: Sendable {
  private let root: SelectorTest
  /// The same, for calls that count no references.
  private let uncountedRoot: Unmanaged<SelectorTest>

  private let pathStorage: PathTable.Storage
  /// The paths that the selector looks at.
  let paths: PathTable

  private init() {
    root = PairTest.all([])
    unsafe uncountedRoot = .passUnretained(root)
    pathStorage = PathTable.storage(of: PathTrie())
    paths = pathStorage.table
  }

  /// Matches every document.
  static let everything = Program()

  /// - Parameter paths: Paths that the program finds values of for its caller. The selector's paths follow them.
  /// - Throws: `SelectorError` if the selector needs a text index.
  init(_ tree: SelectorTree, after paths: PathTrie = PathTrie()) throws(SelectorError) {
    var paths = paths
    root = try Self.test(tree, &paths)
    unsafe uncountedRoot = .passUnretained(root)
    pathStorage = PathTable.storage(of: paths)
    self.paths = pathStorage.table
  }

  /// Whether it matters which `_id` a document has.
  var needsID: Bool { paths.idEdge >= 0 }
  /// Whether it matters which `_rev` a document has.
  var needsRevision: Bool { paths.revisionEdge >= 0 }

  /// Returns a test of a tree, and adds the paths that it looks at.
  /// - Throws: `SelectorError` if the selector needs a text index.
  static func test(_ tree: SelectorTree, _ paths: inout PathTrie) throws(SelectorError) -> SelectorTest {
    switch tree {
    case .and(let parts): return PairTest.all(try tests(parts.joiningInequalities, &paths))
    case .or(let parts): return PairTest.any(try tests(parts.joiningEqualities, &paths))
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
  /// - Parameter budget: Once it is exhausted, the result means nothing.
  func holds(for source: DocumentSource, _ budget: inout WorkBudget) -> Bool {
    guard source.isObject else { return false }
    let root = unsafe uncountedRoot
    return FieldValues.with(of: source, paths, &budget) { values, budget in
      unsafe root._withUnsafeGuaranteedRef { $0.holds(nil, values, &budget) }
    } ?? false
  }

  /// Returns whether the selector matches a document, given the values that `paths` lead to in it.
  @inline(__always)
  func holds(_ values: borrowing FieldValues, _ budget: inout WorkBudget) -> Bool { root.holds(nil, values, &budget) }

  /// Returns whether the selector matches an element of an array.
  func holds(for element: SourceValue, _ budget: inout WorkBudget) -> Bool {
    let source = DocumentSource(element)
    guard let result = FieldValues.with(of: source, paths, &budget, { root.holds(element, $0, &$1) }) else {
      precondition(budget.isExhausted, "the element has been passed before")
      return false
    }
    return result
  }
}

// MARK: Joining

extension [SelectorTree] {
  /// A field and the options of its equalities, whose operands can be in one set.
  private struct Place: Hashable {
    let path: FieldPath?
    let options: Int
  }

  /// The alternatives, with one condition in place of all equalities of a field. An element is then looked up in the set
  /// of their operands, and not compared with one after the other.
  fileprivate var joiningEqualities: [SelectorTree] {
    var (places, operands, others) = ([Place: Int](), [[JSONValue]](), [SelectorTree]())
    var conditions: [(FieldPath?, Selector.StringOptions)] = []
    for part in self {
      guard case .field(let path, let condition) = part, let (values, options) = condition.equalOperands else {
        others.append(part)
        continue
      }
      let place = Place(path: path, options: Int(options.rawValue))
      if let position = places[place] {
        operands[position] += values
      } else {
        places[place] = operands.count
        operands.append(values)
        conditions.append((path, options))
      }
    }
    let joined = zip(conditions, operands).map { place, values in
      SelectorTree.field(place.0, values.count == 1 ? .equal(values[0], place.1) : .in(values, place.1))
    }
    return joined + others
  }

  /// The conditions, with one in place of all that a field equals none of some values.
  fileprivate var joiningInequalities: [SelectorTree] {
    var (equalities, others) = ([SelectorTree](), [SelectorTree]())
    for part in self {
      if case .not(let inner) = part, case .field(_, let condition) = inner, condition.equalOperands != nil {
        equalities.append(inner)
      } else {
        others.append(part)
      }
    }
    return equalities.joiningEqualities.map(SelectorTree.not) + others
  }
}

extension SelectorTree.Condition {
  /// The operands of a condition that a value equal to any of them satisfies, and how strings are compared with them; nil
  /// for another condition.
  fileprivate var equalOperands: (values: [JSONValue], options: Selector.StringOptions)? {
    switch self {
    case .equal(let value, let options): ([value], options)
    case .in(let values, let options): (values, options)
    default: nil
    }
  }
}
