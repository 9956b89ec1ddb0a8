/// Turns JSON into a selector.
struct SelectorParser {
  static let maxByteCount = 1 << 20
  static let maxDepth = 32
  static let maxNodeCount = 10_000
  static let maxOperandCount = 65_536

  private var nodeCount = 0
  private var hasText = false

  /// Where the parser is in the selector, for messages.
  private typealias Place = String

  /// The field that conditions are about.
  private struct Context {
    var field: FieldPath?
    /// Inside of an operator that looks at elements.
    var isElement = false
    var depth = 0

    /// Neither a field nor an element: the document itself.
    var isDocument: Bool { field == nil && !isElement }
  }

  static func parse(_ json: JSONValue) throws(SelectorError) -> Selector {
    guard case .object(let object) = json else {
      throw SelectorError(.notAnObject, at: "$", "a selector is a JSON object")
    }
    var parser = SelectorParser()
    return try parser.selector(object, Context(), at: "$")
  }

  private mutating func selector(
    _ object: JSONObject, _ context: Context, at place: Place
  ) throws(SelectorError) -> Selector {
    guard context.depth < Self.maxDepth else {
      throw SelectorError(.tooDeep, at: place, "a selector can be nested \(Self.maxDepth) levels deep")
    }
    var inner = context
    inner.depth += 1
    let options = try options(of: object, context, at: place)
    var parts: [Selector] = []
    for (name, value) in object where name != "$options" {
      nodeCount += 1
      guard nodeCount <= Self.maxNodeCount else {
        throw SelectorError(.tooLarge, at: place, "a selector can have up to \(Self.maxNodeCount) conditions")
      }
      parts.append(try part(name, value, options, inner, at: "\(place).\(name)"))
    }
    return parts.count == 1 ? parts[0] : .and(parts)
  }

  private mutating func part(
    _ name: String, _ value: JSONValue, _ options: Selector.StringOptions, _ context: Context, at place: Place
  ) throws(SelectorError) -> Selector {
    switch name {
    case "$and": return .and(try clauses(value, context, at: place))
    case "$or": return .or(try clauses(value, context, at: place))
    case "$nor": return .not(.or(try clauses(value, context, at: place)))
    case "$not":
      let inner = try nonEmptyObject(value, context, at: place)
      return context.field != nil && inner.isAboutEachElement(of: context.field)
        ? .someElementNot(context.field, inner) : .not(inner)
    case "$text":
      guard context.isDocument else {
        throw SelectorError(.textNotAllowed, at: place, "$text can't stand under a field")
      }
      guard !hasText else { throw SelectorError(.textNotAllowed, at: place, "a selector can have one $text") }
      hasText = true
      if let words = value.string { return .text(words) }
      if case .object(let object) = value, object.count == 1, let words = object["$search"]?.string {
        return .text(words)
      }
      throw SelectorError(.badOperand, at: place, "$text takes a string, or an object with the one member $search")
    case "$expr":
      guard context.isDocument else {
        throw SelectorError(.badExpression, at: place, "$expr can't stand under a field")
      }
      return try expression(value, context, at: place)
    case _ where name.utf8.first == UInt8(ascii: "$"):
      guard !context.isDocument else {
        throw SelectorError(
          .operatorWithoutField, at: place, "\(name) needs a field: {\"FIELD\": {\"\(name)\": …}}")
      }
      return try condition(name, value, options, context, at: place)
    default:
      guard let path = FieldPath(name) else {
        throw SelectorError(.badPath, at: place, "a field's path has no empty names")
      }
      var inner = context
      inner.field = context.field + path
      guard case .object(let object) = value, object.count > 0 else { return .field(inner.field, .equal(value)) }
      return try selector(object, inner, at: place)
    }
  }

  private mutating func clauses(
    _ value: JSONValue, _ context: Context, at place: Place
  ) throws(SelectorError) -> [Selector] {
    guard case .array(let elements) = value, !elements.isEmpty else {
      throw SelectorError(.emptyClause, at: place, "this operator takes an array of at least one selector")
    }
    var clauses: [Selector] = []
    for (index, element) in elements.enumerated() {
      clauses.append(try nonEmptyObject(element, context, at: "\(place)[\(index)]"))
    }
    return clauses
  }

  private mutating func nonEmptyObject(
    _ value: JSONValue, _ context: Context, at place: Place
  ) throws(SelectorError) -> Selector {
    guard case .object(let object) = value, object.count > 0 else {
      throw SelectorError(.emptyClause, at: place, "a selector with at least one condition is needed here")
    }
    return try selector(object, context, at: place)
  }

