import Documents

/// Updates trees, change by change: what `DocumentUpdate` does on bytes, done simply.
enum UpdateOracle {
  static func apply(_ update: JSONValue, to document: JSONValue) throws(DocumentUpdateError) -> JSONValue {
    guard case .object(let members) = update, members.first?.name.hasPrefix("$") == true else {
      return merged(update, into: document)
    }
    var changes: [(path: [String], name: String, operand: JSONValue)] = []
    for (name, operand) in members {
      guard case .object(let operands) = operand else { fatalError("a plain update has objects of operands") }
      for (path, operand) in operands { changes.append((FieldPath(path)!.names, name, operand)) }
    }
    // Elements are appended in the order of their indexes.
    changes.sort { left, right in
      for (left, right) in zip(left.path, right.path) where left != right {
        if let left = Int(left), let right = Int(right) { return left < right }
        return left < right
      }
      return left.path.count < right.path.count
    }
    var document: JSONValue? = document
    for change in changes { document = try changed(document, change.path[...], change.name, change.operand) }
    return document!
  }

  /// RFC 7396, section 2.
  private static func merged(_ patch: JSONValue, into target: JSONValue?) -> JSONValue {
    guard case .object(let members) = patch else { return patch }
    var result = JSONObject()
    if case .object(let members)? = target { result = members }
    for (name, value) in members {
      let merged: JSONValue? = if case .null = value { .none } else { merged(value, into: result[name]) }
      result[name] = merged
    }
    return .object(result)
  }

  private static func changed(
    _ value: JSONValue?, _ path: ArraySlice<String>, _ name: String, _ operand: JSONValue
  ) throws(DocumentUpdateError) -> JSONValue? {
    guard let step = path.first else { return try result(value, name, operand) }
    let rest = path.dropFirst()
    guard let value = name == "$unset" ? value : value ?? [:] else { return nil }
    switch value {
    case .object(var members):
      members[step] = try changed(members[step], rest, name, operand)
      return .object(members)
    case .array(var elements):
      guard let index = Int(step) else { throw DocumentUpdateError(.notAnIndex, at: "", "") }
      if index < elements.count {
        elements[index] = try changed(elements[index], rest, name, operand) ?? .null
      } else if name != "$unset" {
        guard index == elements.count else { throw DocumentUpdateError(.indexTooLarge, at: "", "") }
        elements.append(try changed(nil, rest, name, operand)!)
      }
      return .array(elements)
    default:
      guard name == "$unset" else { throw DocumentUpdateError(.notAContainer, at: "", "") }
      return value
    }
  }

  private static func result(
    _ value: JSONValue?, _ name: String, _ operand: JSONValue
  ) throws(DocumentUpdateError) -> JSONValue? {
    switch name {
    case "$set": return operand
    case "$unset": return nil
    case "$inc":
      if let left = (value ?? 0).integer, let right = operand.integer {
        let sum = Int128(left) + Int128(right)
        return Int64(exactly: sum).map { .integer($0) } ?? .double(Double(sum))
      }
      guard let left = (value ?? 0).double, let right = operand.double else {
        throw DocumentUpdateError(.notANumber, at: "", "")
      }
      if let left = Int64(exactly: left), let right = Int64(exactly: right) {
        let exact = Int128((value ?? 0).integer ?? left) + Int128(operand.integer ?? right)
        if Int128(exactly: Double(exact)) != exact, let sum = Int64(exactly: exact) { return .integer(sum) }
        return .double(Double(exact))
      }
      guard (left + right).isFinite else { throw DocumentUpdateError(.numberTooLarge, at: "", "") }
      return .double(left + right)
    case "$push":
      guard case .array(let elements) = value ?? [] else { throw DocumentUpdateError(.notAnArray, at: "", "") }
      if case .array(let values)? = operand["$each"] { return .array(elements + values) }
      return .array(elements + [operand])
    default: fatalError("there is no operator \(name)")
    }
  }
}
