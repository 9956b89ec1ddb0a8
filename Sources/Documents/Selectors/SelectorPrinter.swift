/// Turns a tree into JSON that the parser turns into an equal tree.
///
/// The parser sorts the members of an object, so parts of an `and` become members of one object only in ascending order.
enum SelectorPrinter {
  /// Returns the JSON of a tree.
  /// - Parameter field: The field that the object is under, and that all conditions of the tree are about.
  static func object(_ tree: SelectorTree, under field: FieldPath? = nil) -> JSONObject {
    switch tree {
    case .and(let parts): return conjunction(parts, under: field)
    case .or(let parts): return one(.or, clauses(parts, under: field))
    case .not(let part): return complement(of: part, under: field)
    case .field(let path, .equal(let value, []))
    where value.type != .object && value.operatorName == nil && path?.relative(to: field) != nil:
      return member(at: path, under: field, value)
    case .field(let path, let condition): return member(at: path, under: field, .object(object(condition)))
    case .someElementNot(let path, .field(_, .equal(let value, let options))):
      return member(at: path, under: field, .object(one(.notEqual, value.asOperand, options)))
    case .someElementNot(let path, let inner):
      return member(at: path, under: field, .object(one(.not, .object(object(inner, under: path)))))
    case .expression(let comparison, let left, let right):
      return expression(comparison.rawValue, left, right)
    case .text(let words): return one(.text, .string(words))
    }
  }

  // MARK: Combinations

  private static func conjunction(_ parts: [SelectorTree], under field: FieldPath?) -> JSONObject {
    let objects = parts.map { object($0, under: field) }
    if let merged = merged(objects) { return merged }
    // Conditions on one field can be members of one object under it.
    if let path = parts.first?.subject, path != field, parts.allSatisfy({ $0.subject == path }),
      let merged = merged(parts.map { object($0, under: path) })
    {
      return member(at: path, under: field, .object(merged))
    }
    return one(.and, .array(objects.map(JSONValue.object)))
  }

  /// Returns one object with the members of all. Returns nil if that would change their order, or what `$options` applies
  /// to.
  private static func merged(_ objects: [JSONObject]) -> JSONObject? {
    var merged = JSONObject()
    var last: String?
    for (name, value) in objects.joined() {
      guard name != SelectorOperator.options.rawValue else { return nil }
      if let last, !last.utf8.lexicographicallyPrecedes(name.utf8) { return nil }
      merged[name] = value
      last = name
    }
    return merged
  }

  private static func complement(of part: SelectorTree, under field: FieldPath?) -> JSONObject {
    switch part {
    case .field(let path, .in(let values, let options)):
      return member(at: path, under: field, .object(one(.notIn, .array(values.map(\.asOperand)), options)))
    case .field(let path, .equal(let value, let options)) where !part.isAboutEachElement(of: path):
      return member(at: path, under: field, .object(one(.notEqual, value.asOperand, options)))
    case .expression(.equal, let left, let right):
      return expression(SelectorOperator.notEqual.rawValue, left, right)
    case .or(let parts): return one(.nor, clauses(parts, under: field))
    default:
      // Under a field, `$not` is about some element, and `$nor` is the complement.
      return field == nil ? one(.not, .object(object(part))) : one(.nor, clauses([part], under: field))
    }
  }

  private static func clauses(_ parts: [SelectorTree], under field: FieldPath?) -> JSONValue {
    .array(parts.map { .object(object($0, under: field)) })
  }

  /// Returns an object with one member for a field, or its value if the field is the one that the object is under.
  private static func member(at path: FieldPath?, under field: FieldPath?, _ value: JSONValue) -> JSONObject {
    if let path = path?.relative(to: field) { return [path.description: value] }
    guard case .object(let object) = value else { preconditionFailure("only a field can have a bare value") }
    return object
  }

  private static func one(
    _ name: SelectorOperator, _ operand: JSONValue, _ options: Selector.StringOptions = []
  ) -> JSONObject {
    var object: JSONObject = [name.rawValue: operand]
    if !options.isEmpty { object[SelectorOperator.options.rawValue] = .string(options.text) }
    return object
  }

  // MARK: Conditions

  private static func object(_ condition: SelectorTree.Condition) -> JSONObject {
    switch condition {
    case .equal(let value, let options): one(.equal, value.asOperand, options)
    case .less(let value): one(.less, value.asOperand)
    case .lessOrEqual(let value): one(.lessOrEqual, value.asOperand)
    case .greater(let value): one(.greater, value.asOperand)
    case .greaterOrEqual(let value): one(.greaterOrEqual, value.asOperand)
    case .in(let values, let options): one(.in, .array(values.map(\.asOperand)), options)
    case .exists(let exists): one(.exists, .bool(exists))
    case .type(let type): one(.type, .string(type.rawValue))
    case .size(let size): one(.size, .integer(Int64(size)))
    case .remainder(let divisor, let remainder):
      one(.remainder, .array([.integer(divisor), .integer(remainder)]))
    case .regex(let expression, let options): one(.regex, .string(expression.pattern), options)
    case .beginsWith(let text, let options): one(.beginsWith, .string(text), options)
    case .endsWith(let text, let options): one(.endsWith, .string(text), options)
    case .contains(let text, let options): one(.contains, .string(text), options)
    case .like(let pattern, let options): one(.like, .string(pattern.description), options)
    case .all(let values): one(.all, .array(values.map(\.asOperand)))
    case .elemMatch(let inner): one(.elemMatch, .object(object(inner)))
    case .allMatch(let inner): one(.allMatch, .object(object(inner)))
    case .keyMapMatch(let inner): one(.keyMapMatch, .object(object(inner)))
    }
  }

  // MARK: Expressions

  private static func expression(
    _ comparison: String, _ left: SelectorTree.Expression, _ right: SelectorTree.Expression
  ) -> JSONObject {
    one(.expression, [comparison: .array([operand(left), operand(right)])])
  }

  private static func operand(_ expression: SelectorTree.Expression) -> JSONValue {
    switch expression {
    case .literal(let value): value.type == .array || value.type == .object ? [JSONValue.literalName: value] : value
    case .field(let path): ["$field": .string(path.description)]
    case .operation(let operation, let left, let right):
      [operation.rawValue: .array([operand(left), operand(right)])]
    case .aggregate(let aggregate, let path): [aggregate.rawValue: .string(path.description)]
    case .countWhere(let path, let inner):
      ["$count": ["$field": .string(path.description), "$where": .object(object(inner))]]
    }
  }
}

extension SelectorTree {
  /// The field that the whole tree is a condition on, such that it can be an operator in an object under that field.
  fileprivate var subject: FieldPath? {
    switch self {
    case .field(let path, _), .someElementNot(let path, _), .not(.field(let path, .in)): path
    default: nil
    }
  }
}

extension Selector.StringOptions {
  /// The options as in `$options`.
  fileprivate var text: String {
    (contains(.ignoringCase) ? "c" : "") + (contains(.ignoringDiacritics) ? "d" : "")
  }
}