  private static let stringOperators: Set<String> = [
    "$eq", "$ne", "$in", "$nin", "$beginsWith", "$endsWith", "$contains", "$like", "$regex",
  ]

  private func options(
    of object: JSONObject, _ context: Context, at place: Place
  ) throws(SelectorError) -> Selector.StringOptions {
    guard let value = object["$options"] else { return [] }
    let place = "\(place).$options"
    guard !context.isDocument, object.contains(where: { Self.stringOperators.contains($0.name) }) else {
      throw SelectorError(.badOptions, at: place, "$options stands beside a string operator, such as $eq or $regex")
    }
    switch value.string {
    case "c": return .ignoringCase
    case "d": return .ignoringDiacritics
    case "cd", "dc": return [.ignoringCase, .ignoringDiacritics]
    default: throw SelectorError(.badOptions, at: place, "$options is \"c\" (case), \"d\" (diacritics) or \"cd\"")
    }
  }

  // MARK: Operators of a field

  private mutating func condition(
    _ name: String, _ value: JSONValue, _ options: Selector.StringOptions, _ context: Context, at place: Place
  ) throws(SelectorError) -> Selector {
    func field(_ condition: Selector.Condition) -> Selector { .field(context.field, condition) }
    func bad(_ reason: String) -> SelectorError { SelectorError(.badOperand, at: place, "\(name) takes \(reason)") }
    switch name {
    case "$eq": return field(.equal(value, options))
    case "$ne":
      let equal = field(.equal(value, options))
      return equal.isAboutEachElement(of: context.field) ? .someElementNot(context.field, equal) : .not(equal)
    case "$lt": return field(.less(value))
    case "$lte": return field(.lessOrEqual(value))
    case "$gt": return field(.greater(value))
    case "$gte": return field(.greaterOrEqual(value))
    case "$in", "$nin":
      guard case .array(let operands) = value else { throw bad("an array") }
      guard operands.count <= Self.maxOperandCount else {
        throw SelectorError(.tooLarge, at: place, "\(name) takes up to \(Self.maxOperandCount) operands")
      }
      return name == "$in" ? field(.in(operands, options)) : .not(field(.in(operands, options)))
    case "$all":
      guard case .array(let operands) = value else { throw bad("an array") }
      return field(.all(operands))
    case "$exists":
      guard let exists = value.bool else { throw bad("true or false") }
      return field(.exists(exists))
    case "$type":
      guard let type = value.string.flatMap(JSONType.init) else {
        throw bad("one of \(JSONType.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", "))")
      }
      return field(.type(type))
    case "$size":
      guard let size = value.number?.wholeNumber, size >= 0 else { throw bad("a whole number from 0 on") }
      return field(.size(Int(size)))
    case "$mod":
      guard case .array(let operands) = value, operands.count == 2,
        let divisor = operands[0].number?.truncated, let remainder = operands[1].number?.truncated, divisor != 0
      else { throw bad("two numbers, [divisor, remainder], and the divisor isn't 0") }
      return field(.remainder(divisor: divisor, remainder: remainder))
    case "$regex":
      guard let pattern = value.string else { throw bad("a string") }
      return field(.regex(pattern, options))
    case "$beginsWith", "$endsWith", "$contains", "$like":
      guard let text = value.string else { throw bad("a string") }
      switch name {
      case "$beginsWith": return field(.beginsWith(text, options))
      case "$endsWith": return field(.endsWith(text, options))
      case "$contains": return field(.contains(text, options))
      default:
        guard LikePattern(text) != nil else { throw bad("a pattern that doesn't end with a single backslash") }
        return field(.like(text, options))
      }
    case "$elemMatch", "$allMatch", "$keyMapMatch":
      guard case .object(let object) = value, object.count > 0 else {
        throw bad("a selector with at least one condition")
      }
      let inner = try selector(object, Context(isElement: true, depth: context.depth), at: place)
      switch name {
      case "$elemMatch": return field(.elemMatch(inner))
      case "$allMatch": return field(.allMatch(inner))
      default: return field(.keyMapMatch(inner))
      }
    default: throw SelectorError(.unknownOperator, at: place, "there is no operator \(name)")
    }
  }

  // MARK: Expressions

