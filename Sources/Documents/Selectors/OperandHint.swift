/// What may be meant by an object with a name that begins with `$` where a selector has a value, and how that is written.
enum OperandHint {
  static let literal = "an object with such a name is written {\"\(JSONValue.literalName)\": {…}}"

  /// The types of Extended JSON, whose values are objects.
  private static let extendedTypes: Set = [
    "$binary", "$code", "$date", "$numberDecimal", "$numberDouble", "$numberInt", "$numberLong", "$oid",
    "$regularExpression", "$timestamp", "$undefined", "$uuid",
  ]

  /// Returns what follows a message about a name.
  /// - Parameter operation: The operator that the object is an operand of; nil if it is in the place of conditions.
  /// - Returns: nil if nothing is known about the name.
  static func text(for name: String, in operation: SelectorOperator? = nil) -> String? {
    if name == JSONValue.literalName {
      return operation == nil
        ? "; write {\"$eq\": {\"\(name)\": VALUE}}" : "; {\"\(name)\": VALUE} stands for a whole operand"
    }
    if extendedTypes.contains(name) {
      return "; write the value as the documents have it, such as \"2024-05-31\" or 10"
    }
    if name == "$field" || SelectorTree.Expression.Operator(rawValue: name) != nil
      || SelectorTree.Expression.Aggregate(rawValue: name) != nil
    {
      return "; compute with $expr: {\"$expr\": {\"$lt\": [{\"$field\": PATH}, {\"\(name)\": …}]}}"
    }
    guard let operation, SelectorOperator(rawValue: name) != nil else { return nil }
    let condition = "{FIELD: {\"\(name)\": …}}"
    return switch operation {
    case .all: "; combine conditions: {\"$and\": [\(condition), …]}"
    case .in: "; combine conditions: {\"$or\": [\(condition), …]}"
    case .notIn: "; combine conditions: {\"$nor\": [\(condition), …]}"
    default: "; a condition is written without \(operation.rawValue): \(condition)"
    }
  }
}

extension JSONValue {
  /// The name of the member whose value stands for itself.
  static let literalName = "$literal"

  /// The first name of a member, at any depth, that begins with `$`; nil if there is none.
  var operatorName: String? {
    switch self {
    case .array(let elements):
      for element in elements { if let name = element.operatorName { return name } }
    case .object(let members):
      for (name, value) in members {
        if name.utf8.first == UInt8(ascii: "$") { return name }
        if let name = value.operatorName { return name }
      }
    default: break
    }
    return nil
  }

  /// The value as an operand in a selector, from which it is read again.
  var asOperand: JSONValue { operatorName == nil ? self : [Self.literalName: self] }
}
