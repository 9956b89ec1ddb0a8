/// Parts of a selector that all have to hold, and what they say about the keys of fields.
struct Conjunction: Sendable {
  /// What a part says about the keys of one field. If the part holds, a key is in the ranges.
  struct Constraint: Sendable {
    /// The number of the field's path.
    let field: Int
    let ranges: ConditionRanges
    /// The part that says nothing else, as a number; nil if the part says more.
    let part: Int?
  }

  private(set) var parts: [SelectorTree] = []
  private(set) var constraints: [Constraint] = []
  /// Groups of alternatives. At least one of each group must hold.
  private(set) var disjunctions: [[SelectorTree]] = []
  /// The number of ranges in all constraints.
  private(set) var rangeCount = 0
  /// Whether no document satisfies all parts.
  private(set) var isImpossible = false

  /// What exceeds these limits is left out. The other parts still say enough to find all documents.
  private static let maxConstraintCount = 64
  private static let maxDisjunctionCount = 4
  private static let maxOperandCount = 16

  private let paths: PathNumbers
  /// The JSON of the first parts; empty if no index has a selector.
  private var texts: [[UInt8]] = []

  init(_ tree: SelectorTree, _ paths: PathNumbers) {
    self.paths = paths
    add(tree)
  }

  /// Returns the conjunction of this one and an alternative, without further alternatives of this one.
  func and(_ tree: SelectorTree) -> Conjunction {
    var both = self
    both.disjunctions = []
    both.add(tree)
    return both
  }

  // MARK: Adding parts

  private mutating func add(_ tree: SelectorTree) {
    let added: [SelectorTree] = if case .and(let parts) = tree { parts } else { [tree] }
    for part in added {
      addConstraints(of: part, number: parts.count)
      if paths.hasSelectors, parts.count < Self.maxConstraintCount { texts.append(part.text) }
      parts.append(part)
    }
  }

  private mutating func addConstraints(of part: SelectorTree, number: Int) {
    switch part {
    case .field(let path?, .elemMatch(let inner)), .field(let path?, .allMatch(let inner)):
      addElement(inner, at: path)
    case .field(let path?, .all(let values)) where !values.isEmpty:
      for value in values.prefix(Self.maxOperandCount) { add(.field(path, .equal(value, []))) }
    case .field(let path?, let condition):
      if paths[path] != nil || condition.isImpossible { add(part, number: number) }
    case .or(let alternatives):
      if let (path, ranges) = part.fieldRanges {
        add(ranges, at: path, part: number)
      } else {
        addDisjunction(alternatives)
      }
    case .not: add(part, number: number)
    case .field(nil, _), .and, .someElementNot, .expression, .text: break
    }
  }

  private mutating func add(_ part: SelectorTree, number: Int? = nil) {
    if let (path, ranges) = part.fieldRanges { add(ranges, at: path, part: number) }
  }

  private mutating func add(_ ranges: ConditionRanges, at path: FieldPath, part: Int? = nil) {
    if ranges.isImpossible { isImpossible = true }
    guard let field = paths[path], constraints.count < Self.maxConstraintCount else { return }
    constraints.append(Constraint(field: field, ranges: ranges, part: ranges.isTight ? part : nil))
    rangeCount += ranges.arrayRanges.count
  }

  private mutating func addDisjunction(_ alternatives: [SelectorTree]) {
    if disjunctions.count < Self.maxDisjunctionCount { disjunctions.append(alternatives) }
  }

  // MARK: Elements

  /// Adds what is known if some element of a field's arrays matches a tree.
  ///
  /// If the element is an array, the field has the mark of nested arrays, which is in all ranges that are added.
  private mutating func addElement(_ tree: SelectorTree, at path: FieldPath) {
    let parts: [SelectorTree] = if case .and(let parts) = tree { parts } else { [tree] }
    // All conditions on the element itself hold for one key.
    var own = [ValueBound.around(.array)]
    var isElement = false
    for part in parts {
      switch part {
      case .field(nil, let condition):
        guard let ranges = condition.keyRanges?.forElement.ranges else { break }
        own = isElement ? own.intersection(ranges) : ranges
        isElement = true
      case .field(let inner?, let condition): addMember(condition, at: inner, ofElementsAt: path)
      case .or(let alternatives): addDisjunction(alternatives.map { .field(path, .elemMatch($0)) })
      case .and, .not, .someElementNot, .expression, .text: break
      }
    }
    add(ConditionRanges(own), at: path)
  }

  /// Adds what is known if a field in an element of an array satisfies a condition.
  private mutating func addMember(
    _ condition: SelectorTree.Condition, at inner: FieldPath, ofElementsAt path: FieldPath
  ) {
    // In the path from the document, an index would lead to another element.
    guard FieldPath.index(inner.names[0]) == nil else { return }
    let whole = path + inner
    switch condition {
    case .elemMatch(let tree), .allMatch(let tree): addElement(tree, at: whole)
    // Other elements may have the field.
    case .exists(false): break
    case .all(let values) where !values.isEmpty:
      for value in values.prefix(Self.maxOperandCount) {
        addMember(.equal(value, []), at: inner, ofElementsAt: path)
      }
    default:
      guard paths[whole] != nil, let ranges = condition.keyRanges else { break }
      add(
        ConditionRanges(
          .union(ranges.ranges + [.nested]), arrayRanges: .union(ranges.arrayRanges + [.nested])), at: whole)
    }
  }
}

// MARK: Implications

extension Conjunction {
  /// Returns whether a part of an index's selector holds for all documents for which the conjunction does, as far as
  /// that is easy to see.
  func implies(_ part: IndexSelectorPart) -> Bool {
    constraints.contains { $0.field == part.path && part.sufficient.contains($0.ranges.arrayRanges) }
      || texts.contains(part.text)
  }

  /// Returns whether a part holds for all documents for which a part of an index's selector does.
  func isPart(_ number: Int, impliedBy part: IndexSelectorPart) -> Bool {
    guard texts[number] != part.text, let necessary = part.necessary else { return texts[number] == part.text }
    return constraints.contains {
      $0.part == number && $0.field == part.path && $0.ranges.sufficient.contains(necessary)
    }
  }
}

/// A part of an index's selector, which holds for all documents in the index.
struct IndexSelectorPart: Sendable {
  /// The number of the path that the part is about; nil if it isn't about one.
  let path: Int?
  /// If the part holds, a key of the field is in these ranges; nil if that isn't known.
  let necessary: [ValueRange]?
  /// If a key of the field is in these ranges, the part holds.
  let sufficient: [ValueRange]
  /// The part's JSON in UTF-8. The `==` of trees and of strings takes some different strings for equal.
  let text: [UInt8]

  init(_ tree: SelectorTree, _ paths: inout PathNumbers) {
    let field = tree.fieldRanges
    path = field.map { paths.add($0.path) }
    necessary = field?.ranges.arrayRanges
    sufficient = field?.ranges.sufficient ?? []
    text = tree.text
    paths.hasSelectors = true
  }
}

extension SelectorTree {
  fileprivate var text: [UInt8] { JSONValue.object(SelectorPrinter.object(self)).encoded() }
}

extension SelectorTree.Condition {
  /// Whether no value satisfies the condition, which has no operands.
  fileprivate var isImpossible: Bool {
    switch self {
    case .in([], _), .all([]): true
    default: false
    }
  }
}