  private mutating func expression(
    _ value: JSONValue, _ context: Context, at place: Place
  ) throws(SelectorError) -> Selector {
    guard case .object(let object) = value, object.count == 1, case .array(let operands) = object[0].value,
      operands.count == 2
    else {
      throw SelectorError(
        .badExpression, at: place, "$expr takes one comparison of two operands: {\"$lt\": [OPERAND, OPERAND]}")
    }
    let (name, place) = (object[0].name, "\(place).\(object[0].name)")
    let (left, right) = (
      try operand(operands[0], context, at: "\(place)[0]"), try operand(operands[1], context, at: "\(place)[1]")
    )
    if name == "$ne" { return .not(.expression(.equal, left, right)) }
    guard let comparison = Selector.Expression.Comparison(rawValue: name) else {
      throw SelectorError(.badExpression, at: place, "$expr compares by $eq, $ne, $lt, $lte, $gt or $gte")
    }
    return .expression(comparison, left, right)
  }

  private mutating func operand(
    _ value: JSONValue, _ context: Context, at place: Place
  ) throws(SelectorError) -> Selector.Expression {
    guard context.depth < Self.maxDepth else {
      throw SelectorError(.tooDeep, at: place, "a selector can be nested \(Self.maxDepth) levels deep")
    }
    nodeCount += 1
    guard nodeCount <= Self.maxNodeCount else {
      throw SelectorError(.tooLarge, at: place, "a selector can have up to \(Self.maxNodeCount) conditions")
    }
    var inner = context
    inner.depth += 1
    func bad(_ reason: String) -> SelectorError { SelectorError(.badExpression, at: place, reason) }
    func path(_ value: JSONValue) throws(SelectorError) -> FieldPath {
      guard let text = value.string else { throw bad("a field's path is a string") }
      guard let path = FieldPath(text) else {
        throw SelectorError(.badPath, at: place, "a field's path has no empty names")
      }
      return path
    }
    switch value {
    case .array: throw bad("an operand is no array; use {\"$literal\": [...]}")
    case .object(let object):
      guard object.count == 1 else { throw bad("an operand is an object with one member") }
      let (name, value) = object[0]
      if name == "$literal" { return .literal(value) }
      if name == "$field" { return .field(try path(value)) }
      if let operation = Selector.Expression.Operation(rawValue: name) {
        guard case .array(let operands) = value, operands.count == 2 else { throw bad("\(name) takes two operands") }
        return .operation(
          operation, try operand(operands[0], inner, at: "\(place).\(name)[0]"),
          try operand(operands[1], inner, at: "\(place).\(name)[1]"))
      }
      if name == "$count", case .object(let parts) = value {
        guard parts.count == 2, let field = parts["$field"], case .object(let condition)? = parts["$where"],
          condition.count > 0
        else { throw bad("$count takes a path, or an object of $field and $where") }
        inner.isElement = true
        return .countWhere(try path(field), try selector(condition, inner, at: "\(place).$count.$where"))
      }
      if let aggregate = Selector.Expression.Aggregate(rawValue: name) { return .aggregate(aggregate, try path(value)) }
      throw bad("there is no operand \(name)")
    default: return .literal(value)
    }
  }
}

extension Selector {
  /// Whether the selector is made of conditions on one field only that each look at one element of an array at a time.
  func isAboutEachElement(of path: FieldPath?) -> Bool {
    switch self {
    case .and(let parts), .or(let parts): return parts.allSatisfy { $0.isAboutEachElement(of: path) }
    case .not(let part): return part.isAboutEachElement(of: path)
    case .someElementNot: return true
    case .text, .expression: return false
    case .field(let field, let condition):
      guard field == path else { return false }
      switch condition {
      case .equal(let value, _), .less(let value), .lessOrEqual(let value), .greater(let value),
        .greaterOrEqual(let value):
        switch value {
        case .array, .null: return false
        default: return true
        }
      case .in(let operands, _):
        return !operands.contains { if case .array = $0 { true } else { false } }
      case .remainder, .regex, .beginsWith, .endsWith, .contains, .like: return true
      case .exists, .type, .size, .all, .elemMatch, .allMatch, .keyMapMatch: return false
      }
    }
  }
}

extension JSONNumber {
  /// The number without its fraction; nil if it doesn't fit into 64 bits.
  var truncated: Int64? {
    switch self {
    case .integer(let value): value
    case .double(let value): Int64(exactly: value.rounded(.towardZero))
    }
  }

  /// nil if the number has a fraction or doesn't fit into 64 bits.
  var wholeNumber: Int64? {
    switch self {
    case .integer(let value): value
    case .double(let value): Int64(exactly: value)
    }
  }
}
