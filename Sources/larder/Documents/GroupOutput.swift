import Documents

/// What `larder find --group-by` prints: for each group its values of the fields, and what was computed.
struct GroupOutput {
  /// The name of the member that has the values of the fields. No computed value has this name.
  private static let fieldsName = "by"

  private let fields: [String]
  private let aggregates: [String]

  init(_ fields: [FieldPath], _ aggregates: [Aggregate]) {
    self.fields = fields.map(\.description)
    self.aggregates = aggregates.map(\.name)
  }

  /// Returns a group as an object, without what is missing: `{"by":{"pet.species":"cat"},"count":2}`.
  func json(_ group: DocumentGroup) -> JSONValue {
    var values = JSONObject()
    values[Self.fieldsName] = .object(Self.object(fields, group.key))
    for (name, value) in Self.object(aggregates, group.values) { values[name] = value }
    return .object(values)
  }

  private static func object(_ names: [String], _ values: [JSONValue?]) -> JSONObject {
    var object = JSONObject()
    for (name, value) in zip(names, values) where value != nil { object[name] = value }
    return object
  }

  /// An empty table.
  var table: Table { Table(header: fields + aggregates) }

  /// Returns a group as a row of the table, with empty cells for what is missing.
  func row(_ group: DocumentGroup) -> [String] {
    (group.key + group.values).map { $0?.cell ?? "" }
  }
}
