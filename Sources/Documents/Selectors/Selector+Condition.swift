extension Selector {
  /// What a value of a field must be.
  ///
  /// Where the field holds an array, most conditions are about its elements: at least one of them has to satisfy the
  /// condition. `type`, `size`, `all`, `elemMatch`, `allMatch` and `exists` are about the array. Values of different
  /// types are ordered: null, false, true, numbers, strings, arrays, objects.
  ///
  /// Conditions that are combined with `&&` needn't hold for the same element: `.greater(1) && .less(3)` holds for
  /// `[0, 4]`. Use `elemMatch` for conditions on one element.
  public struct Condition: Sendable {
    /// Returns the tree of the condition on a field, or on an element itself if there is no path.
    private let makeTree: @Sendable (FieldPath?) -> SelectorTree

    private init(_ makeTree: @escaping @Sendable (FieldPath?) -> SelectorTree) { self.makeTree = makeTree }

    private init(_ condition: SelectorTree.Condition) { makeTree = { path in .field(path, condition) } }

    package func tree(about path: FieldPath?) -> SelectorTree { makeTree(path) }
  }

  /// What the conditions on strings ignore.
  public struct StringOptions: OptionSet, Sendable {
    public let rawValue: UInt8

    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Compares strings in lowercase: each scalar's full lowercase mapping.
    public static let ignoringCase = StringOptions(rawValue: 1)
    /// Compares strings without diacritics: their canonical decompositions without nonspacing marks.
    public static let ignoringDiacritics = StringOptions(rawValue: 2)
  }
}

/// A kind of JSON value. The raw values are the names in `$type`.
public enum JSONType: String, CaseIterable, Sendable {
  case null, boolean, number, string, array, object
}

// MARK: Any values

extension Selector.Condition {
  /// Requires a value that equals the operand (`$eq`). An array equals only as a whole; the order of an object's
  /// members doesn't matter.
  public static func equal(_ value: JSONValue, _ options: Selector.StringOptions = []) -> Self {
    Self(.equal(value, options))
  }

  /// Requires some element that is different from the operand (`$ne`). A missing field is different, too.
  ///
  /// The complement of `equal` is `!.field(path, .equal(value))`, which doesn't match if any element is equal.
  public static func notEqual(_ value: JSONValue, _ options: Selector.StringOptions = []) -> Self {
    Self { path in .notEqual(path, value, options) }
  }

  /// Requires a value before the operand in the order of values (`$lt`).
  public static func less(_ value: JSONValue) -> Self { Self(.less(value)) }

  /// Requires a value before or equal to the operand in the order of values (`$lte`).
  public static func lessOrEqual(_ value: JSONValue) -> Self { Self(.lessOrEqual(value)) }

  /// Requires a value after the operand in the order of values (`$gt`).
  public static func greater(_ value: JSONValue) -> Self { Self(.greater(value)) }

  /// Requires a value after or equal to the operand in the order of values (`$gte`).
  public static func greaterOrEqual(_ value: JSONValue) -> Self { Self(.greaterOrEqual(value)) }

  /// Requires a value that equals one of the operands (`$in`). Without operands, no value does.
  public static func `in`(_ values: [JSONValue], _ options: Selector.StringOptions = []) -> Self {
    Self(.in(values, options))
  }

  /// Requires that no value equals one of the operands (`$nin`): the complement of `in`. A missing field satisfies it.
  public static func notIn(_ values: [JSONValue], _ options: Selector.StringOptions = []) -> Self {
    Self { path in .complement(of: .field(path, .in(values, options))) }
  }

  /// Requires that the field exists, or that it doesn't (`$exists`). A field that is null exists.
  public static func exists(_ exists: Bool = true) -> Self { Self(.exists(exists)) }

  /// Requires a value of a type (`$type`). An array is of type `array`, whatever its elements are.
  public static func type(_ type: JSONType) -> Self { Self(.type(type)) }
}

// MARK: Numbers and strings

extension Selector.Condition {
  /// Requires a number that leaves a remainder (`$mod`). Fractions are cut off, and the remainder has the sign of the
  /// number.
  /// - Precondition: The divisor is not 0.
  public static func remainder(dividingBy divisor: Int64, is remainder: Int64) -> Self {
    precondition(divisor != 0, "a number can't be divided by 0")
    return Self(.remainder(divisor: divisor, remainder: remainder))
  }

