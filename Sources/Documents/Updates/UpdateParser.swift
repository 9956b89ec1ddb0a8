/// Turns the JSON of an update, or a list of changes, into the update's tree and its plain JSON.
struct UpdateParser {
  static let maxByteCount = 1 << 20
  static let maxPathLength = 32
  static let maxChangeCount = 10_000

  typealias Update = (json: JSONValue, tree: UpdateTree)

  /// A change, and where it is in the update.
  private typealias PlacedChange = (change: DocumentUpdate.Change, place: String)

  private var builder: UpdateTree.Builder
  private var changeCount = 0

  static func parse(_ json: JSONValue) throws(DocumentUpdateError) -> Update {
    guard case .object(let object) = json else {
      throw DocumentUpdateError(.notAnObject, at: "$", "an update is a JSON object")
    }
    guard let first = object.first(where: { $0.name.utf8.first == UInt8(ascii: "$") }) else {
      return try mergePatch(object)
    }
    if let plain = object.first(where: { $0.name.utf8.first != UInt8(ascii: "$") }) {
      throw DocumentUpdateError(
        .mixedForms, at: "$.\(plain.name)",
        "an update has either operators or other members, and \(plain.name) is beside \(first.name)")
    }
    var changes: [PlacedChange] = []
    for (name, operand) in object { changes += try Self.changes(name, operand, at: "$.\(name)") }
    return try operators(changes)
  }

  static func parse(_ changes: [DocumentUpdate.Change]) throws(DocumentUpdateError) -> Update {
    // As in JSON: all changes by one operator together.
    var names: [String] = []
    for change in changes where !names.contains(change.action.name) { names.append(change.action.name) }
    let grouped = names.flatMap { name in changes.filter { $0.action.name == name } }
    return try operators(grouped.map { ($0, "$.\($0.action.name).\($0.path)") })
  }

  // MARK: Merge patches

  private static func mergePatch(_ object: JSONObject) throws(DocumentUpdateError) -> Update {
    for (name, _) in object { try checkMetadata(name, at: "$.\(name)") }
    var parser = UpdateParser(builder: UpdateTree.Builder(isMergePatch: true))
    try parser.merge(object, into: 0, depth: 1)
    return try checked((.object(object), parser.builder.finish()))
  }

  /// - Parameter depth: How many objects the members are in.
  private mutating func merge(_ object: JSONObject, into node: Int, depth: Int) throws(DocumentUpdateError) {
    for (name, value) in object {
      try countChange()
      switch value {
      case .null: builder.add(name, to: node, .remove, depth: 0)
      case .object(let inner):
        let child = builder.add(name, to: node, .merge, depth: depth + 1)
        guard depth < JSONLimits.deepest else {
          throw builder.finish().error(.tooDeep, at: child, Self.tooDeep)
        }
        try merge(inner, into: child, depth: depth + 1)
      default:
        do throws(ValueFailure) {
          let valueDepth = try Self.depth(of: value, within: JSONLimits.deepest - depth)
          builder.add(name, to: node, .set(value.encoded()), depth: depth + valueDepth)
        } catch {
          let child = builder.add(name, to: node, .remove, depth: 0)
          throw builder.finish().error(error.code, at: child, error.reason)
        }
      }
    }
  }

  // MARK: Operators

  private static func operators(_ changes: [PlacedChange]) throws(DocumentUpdateError) -> Update {
    var parser = UpdateParser(builder: UpdateTree.Builder(isMergePatch: false))
    var operands: [(name: String, operand: JSONObject)] = []
    for (change, place) in changes {
      let path = try parser.add(change, at: place)
      if operands.last?.name != change.action.name { operands.append((change.action.name, [:])) }
      operands[operands.count - 1].operand[path] = change.action.operand
    }
    guard !operands.isEmpty else { return try mergePatch([:]) }
    var object = JSONObject()
    for (name, operand) in operands { object[name] = .object(operand) }
    return try checked((.object(object), parser.builder.finish()))
  }

  /// The changes by one operator.
  private static func changes(
    _ name: String, _ operand: JSONValue, at place: String
  ) throws(DocumentUpdateError) -> [PlacedChange] {
    if name == "$unset", case .array(let paths) = operand {
      var changes: [PlacedChange] = []
      for (index, path) in paths.enumerated() {
        let place = "\(place)[\(index)]"
        guard let path = path.string else {
          throw DocumentUpdateError(.badOperand, at: place, "a field's path is a string")
        }
        changes.append((.unset(path), place))
      }
      return changes
    }
    guard ["$set", "$unset", "$inc", "$push"].contains(name) else {
      throw DocumentUpdateError(
        .unknownOperator, at: place, "there is no operator \(name); the operators are $set, $unset, $inc and $push")
    }
    guard case .object(let members) = operand else {
      throw DocumentUpdateError(
        .badOperand, at: place,
        name == "$unset"
          ? "$unset takes an array of paths, or an object whose names are paths"
          : "\(name) takes an object whose names are paths")
    }
    var changes: [PlacedChange] = []
    for (path, value) in members {
      let place = "\(place).\(path)"
      switch name {
      case "$set": changes.append((.set(path, to: value), place))
      case "$unset": changes.append((.unset(path), place))
      case "$inc": changes.append((.increment(path, by: value), place))
      default: changes.append((.push(each: try pushedValues(value, at: place), to: path), place))
      }
    }
    return changes
  }

