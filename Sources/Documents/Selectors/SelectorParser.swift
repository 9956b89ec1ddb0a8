import Basics

/// Turns JSON into a tree.
///
/// Nesting and sizes are counted so that the JSON that `SelectorPrinter` makes of a tree never exceeds a limit that the
/// tree's first JSON was within.
struct SelectorParser {
  /// The largest text, in bytes.
  static let maxByteCount = 1 << 20
  /// The deepest nesting of text: of selectors at most two for each level, and of a value in them.
  static let maxTextDepth = 128
  /// The deepest nesting of selectors, and of each value in them. An object with several conditions counts as two levels, as
  /// it would if they were clauses of an `$and`.
  static let maxDepth = 32
  /// The largest number of conditions and operators. The `$and` that an object with several conditions implies is one.
  static let maxNodeCount = 10_000
  /// The largest number of operands of one condition.
  static let maxOperandCount = 65_536
  /// The largest number of regular expressions, each of which can take a few milliseconds and some hundred kilobytes to
  /// compile.
  static let maxRegularExpressionCount = 256
  /// The largest number of instructions of all regular expressions, because compiling takes up to ten microseconds for
  /// each.
  static let maxInstructionCount = 1 << 16
  /// The largest number of names in the path of a field.
  static let maxNameCount = 128
  /// The largest size of all names in the path of a field, in bytes.
  static let maxPathByteCount = 4_096

  private var nodeCount = 0
  private var regularExpressionCount = 0
  private var instructionCount = 0
  private var hasText = false

  /// What an object is about.
  private struct Context {
    /// The field that conditions are about.
    var field: FieldPath?
    /// Whether paths start at an element of an array and not at the document.
    var isElement = false
    /// The levels of nesting so far.
    var depth = 0

    /// Whether conditions have nothing to be about yet.
    var isDocument: Bool { field == nil && !isElement }
  }

  /// Returns the tree of a selector.
  static func parse(_ json: JSONValue, at place: JSONPath = .root) throws(SelectorError) -> SelectorTree {
    guard case .object(let object) = json else {
      throw SelectorError(.notAnObject, at: place, "a selector is an object")
    }
    var parser = SelectorParser()
    return try parser.selector(object, Context(), at: place)
  }

  // MARK: Objects

