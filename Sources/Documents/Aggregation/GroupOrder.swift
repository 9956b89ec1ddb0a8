/// What groups are sorted by, in one direction: a field that they are grouped by, or an aggregate.
///
/// In JSON, it is an object of one member, whose value is `"asc"` or `"desc"`. Its name is `count`, or the name and the
/// path of another aggregate with a colon between them, or `by` and the path of a field: `{"sum:age": "desc"}`,
/// `{"by:pet.species": "asc"}`.
public struct GroupOrder: Equatable, Sendable {
  /// A value of a group.
  public enum Value: Equatable, Sendable {
    /// The value of a field that documents are grouped by.
    case field(FieldPath)
    /// One of the aggregates that are computed.
    case aggregate(Aggregate)
  }

  public let value: Value
  public let direction: SortField.Direction

  public init(_ value: Value, _ direction: SortField.Direction) {
    self.value = value
    self.direction = direction
  }

  /// The least aggregates first. Groups in which the value is missing come first.
  public static func ascending(_ aggregate: Aggregate) -> Self { Self(.aggregate(aggregate), .ascending) }

  /// The greatest aggregates first. Groups in which the value is missing come last.
  public static func descending(_ aggregate: Aggregate) -> Self { Self(.aggregate(aggregate), .descending) }

  private static let fieldPrefix = "by"

  /// The name in JSON.
  private var name: String {
    switch value {
    case .field(let path): "\(Self.fieldPrefix):\(path)"
    case .aggregate(let aggregate): aggregate.name
    }
  }

  /// Creates an order from the name of its value in JSON; nil for another name.
  package init?(_ name: String, _ direction: SortField.Direction) {
    let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    if parts.count == 2, parts[0] == Self.fieldPrefix {
      guard let path = FieldPath(String(parts[1])) else { return nil }
      self.init(.field(path), direction)
    } else {
      guard let aggregate = Aggregate(name: name) else { return nil }
      self.init(.aggregate(aggregate), direction)
    }
  }

  init(json: JSONValue, at place: JSONPath) throws(SelectorError) {
    guard case .object(let object) = json, object.count == 1,
      let direction = object[0].value.string.flatMap(SortField.Direction.init),
      let order = Self(object[0].name, direction)
    else {
      throw SelectorError(
        .badAggregation, at: place,
        "a group is sorted by an object such as {\"count\": \"desc\"}, {\"sum:PATH\": \"asc\"} or {\"by:PATH\": \"asc\"}"
      )
    }
    self = order
  }

  var json: JSONValue { [name: .string(direction.rawValue)] }

  // MARK: Sorting

  /// Returns where a value is among those of a group: the number of the field, or the number of the aggregate.
  private func position(in aggregation: DocumentAggregation) -> (isField: Bool, index: Int)? {
    switch value {
    case .field(let path): aggregation.fields.firstIndex(of: path).map { (true, $0) }
    case .aggregate(let aggregate): aggregation.aggregates.firstIndex(of: aggregate).map { (false, $0) }
    }
  }

  /// Whether an aggregation has the value.
  func isIn(_ aggregation: DocumentAggregation) -> Bool { position(in: aggregation) != nil }

  /// Returns the key by which a group is sorted in several orders, the first one being the most important.
  static func key(
    of group: DocumentGroup, _ orders: [GroupOrder], in aggregation: DocumentAggregation
  ) -> [UInt8] {
    var key: [UInt8] = []
    for order in orders {
      guard let (isField, index) = order.position(in: aggregation) else { continue }
      let start = key.count
      if let value = isField ? group.key[index] : group.values[index] {
        OrderKey.append(value, to: &key)
      } else {
        OrderKey.appendMissing(to: &key)
      }
      if order.direction == .descending { OrderKey.complement(&key, from: start) }
    }
    return key
  }
}

extension Aggregate {
  /// The name of the aggregate with its path, such as `count` or `sum:age`.
  package var name: String {
    switch self {
    case .count: "count"
    case .sum(let path): "sum:\(path)"
    case .average(let path): "avg:\(path)"
    case .min(let path): "min:\(path)"
    case .max(let path): "max:\(path)"
    }
  }

  /// Creates an aggregate from its name; nil for another name.
  package init?(name: String) {
    let parts = name.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
    let path = parts.count == 2 ? FieldPath(String(parts[1])) : nil
    switch (parts[0], path) {
    case ("count", nil) where parts.count == 1: self = .count
    case ("sum", let path?): self = .sum(path)
    case ("avg", let path?): self = .average(path)
    case ("min", let path?): self = .min(path)
    case ("max", let path?): self = .max(path)
    default: return nil
    }
  }
}