  private static func pushedValues(
    _ operand: JSONValue, at place: String
  ) throws(DocumentUpdateError) -> [JSONValue] {
    guard case .object(let members) = operand,
      members.contains(where: { $0.name.utf8.first == UInt8(ascii: "$") })
    else { return [operand] }
    guard members.count == 1, case .array(let values)? = members["$each"] else {
      throw DocumentUpdateError(
        .badOperand, at: place,
        "$push takes a value, or {\"$each\": [VALUE, …]}; an object with names that begin with $ goes into $each")
    }
    return values
  }

  /// Adds a change to the tree.
  /// - Returns: The path as text, with the escapes that it needs.
  private mutating func add(
    _ change: DocumentUpdate.Change, at place: String
  ) throws(DocumentUpdateError) -> String {
    try countChange()
    let path = try Self.path(change.path, at: place)
    try Self.checkMetadata(path.names[0], at: place)
    let (action, depth) = try Self.compiled(change.action, pathLength: path.names.count, at: place)
    if let other = builder.add(path, action, depth: depth) {
      throw DocumentUpdateError(
        .conflict, at: place,
        "the update also changes \(other): it can change a field once, and not a part of a changed field")
    }
    return UpdateTree.text(of: path.names)
  }

  private static func path(_ text: String, at place: String) throws(DocumentUpdateError) -> FieldPath {
    guard let path = FieldPath(text) else {
      throw DocumentUpdateError(.badPath, at: place, "a field's path can't have empty names")
    }
    guard path.names.count <= maxPathLength else {
      throw DocumentUpdateError(.badPath, at: place, "a field's path can have up to \(maxPathLength) names")
    }
    var (isStart, isEscaped) = (true, false)
    for byte in text.utf8 {
      guard !isStart || byte != UInt8(ascii: "$") else {
        throw DocumentUpdateError(
          .badPath, at: place, "a path can't contain operators; put a backslash before a name that begins with $")
      }
      isStart = !isEscaped && byte == UInt8(ascii: ".")
      isEscaped = !isEscaped && byte == UInt8(ascii: "\\")
    }
    return path
  }

  /// What a change does to its field, and how deeply nested it makes a document.
  private static func compiled(
    _ action: DocumentUpdate.Change.Action, pathLength: Int, at place: String
  ) throws(DocumentUpdateError) -> (UpdateTree.Action, depth: Int) {
    do throws(ValueFailure) {
      switch action {
      case .set(let value):
        let depth = try depth(of: value, within: JSONLimits.deepest - max(pathLength, action.operandDepth))
        return (.set(value.encoded()), pathLength + depth)
      case .unset: return (.remove, 0)
      case .increment(let amount):
        guard let number = amount.number, number.double.isFinite else {
          throw ValueFailure(code: .badOperand, reason: "$inc takes numbers in the range of doubles")
        }
        return (.increment(number), pathLength)
      case .push(let values):
        var (text, deepest) = ([UInt8](), 0)
        for (index, value) in values.enumerated() {
          let limit = JSONLimits.deepest - max(pathLength + 1, action.operandDepth)
          deepest = max(deepest, try depth(of: value, within: limit))
          if index > 0 { text.append(UInt8(ascii: ",")) }
          value.append(to: &text)
        }
        return (.push(text), pathLength + 1 + deepest)
      }
    } catch {
      throw DocumentUpdateError(error.code, at: place, error.reason)
    }
  }

  // MARK: Limits

  private struct ValueFailure: Error {
    let code: DocumentUpdateError.Code
    let reason: String
  }

  private static let tooDeep = "documents and updates can be nested \(JSONLimits.deepest) levels deep"

  /// How deeply arrays and objects are nested in a value.
  private static func depth(of value: JSONValue, within limit: Int) throws(ValueFailure) -> Int {
    var deepest = 0
    switch value {
    case .array(let elements):
      guard limit > 0 else { throw ValueFailure(code: .tooDeep, reason: tooDeep) }
      for element in elements { deepest = max(deepest, try depth(of: element, within: limit - 1)) }
      return deepest + 1
    case .object(let members):
      guard limit > 0 else { throw ValueFailure(code: .tooDeep, reason: tooDeep) }
      for (_, member) in members { deepest = max(deepest, try depth(of: member, within: limit - 1)) }
      return deepest + 1
    case .double(let number):
      guard !number.isNaN else { throw ValueFailure(code: .badOperand, reason: "JSON can't represent not-a-number") }
      return 0
    default: return 0
    }
  }

  private mutating func countChange() throws(DocumentUpdateError) {
    changeCount += 1
    guard changeCount <= Self.maxChangeCount else {
      throw DocumentUpdateError(.tooLarge, at: "$", "an update can have up to \(Self.maxChangeCount) changes")
    }
  }

  private static func checkMetadata(_ name: String, at place: String) throws(DocumentUpdateError) {
    guard name == "_id" || name == "_rev" else { return }
    throw DocumentUpdateError(.metadata, at: place, "_id and _rev are metadata that an update can't change")
  }

  /// Checks that an update's JSON can be read back.
  private static func checked(_ update: Update) throws(DocumentUpdateError) -> Update {
    guard update.json.encoded().count <= maxByteCount else {
      throw DocumentUpdateError(.tooLarge, at: "$", "an update can have up to \(maxByteCount) bytes")
    }
    return update
  }
}
