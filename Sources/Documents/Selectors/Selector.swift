/// A query over documents: which of them match.
///
/// A selector is read from JSON (`{"age": {"$gt": 40}, "pet.species": "cat"}`) or built in Swift:
///
///     let selector: Selector = .field("age", .greater(40)) && .field("pet.species", .equal("cat"))
///
/// Both become the same tree, so that `Selector(selector.json)` is equal to `selector`. Use `CompiledSelector` to run a
/// selector over documents.
///
/// **Negation.** There are two kinds, which differ where a field holds an array. The complement (`!` and `nor` here,
/// `$nor`, `$nin` and a `$not` outside of fields in JSON) matches the documents that a selector doesn't match. The
/// negation of a condition (`.not` and `.notEqual` under a field, `$not` and `$ne` in JSON) matches where *some
/// element* of the field doesn't satisfy the condition. For `{"pet": ["cat", "dog"]}`, `!.field("pet", .equal("cat"))`
/// doesn't match, but `.field("pet", .notEqual("cat"))` does, because of the dog.
///
/// **Limits.** A selector has up to 1 MiB of text, 10,000 conditions and operators, 32 levels of nesting (as has each
/// value in it), 65,536 operands of `$in`, `$nin` or `$all`, 256 regular expressions (65,536 instructions), and paths of up to 128 names and
/// 4,096 bytes. JSON beyond a limit is not accepted. A selector built in Swift is checked where it is first used.
public struct Selector: Sendable {
  /// What the selector says.
  package let tree: SelectorTree
  /// Whether the parser made the tree, so that it is within all limits.
  private let isChecked: Bool

  package init(_ tree: SelectorTree) {
    self.tree = tree
    isChecked = false
  }

  /// - Parameter tree: A tree that the parser has made.
  init(parsed tree: SelectorTree) {
    self.tree = tree
    isChecked = true
  }

  /// The limit of levels of nesting.
  package static let maxDepth = SelectorParser.maxDepth
  /// The limit of conditions and operators.
  package static let maxNodeCount = SelectorParser.maxNodeCount

  /// Returns the tree of a selector that is to be used.
  /// - Throws: `SelectorError` if the selector was built in Swift and exceeds a limit, has `text` more than once, or
  ///   has `text` or `compare` in a place where they can't be, such as inside of `elemMatch`. The error names the place
  ///   in the selector's JSON.
  /// - Complexity: O(1) for a selector that was read from JSON.
  package func checkedTree() throws(SelectorError) -> SelectorTree {
    if !isChecked { _ = try Selector(json) }
    return tree
  }
}

// MARK: Building

extension Selector {
  /// Matches every document. As JSON, it is `{}`.
  public static let all = Selector(.everything)

  /// Returns a selector that matches where a value of a field satisfies a condition.
  ///
  ///     .field("age", .greater(40))
  ///     .field("pets", .elemMatch(.field("species", .equal("cat")) && .field("age", .less(3))))
  ///
  /// - Parameter path: The path of the field. A literal that has an empty name, such as `"a..b"`, stops the program.
  public static func field(_ path: FieldPath, _ condition: Condition) -> Selector {
    Selector(condition.tree(about: path))
  }

  /// Returns a selector that matches where two computed operands compare as asked for (`$expr`).
  ///
  ///     .compare(.count("pets"), .greater, 2)
  ///     .compare(.field("spent"), .greater, .field("budget"))
  ///
  /// An operand has any number of values, one for each element of an array. The selector matches if some pair of values
  /// compares as asked for; only values of the same type compare, and only numbers and strings have an order.
  /// `.notEqual` is the complement of `.equal`.
  public static func compare(_ left: Expression, _ comparison: Comparison, _ right: Expression) -> Selector {
    func selector(_ comparison: SelectorTree.Expression.Comparison) -> Selector {
      Selector(.expression(comparison, left.tree, right.tree))
    }
    return switch comparison {
    case .equal: selector(.equal)
    case .notEqual: !selector(.equal)
    case .less: selector(.less)
    case .lessOrEqual: selector(.lessOrEqual)
    case .greater: selector(.greater)
    case .greaterOrEqual: selector(.greaterOrEqual)
    }
  }

  /// Returns a selector that matches the documents in which a text index finds words. A selector can have one.
  ///
  /// - Parameter words: Words that must all occur, `"phrases"` in double quotes, `prefix*`, and the operators `OR`,
  ///   `NOT` and `field:word`.
  public static func text(_ words: String) -> Selector { Selector(.text(words)) }

  /// Returns a selector that matches what every part matches. Without parts, it matches every document.
  public static func and(_ parts: [Selector]) -> Selector { Selector(.all(of: parts.map(\.tree))) }

  /// Returns a selector that matches what at least one part matches. Without parts, it matches no document.
  public static func or(_ parts: [Selector]) -> Selector { Selector(.any(of: parts.map(\.tree))) }

  /// Returns a selector that matches what no part matches: the complement of `or`.
  public static func nor(_ parts: [Selector]) -> Selector { !or(parts) }

  /// Returns a selector that matches what both selectors match.
  public static func && (left: Selector, right: Selector) -> Selector { and([left, right]) }

  /// Returns a selector that matches what at least one of the selectors matches.
  public static func || (left: Selector, right: Selector) -> Selector { or([left, right]) }

  /// Returns the complement: a selector that matches what the given one doesn't match.
  ///
  /// To match documents in which some element of a field doesn't satisfy a condition, use `Condition.not(_:)`.
  public static prefix func ! (selector: Selector) -> Selector { Selector(.complement(of: selector.tree)) }

  /// How two operands compare.
  public enum Comparison: Sendable {
    case equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
  }
}

extension Selector: Equatable {
  /// Selectors are equal if their JSON is: `a && b` can differ from `b && a`, which matches the same documents. Strings
  /// are equal if they have the same Unicode scalars.
  public static func == (left: Selector, right: Selector) -> Bool { left.json == right.json }
}
