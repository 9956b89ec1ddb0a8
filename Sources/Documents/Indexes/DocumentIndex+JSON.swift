extension DocumentIndex {
  /// Reads a definition from JSON; see `DocumentIndex` for its form.
  /// - Throws: `DocumentIndexError` that names the place and the reason.
  public init(json: JSONValue) throws(DocumentIndexError) {
    guard case .object(let members) = json else {
      throw DocumentIndexError(.badDefinition, at: .root, "the definition of an index is a JSON object")
    }
    for (name, _) in members where !["name", "fields", "where"].contains(name) {
      throw DocumentIndexError(
        .badDefinition, at: .member(.root, name), "the definition of an index has the members name, fields and where")
    }
    let fields = try Self.fields(members["fields"] ?? [])
    var selector: Selector?
    if let json = members["where"] {
      do throws(SelectorError) {
        selector = try Selector(json, at: .member(.root, "where"))
      } catch {
        throw DocumentIndexError(.badSelector, at: error.path, error.reason)
      }
    }
    guard let name = members["name"] else {
      try self.init(fields, where: selector)
      return
    }
    guard let text = name.string else {
      throw DocumentIndexError(.badName, at: .member(.root, "name"), "the name of an index is a string")
    }
    try self.init(fields, where: selector, name: text)
  }

  /// Reads a definition from JSON text in UTF-8, of up to 1 MiB.
  /// - Throws: `DocumentIndexError` that names the place and the reason. For text that isn't JSON, the reason has line
  ///   and column.
  public init(parsing text: Span<UInt8>) throws(DocumentIndexError) {
    let json: JSONValue
    do throws(SelectorError) {
      json = try Selector.json(parsing: text, of: "the definition of an index")
    } catch {
      throw DocumentIndexError(.badDefinition, at: error.path, error.reason)
    }
    try self.init(json: json)
  }

  /// Reads a definition from JSON text; see `init(parsing:)` for bytes.
  /// - Throws: `DocumentIndexError` that names the place and the reason.
  public init(parsing text: String) throws(DocumentIndexError) { try self.init(parsing: Array(text.utf8).span) }

  private static func fields(_ json: JSONValue) throws(DocumentIndexError) -> [SortField] {
    guard case .array(let elements) = json else {
      throw DocumentIndexError(
        .badField, at: .member(.root, "fields"),
        "the fields of an index are an array, such as [\"name\", {\"age\": \"desc\"}]")
    }
    var fields: [SortField] = []
    for (number, element) in elements.prefix(maxFieldCount + 1).enumerated() {
      fields.append(try field(element, at: .field(number)))
    }
    return fields
  }

  private static func field(_ json: JSONValue, at place: JSONPath) throws(DocumentIndexError) -> SortField {
    if let path = json.string { return SortField(try self.path(path, at: place)) }
    guard case .object(let object) = json, object.count == 1 else {
      throw DocumentIndexError(
        .badField, at: place, "a field of an index is a path or an object such as {\"age\": \"desc\"}")
    }
    let (path, value) = object[0]
    guard let direction = value.string.flatMap({ SortField.Direction(rawValue: $0.lowercased()) }) else {
      throw DocumentIndexError(.badField, at: .member(place, path), "the direction of a field is \"asc\" or \"desc\"")
    }
    return SortField(try self.path(path, at: place), direction)
  }

  private static func path(_ text: String, at place: JSONPath) throws(DocumentIndexError) -> FieldPath {
    guard let path = FieldPath(text) else { throw badPath(text, at: place) }
    return path
  }

  /// The definition as JSON. Reading it gives an equal definition.
  public var json: JSONValue {
    var object: JSONObject = [
      "name": .string(name),
      "fields": .array(
        fields.map { $0.direction == .ascending ? .string($0.path.description) : $0.json }),
    ]
    if let selector { object["where"] = selector.json }
    return .object(object)
  }
}

extension DocumentIndex: CustomStringConvertible {
  /// The definition as JSON text.
  public var description: String { json.description }
}
