extension Selector {
  /// An operand of `Selector.compare(_:_:_:)`: any number of values, computed from a document.
  ///
  /// Numbers, strings and Boolean values can be written as literals, and operands are combined with `+`, `-`, `*` and
  /// `/`:
  ///
  ///     .compare(.field("price") * .field("quantity"), .greater, 100)
  ///
  /// Integers are computed exactly and rounded to the nearest double where they don't fit into 64 bits. A division
  /// always gives a double, and a division by zero no value. Values that aren't numbers are skipped.
  public struct Expression: Sendable {
    package let tree: SelectorTree.Expression

    private init(_ tree: SelectorTree.Expression) { self.tree = tree }
  }
}

extension Selector.Expression {
  /// Returns an operand with one value.
  public static func literal(_ value: JSONValue) -> Self { Self(.literal(value)) }

  /// Returns an operand with the values of a field, and the elements in place of an array.
  public static func field(_ path: FieldPath) -> Self { Self(.field(path)) }

  /// Returns the number of values of a field that aren't null, counting the elements of an array.
  public static func count(_ path: FieldPath) -> Self { Self(.aggregate(.count, path)) }

  /// Returns the number of values of a field that match a selector, counting the elements of an array. Paths start at
  /// the element; values that are null don't count.
  public static func count(_ path: FieldPath, where selector: Selector) -> Self {
    selector.tree.isEverything ? count(path) : Self(.countWhere(path, selector.tree))
  }

  /// Returns the sum of the numbers in a field, which is 0 if there are none.
  public static func sum(_ path: FieldPath) -> Self { Self(.aggregate(.sum, path)) }

  /// Returns the average of the numbers in a field. It has no value if there are none.
  public static func average(_ path: FieldPath) -> Self { Self(.aggregate(.average, path)) }

  /// Returns the least number in a field. It has no value if there are none.
  public static func min(_ path: FieldPath) -> Self { Self(.aggregate(.min, path)) }

  /// Returns the greatest number in a field. It has no value if there are none.
  public static func max(_ path: FieldPath) -> Self { Self(.aggregate(.max, path)) }

  /// Returns the sums of the operands' numbers (`$add`): one for each pair.
  public static func + (left: Self, right: Self) -> Self { Self(.operation(.add, left.tree, right.tree)) }

  /// Returns the differences of the operands' numbers (`$subtract`): one for each pair.
  public static func - (left: Self, right: Self) -> Self { Self(.operation(.subtract, left.tree, right.tree)) }

  /// Returns the products of the operands' numbers (`$multiply`): one for each pair.
  public static func * (left: Self, right: Self) -> Self { Self(.operation(.multiply, left.tree, right.tree)) }

  /// Returns the quotients of the operands' numbers (`$divide`), as doubles: one for each pair whose divisor is not 0.
  public static func / (left: Self, right: Self) -> Self { Self(.operation(.divide, left.tree, right.tree)) }
}

extension Selector.Expression: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
  ExpressibleByBooleanLiteral
{
  public init(integerLiteral value: Int64) { self = .literal(.integer(value)) }
  public init(floatLiteral value: Double) { self = .literal(.double(value)) }
  public init(stringLiteral value: String) { self = .literal(.string(value)) }
  public init(booleanLiteral value: Bool) { self = .literal(.bool(value)) }
}
