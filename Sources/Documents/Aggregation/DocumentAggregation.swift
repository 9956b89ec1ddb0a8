/// What to compute from documents: the fields to group them by, and the aggregates of each group.
///
/// As JSON, it is an object. All members are optional: without `by`, all documents are one group; without `compute`,
/// they are counted; without `sort`, groups are in the order of the values that they are grouped by; without `limit`,
/// all of them are returned.
///
///     {"by": ["pet.species"], "compute": ["count", {"sum": "age"}, {"avg": "age"}, {"min": "age"}, {"max": "age"}],
///      "sort": [{"count": "desc"}], "limit": 10}
public struct DocumentAggregation: Equatable, Sendable {
  /// The fields to group by. Without any, all documents are one group.
  public var fields: [FieldPath]
  /// What is computed from each group, in this order.
  public var aggregates: [Aggregate]
  /// What the groups are sorted by, first. Those that are equal in that are in the order of the values that they are
  /// grouped by.
  public var sort: [GroupOrder]
  /// The maximum number of groups to return; nil for all. It doesn't matter for the memory that groups take.
  public var limit: Int?

  /// The maximum number of fields, and of aggregates, in JSON.
  public static let maxCount = 32

  /// Creates an aggregation. By default, it counts all documents.
  public init(
    by fields: [FieldPath] = [], computing aggregates: [Aggregate] = [.count], sort: [GroupOrder] = [],
    limit: Int? = nil
  ) {
    self.fields = fields
    self.aggregates = aggregates
    self.sort = sort
    self.limit = limit
  }

  /// The fields that decide about everything but the counts: a document stands for all that have the same single values
  /// in them. nil if there are none, because sums and averages need each document.
  package var decidingFields: [FieldPath]? {
    var paths = fields
    for aggregate in aggregates {
      switch aggregate {
      case .count: break
      case .min(let path), .max(let path): paths.append(path)
      case .sum, .average: return nil
      }
    }
    return paths
  }

  /// - Throws: `SelectorError` with the code `badAggregation` if groups are sorted by what they don't have, or the limit
  ///   is negative.
  func check() throws(SelectorError) {
    for (number, order) in sort.enumerated() where !order.isIn(self) {
      throw SelectorError(
        .badAggregation, at: .element(.member(.root, "sort"), number),
        "groups can be sorted only by members of by or compute, and this is in neither")
    }
    if let limit, limit < 0 {
      throw SelectorError(.badAggregation, at: .member(.root, "limit"), "a limit is a whole number from 0")
    }
  }
}

// MARK: JSON

extension DocumentAggregation {
  /// Reads an aggregation from JSON; see `DocumentAggregation` for its form.
  /// - Throws: `SelectorError` that names the place and the reason, with the code `badAggregation`, or `tooLarge` if
  ///   there are more than 32 fields or aggregates, or if the path of a field exceeds a limit.
  public init(json: JSONValue) throws(SelectorError) {
    guard case .object(let members) = json else {
      throw SelectorError(.badAggregation, at: .root, "an aggregation is an object")
    }
    self.init()
    for (name, value) in members {
      let place = JSONPath.member(.root, name)
      switch name {
      case "by":
        fields = []
        for (number, element) in try Self.elements(value, at: place).enumerated() {
          fields.append(try Self.path(element, at: .element(place, number)))
        }
      case "compute":
        aggregates = []
        for (number, element) in try Self.elements(value, at: place).enumerated() {
          aggregates.append(try Self.aggregate(element, at: .element(place, number)))
        }
      case "sort":
        for (number, element) in try Self.elements(value, at: place).enumerated() {
          sort.append(try GroupOrder(json: element, at: .element(place, number)))
        }
      case "limit":
        guard case .integer(let number) = value else {
          throw SelectorError(.badAggregation, at: place, "a limit is a whole number from 0")
        }
        limit = Int(number)
      default:
        throw SelectorError(.badAggregation, at: place, "an aggregation has the members by, compute, sort and limit")
      }
    }
    try check()
  }

  /// Reads an aggregation from JSON text in UTF-8, of up to 1 MiB.
  /// - Throws: `SelectorError` that names the place and the reason.
  public init(parsing text: Span<UInt8>) throws(SelectorError) {
    let json = try Selector.json(parsing: text, of: "an aggregation")
    try self.init(json: json)
  }

