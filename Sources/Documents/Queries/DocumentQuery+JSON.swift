extension DocumentQuery {
  /// Reads a query from JSON text; see `DocumentQuery` for its form.
  /// - Throws: `SelectorError` that names the place in the query and the reason.
  public init(parsing text: String) throws(SelectorError) {
    let text = Array(text.utf8)
    let json = try Selector.json(parsing: text.span)
    try self.init(json)
  }

  /// Reads a query from JSON; see `DocumentQuery` for its form.
  /// - Throws: `SelectorError` that names the place in the query and the reason.
  public init(_ json: JSONValue) throws(SelectorError) {
    guard case .object(let members) = json else {
      throw SelectorError(.notAnObject, at: "$", "a query is a JSON object")
    }
    self.init()
    for (name, value) in members {
      let place = "$.\(name)"
      switch name {
      case "selector": selector = try Selector(value, at: .member(.root, name))
      case "sort": sort = try SortField.fields(value, at: place)
      case "skip": skip = try Self.count(value, at: place)
      case "limit":
        let count = try Self.count(value, at: place)
        limit = count == 0 ? nil : count
      case "fields": fields = try FieldPath.fields(value, at: place)
      case "bookmark":
        guard let text = value.string else { throw SelectorError(.badBookmark, at: place, "a bookmark is a string") }
        bookmark = text
      default:
        throw SelectorError(
          .badOperand, at: place, "a query has the members selector, sort, skip, limit, fields and bookmark")
      }
    }
  }

  /// Reads a query from the texts of its parts, each of which may be empty.
  /// - Throws: `SelectorError` that names the place in the query and the reason.
  package init(
    selector: Span<UInt8>, sort: Span<UInt8>, fields: Span<UInt8>, bookmark: Span<UInt8>
  ) throws(SelectorError) {
    self.init()
    if !selector.isEmpty { self.selector = try Selector(parsing: selector) }
    if !sort.isEmpty {
      self.sort = try SortField.fields(try Selector.json(parsing: sort, of: "a sort"), at: "$.sort")
    }
    if !fields.isEmpty {
      self.fields = try FieldPath.fields(try Selector.json(parsing: fields, of: "a list of fields"), at: "$.fields")
    }
    if !bookmark.isEmpty {
      self.bookmark = unsafe bookmark.withUnsafeBytes { unsafe String(decoding: $0, as: UTF8.self) }
    }
  }

  /// The query as JSON. Reading it gives an equal query, unless the limit is 0, which JSON can't say.
  public var json: JSONValue {
    var object = JSONObject()
    object["selector"] = selector.json
    if !sort.isEmpty { object["sort"] = .array(sort.map(\.json)) }
    if skip > 0 { object["skip"] = .integer(Int64(skip)) }
    if let limit { object["limit"] = .integer(Int64(limit)) }
    if !fields.isEmpty { object["fields"] = .array(fields.map { .string($0.description) }) }
    if let bookmark { object["bookmark"] = .string(bookmark) }
    return .object(object)
  }

  private static func count(_ value: JSONValue, at place: String) throws(SelectorError) -> Int {
    guard let count = value.number?.wholeNumber, count >= 0 else {
      throw SelectorError(.badSkipOrLimit, at: place, "skip and limit are whole numbers from 0")
    }
    return Int(count)
  }
}

extension DocumentQuery: CustomStringConvertible {
  /// The query as JSON text.
  public var description: String { json.description }
}

extension DocumentQuery: Codable {
  /// Decodes a query from its JSON.
  /// - Throws: `SelectorError` that names the place in the query and the reason, or an error of the decoder.
  public init(from decoder: any Decoder) throws { try self.init(JSONValue(from: decoder)) }

  /// Encodes the query as its JSON.
  public func encode(to encoder: any Encoder) throws { try json.encode(to: encoder) }
}

extension SortField {
  /// Reads fields to sort by: an array of up to 64 names and objects such as `{"age": "desc"}`.
  /// - Parameter place: The JSON path of the array, for messages.
  /// - Throws: `SelectorError` with the code `badSort`, or `tooLarge` if there are more fields.
  public static func fields(_ json: JSONValue, at place: String = "$") throws(SelectorError) -> [SortField] {
    guard case .array(let elements) = json else {
      throw SelectorError(.badSort, at: place, "a sort is an array of fields, such as [\"name\", {\"age\": \"desc\"}]")
    }
    guard elements.count <= maxCount else {
      throw SelectorError(.tooLarge, at: place, "documents can be sorted by up to \(maxCount) fields")
    }
    var fields: [SortField] = []
    for (index, element) in elements.enumerated() { fields.append(try field(element, at: "\(place)[\(index)]")) }
    return fields
  }

  /// The maximum number of fields to sort by.
  static let maxCount = 64

  private static func field(_ json: JSONValue, at place: String) throws(SelectorError) -> SortField {
    if let name = json.string { return SortField(try path(name, at: place), .ascending) }
    guard case .object(let object) = json, object.count == 1 else {
      throw SelectorError(.badSort, at: place, "a field to sort by is a name or an object such as {\"age\": \"desc\"}")
    }
    guard let direction = object[0].value.string.flatMap({ Direction(rawValue: $0.lowercased()) }) else {
      throw SelectorError(.badSort, at: place, "the direction of a sort is \"asc\" or \"desc\"")
    }
    return SortField(try path(object[0].name, at: place), direction)
  }

  private static func path(_ name: String, at place: String) throws(SelectorError) -> FieldPath {
    guard let path = FieldPath(name) else {
      throw SelectorError(.badSort, at: place, "a field's path can't have empty names")
    }
    return path
  }

  /// The field as in a query's JSON.
  public var json: JSONValue { [path.description: .string(direction.rawValue)] }
}

extension FieldPath {
  /// The maximum number of fields to return.
  static let maxFieldCount = 1_000

  /// Reads the fields to return: an array of up to 1,000 paths.
  /// - Parameter place: The JSON path of the array, for messages.
  /// - Throws: `SelectorError` with the code `badFields`, or `tooLarge` if there are more fields.
  public static func fields(_ json: JSONValue, at place: String = "$") throws(SelectorError) -> [FieldPath] {
    guard case .array(let elements) = json else {
      throw SelectorError(.badFields, at: place, "the fields to return are an array of paths")
    }
    guard elements.count <= maxFieldCount else {
      throw SelectorError(.tooLarge, at: place, "up to \(maxFieldCount) fields can be returned")
    }
    var fields: [FieldPath] = []
    for (index, element) in elements.enumerated() {
      guard let path = element.string.flatMap({ text in FieldPath(text) }) else {
        throw SelectorError(.badFields, at: "\(place)[\(index)]", "a field to return is a path without empty names")
      }
      fields.append(path)
    }
    return fields
  }
}