  private mutating func selector(
    _ object: JSONObject, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> SelectorTree {
    let members = object.sorted.filter { $0.name != SelectorOperator.options.rawValue }
    let options = try options(beside: members, object[SelectorOperator.options.rawValue], context, at: place)
    var inner = context
    inner.depth += members.count > 1 ? 2 : 1
    try checkDepth(inner, at: place)
    if members.count > 1 { try countNode(at: place) }
    var parts: [SelectorTree] = []
    for (name, value) in members {
      let place = JSONPath.member(place, name)
      if name.utf8.first == UInt8(ascii: "$") {
        parts.append(try operation(name, value, options, inner, at: place))
      } else {
        parts.append(try field(name, value, inner, at: place))
      }
    }
    return .all(of: parts)
  }

  /// Returns the tree of an object that has to have a condition.
  private mutating func nonEmptySelector(
    _ value: JSONValue, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> SelectorTree {
    guard case .object(let object) = value, object.count > 0 else {
      throw SelectorError(
        .emptyClause, at: place,
        "a selector with at least one condition is needed here; only a whole selector can be {}, for all documents")
    }
    return try selector(object, context, at: place)
  }

  private mutating func clauses(
    _ value: JSONValue, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> [SelectorTree] {
    guard case .array(let elements) = value, !elements.isEmpty else {
      throw SelectorError(.emptyClause, at: place, "an array of at least one selector is needed here")
    }
    var clauses: [SelectorTree] = []
    for (index, element) in elements.enumerated() {
      clauses.append(try nonEmptySelector(element, context, at: .element(place, index)))
    }
    return clauses
  }

  private mutating func field(
    _ name: String, _ value: JSONValue, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> SelectorTree {
    var inner = context
    inner.field = try path(name, under: context.field, at: place)
    if case .object(let object) = value, object.count > 0 { return try selector(object, inner, at: place) }
    try countNode(at: place)
    return .field(inner.field, .equal(try operand(value, of: .equal, at: place), []))
  }

  private func path(
    _ text: String, under parent: FieldPath? = nil, at place: JSONPath
  ) throws(SelectorError) -> FieldPath {
    func size(_ path: FieldPath?) -> Int { path?.names.reduce(0) { $0 + $1.utf8.count } ?? 0 }
    guard let path = FieldPath(text) else {
      throw SelectorError(.badPath, at: place, "a field's path can't have empty names")
    }
    guard (parent?.names.count ?? 0) + path.names.count <= Self.maxNameCount,
      size(parent) + size(path) <= Self.maxPathByteCount
    else {
      throw SelectorError(
        .tooLarge, at: place,
        "a field's path has up to \(Self.maxNameCount) names and \(Self.maxPathByteCount) bytes")
    }
    return parent + path
  }

  private func options(
    beside members: [JSONObject.Element], _ value: JSONValue?, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> Selector.StringOptions {
    guard let value else { return [] }
    let place = JSONPath.member(place, SelectorOperator.options.rawValue)
    guard !context.isDocument, members.contains(where: { SelectorOperator(rawValue: $0.name)?.takesOptions == true })
    else {
      throw SelectorError(.badOptions, at: place, "$options needs a string operator beside it, such as $eq or $regex")
    }
    switch value.string {
    case "c": return .ignoringCase
    case "d": return .ignoringDiacritics
    case "cd", "dc": return [.ignoringCase, .ignoringDiacritics]
    default:
      throw SelectorError(
        .badOptions, at: place, "$options is \"c\" to ignore case, \"d\" to ignore diacritics, or \"cd\" for both")
    }
  }

  // MARK: Operators

  private mutating func operation(
    _ name: String, _ value: JSONValue, _ options: Selector.StringOptions, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> SelectorTree {
    guard let operation = SelectorOperator(rawValue: name) else {
      let names = SelectorOperator.allCases.map(\.rawValue)
      let hint = OperandHint.text(for: name) ?? Self.suggestion(for: name, of: names)
      throw SelectorError(.unknownOperator, at: place, "there is no operator \(JSONPath.shown(name))\(hint)")
    }
    try countNode(at: place)
    switch operation {
    case .and: return .all(of: try clauses(value, context, at: place))
    case .or: return .any(of: try clauses(value, context, at: place))
    case .nor: return .complement(of: .any(of: try clauses(value, context, at: place)))
    case .not: return .negation(of: try nonEmptySelector(value, context, at: place), at: context.field)
    case .text: return .text(try words(value, context, at: place))
    case .expression: return try expression(value, context, at: place)
    default:
      guard !context.isDocument else {
        throw SelectorError(
          .operatorWithoutField, at: place, "\(name) needs a field around it: {\"FIELD\": {\"\(name)\": …}}")
      }
      return try condition(operation, value, options, context, at: place)
    }
  }

  private static func suggestion(for name: String, of names: [String]) -> String {
    SpellingSuggestion.nearest(to: name, of: names).map { "; did you mean \($0)?" } ?? ""
  }

  private mutating func words(
    _ value: JSONValue, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> String {
    guard context.isDocument else {
      throw SelectorError(.textNotAllowed, at: place, "$text searches the whole document and can't be under a field")
    }
    guard !hasText else { throw SelectorError(.textNotAllowed, at: place, "a selector can have only one $text") }
    hasText = true
    if let words = value.string { return words }
    if case .object(let object) = value, object.count == 1, let words = object["$search"]?.string { return words }
    throw SelectorError(
      .badOperand, at: place, "$text takes a string, or an object with a string as its only member, $search")
  }

  private mutating func condition(
    _ operation: SelectorOperator, _ value: JSONValue, _ options: Selector.StringOptions, _ context: Context,
    at place: JSONPath
  ) throws(SelectorError) -> SelectorTree {
    func field(_ condition: SelectorTree.Condition) -> SelectorTree { .field(context.field, condition) }
    func bad(_ expected: String) -> SelectorError {
      SelectorError(.badOperand, at: place, "\(operation.rawValue) takes \(expected)")
    }
    func string() throws(SelectorError) -> String {
      guard let string = value.string else { throw bad("a string") }
      return string
    }
    func values() throws(SelectorError) -> [JSONValue] {
      guard case .array(let values) = value else { throw bad("an array") }
      guard values.count <= Self.maxOperandCount else {
        throw SelectorError(.tooLarge, at: place, "\(operation.rawValue) takes up to \(Self.maxOperandCount) operands")
      }
      var operands: [JSONValue] = []
      for (index, value) in values.enumerated() {
        operands.append(try self.operand(value, of: operation, at: .element(place, index)))
      }
      return operands
    }
    func single() throws(SelectorError) -> JSONValue { try self.operand(value, of: operation, at: place) }
    switch operation {
    case .equal: return field(.equal(try single(), options))
    case .notEqual: return .notEqual(context.field, try single(), options)
    case .less: return field(.less(try single()))
    case .lessOrEqual: return field(.lessOrEqual(try single()))
    case .greater: return field(.greater(try single()))
    case .greaterOrEqual: return field(.greaterOrEqual(try single()))
    case .in: return field(.in(try values(), options))
    case .notIn: return .complement(of: field(.in(try values(), options)))
    case .all: return field(.all(try values()))
    case .exists:
      guard let exists = value.bool else { throw bad("true or false") }
      return field(.exists(exists))
    case .type:
      guard let type = value.string.flatMap(JSONType.init) else {
        throw bad("one of \(JSONType.allCases.map { "\"\($0.rawValue)\"" }.joined(separator: ", "))")
      }
      return field(.type(type))
    case .size:
      guard let size = value.number?.wholeNumber, size >= 0 else { throw bad("a non-negative integer") }
      return field(.size(Int(size)))
    case .remainder:
      guard case .array(let numbers) = value, numbers.count == 2, let divisor = numbers[0].number,
        let remainder = numbers[1].number, divisor.truncated != 0
      else { throw bad("an array of two numbers: the divisor, which is not 0, and the remainder") }
      guard let divisor = divisor.truncated, let remainder = remainder.truncated else {
        throw bad("a divisor and a remainder that are 64-bit integers: from -2⁶³ to 2⁶³ - 1")
      }
      return field(.remainder(divisor: divisor, remainder: remainder))
    case .regex:
      let pattern = try string()
      regularExpressionCount += 1
      guard regularExpressionCount <= Self.maxRegularExpressionCount else {
        throw SelectorError(
          .tooLarge, at: place, "a selector has up to \(Self.maxRegularExpressionCount) regular expressions")
      }
      let expression: RegularExpression
      do throws(RegularExpressionError) { expression = try RegularExpression(pattern) } catch {
        throw SelectorError(.badRegularExpression, at: place, "\(error)")
      }
      instructionCount += expression.instructionCount
      guard instructionCount <= Self.maxInstructionCount else {
        throw SelectorError(
          .tooLarge, at: place,
          "the regular expressions of a selector have up to \(Self.maxInstructionCount) instructions together")
      }
      return field(.regex(expression, options))
    case .beginsWith: return field(.beginsWith(try string(), options))
    case .endsWith: return field(.endsWith(try string(), options))
    case .contains: return field(.contains(try string(), options))
    case .like:
      let text = try string()
      guard text.utf8.count <= LikePattern.maxByteCount else {
        throw SelectorError(.tooLarge, at: place, "a pattern of $like has up to \(LikePattern.maxByteCount) bytes")
      }
      guard let pattern = LikePattern(text) else { throw bad("a pattern that doesn't end with a single backslash") }
      return field(.like(pattern, options))
    case .elemMatch: return field(.elemMatch(try elementSelector(value, context, at: place)))
    case .allMatch: return field(.allMatch(try elementSelector(value, context, at: place)))
    case .keyMapMatch: return field(.keyMapMatch(try elementSelector(value, context, at: place)))
    case .and, .or, .nor, .not, .text, .expression, .options:
      preconditionFailure("\(operation.rawValue) is not a condition on a value")
    }
  }

  private mutating func elementSelector(
    _ value: JSONValue, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> SelectorTree {
    try nonEmptySelector(value, Context(isElement: true, depth: context.depth), at: place)
  }

  // MARK: Expressions

  private mutating func expression(
    _ value: JSONValue, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> SelectorTree {
    guard context.isDocument else {
      throw SelectorError(
        .badExpression, at: place, "$expr computes from the whole document and can't be under a field")
    }
    guard case .object(let object) = value, object.count == 1 else {
      throw SelectorError(.badExpression, at: place, "$expr takes one comparison: {\"$lt\": [OPERAND, OPERAND]}")
    }
    let name = object[0].name
    let isComplement = name == SelectorOperator.notEqual.rawValue
    let place = JSONPath.member(place, name)
    guard
      let comparison = isComplement ? .equal : SelectorTree.Expression.Comparison(rawValue: name)
    else {
      throw SelectorError(.badExpression, at: place, "$expr compares with $eq, $ne, $lt, $lte, $gt or $gte")
    }
    let (left, right) = try operands(object[0].value, context, at: place)
    return isComplement ? .not(.expression(comparison, left, right)) : .expression(comparison, left, right)
  }

  private mutating func operands(
    _ value: JSONValue, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> (SelectorTree.Expression, SelectorTree.Expression) {
    guard case .array(let operands) = value, operands.count == 2 else {
      throw SelectorError(.badExpression, at: place, "an array of two operands is needed here")
    }
    return (
      try operand(operands[0], context, at: .element(place, 0)),
      try operand(operands[1], context, at: .element(place, 1))
    )
  }

  private mutating func operand(
    _ value: JSONValue, _ context: Context, at place: JSONPath
  ) throws(SelectorError) -> SelectorTree.Expression {
    var context = context
    context.depth += 1
    try checkDepth(context, at: place)
    try countNode(at: place)
    func bad(_ reason: String) -> SelectorError { SelectorError(.badExpression, at: place, reason) }
    guard case .object(let object) = value else {
      guard value.type != .array else { throw bad("an array as an operand is written {\"$literal\": [...]}") }
      return .literal(value)
    }
    guard object.count == 1 else {
      throw bad("an operand is a value, or an object with one member, such as {\"$field\": PATH}")
    }
    let (name, argument) = object[0]
    let inner = JSONPath.member(place, name)
    func path(_ value: JSONValue, at place: JSONPath) throws(SelectorError) -> FieldPath {
      guard let text = value.string else {
        throw SelectorError(.badExpression, at: place, "\(name) takes the path of a field")
      }
      return try self.path(text, at: place)
    }
    if name == JSONValue.literalName { return .literal(try literal(argument, at: inner)) }
    if name == "$field" { return .field(try path(argument, at: inner)) }
    if let operation = SelectorTree.Expression.Operator(rawValue: name) {
      let (left, right) = try operands(argument, context, at: inner)
      return .operation(operation, left, right)
    }
    guard let aggregate = SelectorTree.Expression.Aggregate(rawValue: name) else {
      let names =
        [JSONValue.literalName, "$field"] + SelectorTree.Expression.Operator.allCases.map(\.rawValue)
        + SelectorTree.Expression.Aggregate.allCases.map(\.rawValue)
      throw bad("there is no operand \(JSONPath.shown(name))\(Self.suggestion(for: name, of: names))")
    }
    guard aggregate == .count, case .object(let parts) = argument else {
      return .aggregate(aggregate, try path(argument, at: inner))
    }
    guard parts.count == 2, let field = parts["$field"], let selector = parts["$where"] else {
      throw SelectorError(
        .badExpression, at: inner, "$count takes the path of a field, or {\"$field\": PATH, \"$where\": SELECTOR}")
    }
    return .countWhere(
      try path(field, at: .member(inner, "$field")),
      try elementSelector(selector, context, at: .member(inner, "$where")))
  }

  // MARK: Limits

  private mutating func countNode(at place: JSONPath) throws(SelectorError) {
    nodeCount += 1
    guard nodeCount <= Self.maxNodeCount else {
      throw SelectorError(
        .tooLarge, at: place, "a selector has up to \(Self.maxNodeCount) conditions and operators")
    }
  }

  private func checkDepth(_ context: Context, at place: JSONPath) throws(SelectorError) {
    guard context.depth <= Self.maxDepth else {
      throw SelectorError(.tooDeep, at: place, "a selector is nested up to \(Self.maxDepth) levels deep")
    }
  }

  /// Returns what values of documents are compared with: the operand itself, or what is in `{"$literal": VALUE}`.
  ///
  /// Any other object in it whose name begins with `$` is meant to be something else than this object, such as a date, a
  /// computation or a condition.
  private func operand(
    _ value: JSONValue, of operation: SelectorOperator, at place: JSONPath
  ) throws(SelectorError) -> JSONValue {
    guard let name = value.operatorName else { return try literal(value, at: place) }
    if case .object(let object) = value, object.count == 1, let literal = object[JSONValue.literalName] {
      return try self.literal(literal, at: .member(place, JSONValue.literalName))
    }
    let hint = OperandHint.text(for: name, in: operation) ?? "; \(OperandHint.literal)"
    throw SelectorError(
      .badOperand, at: place, "\(operation.rawValue) compares with values, and \(JSONPath.shown(name)) is none\(hint)")
  }

  /// Returns a value that is compared with values of documents.
  private func literal(_ value: JSONValue, at place: JSONPath) throws(SelectorError) -> JSONValue {
    guard value.isNested(atMost: Self.maxDepth) else {
      throw SelectorError(.tooDeep, at: place, "a value in a selector is nested up to \(Self.maxDepth) levels deep")
    }
    return value
  }
}

extension JSONValue {
  /// Returns a Boolean value that indicates whether no more than a number of arrays and objects are within each other.
  fileprivate func isNested(atMost depth: Int) -> Bool {
    switch self {
    case .array(let elements): depth > 0 && elements.allSatisfy { $0.isNested(atMost: depth - 1) }
    case .object(let members): depth > 0 && members.allSatisfy { $0.value.isNested(atMost: depth - 1) }
    default: true
    }
  }
}

extension JSONNumber {
  /// The number without its fraction; nil if it doesn't fit into 64 bits.
  fileprivate var truncated: Int64? {
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