  /// Reads an aggregation from JSON text; see `init(parsing:)` for bytes.
  /// - Throws: `SelectorError` that names the place and the reason.
  public init(parsing text: String) throws(SelectorError) { try self.init(parsing: Array(text.utf8).span) }

  private static func elements(_ json: JSONValue, at place: JSONPath) throws(SelectorError) -> [JSONValue] {
    guard case .array(let elements) = json else {
      throw SelectorError(.badAggregation, at: place, "an array is needed here")
    }
    guard elements.count <= maxCount else {
      throw SelectorError(.tooLarge, at: place, "an aggregation has up to \(maxCount) fields and aggregates each")
    }
    return elements
  }

  private static func path(_ json: JSONValue, at place: JSONPath) throws(SelectorError) -> FieldPath {
    guard let path = json.string.flatMap({ text in FieldPath(text) }) else {
      throw SelectorError(.badAggregation, at: place, "a field is a path without empty names")
    }
    guard path.isWithinLimits else {
      throw SelectorError(
        .tooLarge, at: place,
        "a field's path has up to \(SelectorParser.maxNameCount) names and \(SelectorParser.maxPathByteCount) bytes")
    }
    return path
  }

  private static func aggregate(_ json: JSONValue, at place: JSONPath) throws(SelectorError) -> Aggregate {
    if json.string == Aggregate.countName { return .count }
    guard case .object(let object) = json, object.count == 1,
      let make = Aggregate.makers.first(where: { $0.name == object[0].name })?.make
    else {
      throw SelectorError(
        .badAggregation, at: place,
        "an aggregate is \"count\", or an object such as {\"sum\": PATH} with sum, avg, min or max")
    }
    return make(try path(object[0].value, at: .member(place, object[0].name)))
  }

  /// The aggregation as JSON. Reading it gives an equal aggregation, unless it exceeds a limit of JSON.
  public var json: JSONValue {
    var json: JSONObject = [
      "by": .array(fields.map { .string($0.description) }),
      "compute": .array(aggregates.map(\.json)),
    ]
    if !sort.isEmpty { json["sort"] = .array(sort.map(\.json)) }
    if let limit { json["limit"] = .integer(Int64(limit)) }
    return .object(json)
  }
}

extension DocumentAggregation: CustomStringConvertible {
  /// The aggregation as JSON text.
  public var description: String { json.description }
}

extension Aggregate {
  fileprivate static let countName = "count"

  /// The aggregates of a field, by their names in JSON.
  fileprivate static let makers: [(name: String, make: @Sendable (FieldPath) -> Aggregate)] = [
    ("sum", { .sum($0) }), ("avg", { .average($0) }), ("min", { .min($0) }), ("max", { .max($0) }),
  ]

  /// The aggregate as in an aggregation's JSON.
  fileprivate var json: JSONValue {
    func object(_ name: String, _ path: FieldPath) -> JSONValue { [name: .string(path.description)] }
    return switch self {
    case .count: .string(Self.countName)
    case .sum(let path): object("sum", path)
    case .average(let path): object("avg", path)
    case .min(let path): object("min", path)
    case .max(let path): object("max", path)
    }
  }
}

// MARK: Groups

extension DocumentGroup {
  /// Reads a group from JSON; see `json` for its form.
  /// - Returns: nil if it has another form.
  public init?(json: JSONValue) {
    guard let key = json["by"]?.array.flatMap(Self.values), let values = json["values"]?.array.flatMap(Self.values)
    else { return nil }
    self.init(key: key, values: values)
  }

  private static func values(_ elements: [JSONValue]) -> [JSONValue?]? {
    var values: [JSONValue?] = []
    for element in elements {
      guard let slot = element.array, slot.count <= 1 else { return nil }
      values.append(slot.first)
    }
    return values
  }

  /// The group as JSON, with each value in an array that is empty for a missing value:
  /// `{"by": [["cat"], []], "values": [[3], []]}`.
  public var json: JSONValue {
    func slots(_ values: [JSONValue?]) -> JSONValue { .array(values.map { .array($0.map { [$0] } ?? []) }) }
    return ["by": slots(key), "values": slots(values)]
  }
}
