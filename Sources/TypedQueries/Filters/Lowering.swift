import Documents

/// The trees of conditions on a field, which typed filters and raw predicates share.
///
/// The path is nil where a condition is about an element of an array itself.
enum Lowering {
  enum Order {
    case less, lessOrEqual, greater, greaterOrEqual

    /// The order of the operands in reverse.
    var flipped: Order {
      switch self {
      case .less: .greater
      case .lessOrEqual: .greaterOrEqual
      case .greater: .less
      case .greaterOrEqual: .lessOrEqual
      }
    }

    var comparison: SelectorTree.Expression.Comparison {
      switch self {
      case .less: .less
      case .lessOrEqual: .lessOrEqual
      case .greater: .greater
      case .greaterOrEqual: .greaterOrEqual
      }
    }

    func condition(_ value: JSONValue) -> SelectorTree.Condition {
      switch self {
      case .less: .less(value)
      case .lessOrEqual: .lessOrEqual(value)
      case .greater: .greater(value)
      case .greaterOrEqual: .greaterOrEqual(value)
      }
    }
  }

  // MARK: Values

  /// The field is null or missing.
  static func isNil(_ path: FieldPath?) -> SelectorTree {
    let isNull = SelectorTree.field(path, .type(.null))
    return path == nil ? isNull : .any(of: [.field(path, .exists(false)), isNull])
  }

  static func equal(
    _ path: FieldPath?, _ value: JSONValue, _ options: Selector.StringOptions = []
  ) -> SelectorTree {
    switch value {
    case .null: isNil(path)
    case .array: isWhole(path, .equal(value, options))
    default: .field(path, .equal(value, options))
    }
  }

  /// The field has one of the values.
  static func isIn(
    _ path: FieldPath?, _ values: [JSONValue], _ options: Selector.StringOptions = []
  ) -> SelectorTree {
    let others = values.filter { $0.type != .null && $0.type != .array }
    // Arrays of the same depth are no elements of each other.
    let arrays = Dictionary(grouping: values.filter { $0.type == .array }, by: \.depth).sorted { $0.key < $1.key }
    var parts = arrays.map { isWhole(path, .in($0.value, options)) }
    if values.contains(where: { $0.type == .null }) { parts.append(isNil(path)) }
    if !others.isEmpty || parts.isEmpty { parts.insert(.field(path, .in(others, options)), at: 0) }
    return .any(of: parts)
  }

  /// The field satisfies a condition on arrays as a whole, and not by an element.
  private static func isWhole(_ path: FieldPath?, _ condition: SelectorTree.Condition) -> SelectorTree {
    .all(of: [.field(path, condition), .complement(of: any(path, .field(nil, condition)))])
  }

  /// The field is of the type of the value, and before or behind it.
  /// - Throws: `FilterError` for a value that isn't a number or a string: other values have no order.
  static func ordered(_ path: FieldPath?, _ order: Order, _ value: JSONValue) throws -> SelectorTree {
    .all(of: [.field(path, order.condition(value)), .field(path, .type(try orderedType(of: value)))])
  }

  /// The field is of the type of the bounds, and between them.
  /// - Throws: As `ordered`.
  static func isBetween(
    _ path: FieldPath?, _ bounds: [(order: Order, value: JSONValue)]
  ) throws -> SelectorTree {
    let types = try bounds.map { try orderedType(of: $0.value) }
    let conditions = bounds.map { SelectorTree.field(path, $0.order.condition($0.value)) }
    return .all(of: conditions + Set(types).sorted { $0.rawValue < $1.rawValue }.map { .field(path, .type($0)) })
  }

  private static func orderedType(of value: JSONValue) throws -> JSONType {
    switch value {
    case .integer, .double: return .number
    case .string: return .string
    case .null, .bool, .array, .object:
      throw FilterError(.badValue, "\(value) can't be ordered: only numbers and strings can be less or greater")
    }
  }

  // MARK: Strings

  /// A whole string matches a regular expression.
  /// - Throws: `FilterError` if the pattern is no regular expression.
  static func matches(
    _ path: FieldPath?, _ pattern: String, ignoresCase: Bool, _ options: Selector.StringOptions = []
  ) throws -> SelectorTree {
    // Flags for the whole pattern stay at its start.
    let flags = pattern.prefixMatch(of: /\(\?[a-zA-Z]+\)/).map { String($0.output) } ?? ""
    // A comment of an extended pattern ends with its line.
    let rest = pattern.dropFirst(flags.count) + (flags.contains("x") ? "\n" : "")
    do throws(RegularExpressionError) {
      // By itself first, so that an unbalanced group is an error.
      _ = try RegularExpression(pattern)
      let whole = try RegularExpression("\(flags)\\A(?\(ignoresCase ? "i" : ""):\(rest))\\Z")
      return .field(path, .regex(whole, options))
    } catch {
      throw FilterError(.badValue, "\(pattern.debugDescription) is not a valid regular expression: \(error)")
    }
  }

  /// A whole string matches a pattern of `*` and `?`.
  /// - Throws: `FilterError` if the pattern ends with a single backslash, or is too long.
  static func like(
    _ path: FieldPath?, _ pattern: String, _ options: Selector.StringOptions
  ) throws -> SelectorTree {
    guard let like = LikePattern(pattern) else {
      throw FilterError(
        .badValue, "\(pattern.debugDescription) is not a valid pattern: it ends with a single backslash, or is too long"
      )
    }
    return .field(path, .like(like, options))
  }

  // MARK: Elements

  /// Some element of the field's array matches.
  static func any(_ path: FieldPath?, _ element: SelectorTree) -> SelectorTree {
    .field(path, .elemMatch(element.forElements))
  }

  /// Every element of the field's array matches, as they do if there are none.
  static func all(_ path: FieldPath?, _ element: SelectorTree) -> SelectorTree {
    .complement(of: any(path, .complement(of: element)))
  }

  // MARK: Fields

  /// Both fields have a value, and these compare as asked for.
  static func ordered(_ left: FieldPath, _ order: Order, _ right: FieldPath) -> SelectorTree {
    .expression(order.comparison, .field(left), .field(right))
  }

  /// Both fields have equal values, or none.
  static func equal(_ left: FieldPath, _ right: FieldPath) -> SelectorTree {
    .any(of: [
      .expression(.equal, .field(left), .field(right)), .all(of: [isNil(left), isNil(right)]),
    ])
  }
}

extension JSONValue {
  /// The number of arrays and objects that are in each other.
  fileprivate var depth: Int {
    switch self {
    case .array(let elements): 1 + (elements.map(\.depth).max() ?? 0)
    case .object(let members): 1 + (members.map(\.value.depth).max() ?? 0)
    default: 0
    }
  }
}