  /// Requires a string in which a regular expression matches somewhere (`$regex`). The options change the string, not
  /// the pattern; to ignore case in both, begin the pattern with `(?i)`.
  /// - Throws: `RegularExpressionError` if the pattern is malformed, is not supported, or exceeds a limit.
  public static func regex(
    _ pattern: String, _ options: Selector.StringOptions = []
  ) throws(RegularExpressionError) -> Self {
    Self(.regex(try RegularExpression(pattern), options))
  }

  /// Requires a string with a prefix (`$beginsWith`).
  public static func beginsWith(_ prefix: String, _ options: Selector.StringOptions = []) -> Self {
    Self(.beginsWith(prefix, options))
  }

  /// Requires a string with a suffix (`$endsWith`).
  public static func endsWith(_ suffix: String, _ options: Selector.StringOptions = []) -> Self {
    Self(.endsWith(suffix, options))
  }

  /// Requires a string that contains another one (`$contains`).
  public static func contains(_ part: String, _ options: Selector.StringOptions = []) -> Self {
    Self(.contains(part, options))
  }

  /// Requires a string that matches a pattern as a whole, such as `"m*k?"` (`$like`).
  public static func like(_ pattern: LikePattern, _ options: Selector.StringOptions = []) -> Self {
    Self(.like(pattern, options))
  }
}

// MARK: Arrays and objects

extension Selector.Condition {
  /// Requires an array with a number of elements (`$size`).
  /// - Precondition: `count` is not negative.
  public static func size(_ count: Int) -> Self {
    precondition(count >= 0, "the size of an array can't be negative")
    return Self(.size(count))
  }

  /// Requires an array that contains every operand (`$all`). Without operands, no array does. A single operand that is
  /// an array can also equal the whole array.
  public static func all(_ values: [JSONValue]) -> Self { Self(.all(values)) }

  /// Requires an array with an element that matches a selector (`$elemMatch`). Paths start at the element.
  public static func elemMatch(_ selector: Selector) -> Self { Self(.elemMatch(selector.tree.forElements)) }

  /// Requires an array with an element that satisfies a condition itself (`$elemMatch`).
  public static func elemMatch(_ condition: Self) -> Self { Self(.elemMatch(condition.makeTree(nil))) }

  /// Requires an array of at least one element in which every element matches a selector (`$allMatch`). Paths start at
  /// the element.
  public static func allMatch(_ selector: Selector) -> Self { Self(.allMatch(selector.tree.forElements)) }

  /// Requires an array of at least one element in which every element satisfies a condition itself (`$allMatch`).
  public static func allMatch(_ condition: Self) -> Self { Self(.allMatch(condition.makeTree(nil))) }

  /// Requires an object in which the name of a member satisfies a condition (`$keyMapMatch`).
  public static func keyMapMatch(_ condition: Self) -> Self { Self(.keyMapMatch(condition.makeTree(nil))) }
}

// MARK: Combinations

extension Selector.Condition {
  /// Requires some element that doesn't satisfy a condition (`$not` under a field). A missing field satisfies it, too,
  /// unless the condition itself accepts a missing field.
  ///
  /// If the condition is about arrays (`type`, `size`, `all`, `elemMatch`, `allMatch`, `exists`, or an operand that is
  /// null or an array), the result is its complement, as it is inside of `elemMatch`. The complement of any condition
  /// is `!.field(path, condition)`, which doesn't match if any element satisfies the condition.
  public static func not(_ condition: Self) -> Self {
    Self { path in .negation(of: condition.makeTree(path), at: path) }
  }

  /// Requires both conditions, not necessarily of the same element.
  public static func && (left: Self, right: Self) -> Self {
    Self { path in .all(of: [left.makeTree(path), right.makeTree(path)]) }
  }

  /// Requires at least one of the conditions.
  public static func || (left: Self, right: Self) -> Self {
    Self { path in .any(of: [left.makeTree(path), right.makeTree(path)]) }
  }
}
