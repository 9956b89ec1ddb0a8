import Documents
import Wire

/// A request about documents, as Larder and PostgreSQL get it.
///
/// Collection A has small documents such as
/// `{"name":"name 17","age":34,"docNumber":5,"pet":"cat","city":"city 803"}`, and B has orders of 1 KiB.
enum DocumentRequest: String, CaseIterable, Sendable {
  case get = "A: get by key"
  case point = "A: find 1 by an indexed field"
  case pageOfMatches = "A: find 20 of 100 by an indexed field, sorted by another field"
  case allMatches = "A: find all 100 by an indexed field"
  case firstInOrder = "A: find the first 20 in the order of an index"
  case countByScan = "A: count by a comparison, without an index"
  case countByTwoFields = "A: count by two fields, without an index"
  case countOrdersByScan = "B: count by a comparison, without an index"
  case sortByScan = "A: find the first 20 of all, sorted without an index"
  case groupByPet = "A: count each of 4 values, without an index"
  case groupByCity = "A: count each of 1,000 values, without an index"
  case groupOrders = "B: sum for each pair of two fields' values"
  case distinct = "B: distinct values of a nested field"
  case fieldsOfOrders = "B: find three fields of 20 by an indexed field"
  case updateOne = "A: update 1 by an indexed field"
  case updateMany = "A: update 100 by an indexed field"
  case put = "A: put a document under 4 indexes"

  /// The requests that are measured on memory stores, or on durable ones.
  static func cases(isDurable: Bool) -> [DocumentRequest] { isDurable ? [.updateOne, .updateMany, .put] : allCases }

  func name(isDurable: Bool) -> String { isDurable ? "\(rawValue), durably" : rawValue }

  /// The indexes of A and B.
  static let personIndexes = [["name"], ["age", "docNumber"], ["docNumber"], ["docNumber", "pet"]]
  static let orderIndexes = [["customer.name"]]

  var isOnOrders: Bool {
    switch self {
    case .countOrdersByScan, .groupOrders, .distinct, .fieldsOfOrders: true
    default: false
    }
  }

  /// The maximum of Larder ÷ PostgreSQL that is the goal for the latency; nil for none.
  var goal: Double? {
    switch self {
    case .pageOfMatches: 1
    case .countByScan, .countByTwoFields, .countOrdersByScan: 0.8
    case .groupByPet, .groupByCity, .groupOrders, .distinct, .updateOne, .updateMany: 0.7
    case .fieldsOfOrders: 0.5
    default: nil
    }
  }

  // MARK: PostgreSQL

  /// A statement on the tables `persons` and `orders`, which have the columns `id` and `doc`.
  var sql: String {
    switch self {
    case .get: "SELECT doc FROM persons WHERE id = $1"
    case .point: "SELECT doc FROM persons WHERE doc->'docNumber' = $1::jsonb"
    case .pageOfMatches: "SELECT doc FROM persons WHERE doc->'name' = $1::jsonb ORDER BY doc->'age', id LIMIT 20"
    case .allMatches: "SELECT doc FROM persons WHERE doc->'name' = $1::jsonb"
    case .firstInOrder: "SELECT doc FROM persons ORDER BY doc->'age', doc->'docNumber' LIMIT 20"
    case .countByScan: "SELECT count(*) FROM persons WHERE doc->'pet' > '\"cat\"'::jsonb"
    case .countByTwoFields:
      "SELECT count(*) FROM persons WHERE doc->'pet' = '\"cat\"'::jsonb AND doc->'city' > '\"city 5\"'::jsonb"
    case .countOrdersByScan: "SELECT count(*) FROM orders WHERE doc->'total' > '250'::jsonb"
    case .sortByScan: "SELECT doc FROM persons ORDER BY doc->'city', id LIMIT 20"
    case .groupByPet: "SELECT doc->'pet', count(*) FROM persons GROUP BY 1"
    case .groupByCity: "SELECT doc->'city', count(*) FROM persons GROUP BY 1"
    case .groupOrders:
      """
      SELECT doc#>'{customer,address,city}', doc->'paid', sum((doc->>'total')::float8) FROM orders GROUP BY 1, 2
      """
    case .distinct: "SELECT DISTINCT doc#>'{customer,address,city}' FROM orders"
    case .fieldsOfOrders:
      """
      SELECT doc->'id', doc#>'{customer,address,city}', doc->'total' FROM orders \
      WHERE doc#>'{customer,name}' = $1::jsonb LIMIT 20
      """
    case .updateOne:
      """
      UPDATE persons SET doc = jsonb_set(doc, '{visits}', to_jsonb(coalesce((doc->>'visits')::int, 0) + 1)) \
      WHERE doc->'docNumber' = $1::jsonb
      """
    case .updateMany:
      """
      UPDATE persons SET doc = jsonb_set(doc, '{visits}', to_jsonb(coalesce((doc->>'visits')::int, 0) + 1)) \
      WHERE doc->'name' = $1::jsonb
      """
    case .put: "INSERT INTO persons VALUES ($1, $2::jsonb) ON CONFLICT (id) DO UPDATE SET doc = excluded.doc"
    }
  }

  /// The parameters of the statement.
  func parameters(_ values: DocumentRequestValues) -> [String] {
    switch self {
    case .get: [values.key]
    case .point, .updateOne: ["\(values.number)"]
    case .pageOfMatches, .allMatches, .updateMany: ["\"\(values.name)\""]
    case .fieldsOfOrders: ["\"\(values.customer)\""]
    case .put: [values.key, values.person]
    default: []
    }
  }

  // MARK: Larder

  /// Returns the request to Larder.
  func request(_ values: DocumentRequestValues, to connection: borrowing DocumentConnection) -> [UInt8] {
    let nameSelector = #"{"name":"\#(values.name)"}"#
    return switch self {
    case .get: connection.request(.get) { $0.append(values.key) }
    case .point: connection.find(#"{"docNumber":\#(values.number)}"#)
    case .pageOfMatches: connection.find(nameSelector, sort: #"["age"]"#, limit: 20)
    case .allMatches: connection.find(nameSelector)
    case .firstInOrder: connection.find("{}", sort: #"["age","docNumber"]"#, limit: 20)
    case .countByScan: connection.find(#"{"pet":{"$gt":"cat"}}"#, countOnly: true)
    case .countByTwoFields: connection.find(#"{"pet":"cat","city":{"$gt":"city 5"}}"#, countOnly: true)
    case .countOrdersByScan: connection.find(#"{"total":{"$gt":250}}"#, countOnly: true)
    case .sortByScan: connection.find("{}", sort: #"["city"]"#, limit: 20)
    case .groupByPet: connection.aggregate(#"{"by":["pet"]}"#)
    case .groupByCity: connection.aggregate(#"{"by":["city"]}"#)
    case .groupOrders: connection.aggregate(#"{"by":["customer.address.city","paid"],"compute":[{"sum":"total"}]}"#)
    case .distinct: connection.aggregate(#"{"by":["customer.address.city"],"compute":[]}"#)
    case .fieldsOfOrders:
      connection.find(
        #"{"customer.name":"\#(values.customer)"}"#, fields: #"["id","customer.address.city","total"]"#, limit: 20)
    case .updateOne: connection.update(#"{"docNumber":\#(values.number)}"#, #"{"$inc":{"visits":1}}"#)
    case .updateMany: connection.update(nameSelector, #"{"$inc":{"visits":1}}"#)
    case .put:
      connection.request(.put) { body in
        let (key, text) = (Array(values.key.utf8), Array(values.person.utf8))
        unsafe body.appendWrite(kind: .single, key: key.span.bytes, value: text.span.bytes)
      }
    }
  }

  /// Whether the reply is a number of documents.
  var isCount: Bool { self == .countByScan || self == .countByTwoFields || self == .countOrdersByScan }
}

/// The values in a request.
struct DocumentRequestValues {
  let key: String
  let number: Int
  let name: String
  let customer: String
  /// A document of A with the key.
  let person: String
}

extension DocumentConnection {
  fileprivate func find(
    _ selector: String, sort: String = "", fields: String = "", limit: UInt32? = nil, countOnly: Bool = false
  ) -> [UInt8] {
    let (selector, sort, fields) = (Array(selector.utf8), Array(sort.utf8), Array(fields.utf8))
    let none = [UInt8]()
    return request(.find) { body in
      unsafe body.appendFind(
        countOnly: countOnly, limit: limit, skip: 0, selector: selector.span.bytes, sort: sort.span.bytes,
        fields: fields.span.bytes, bookmark: none.span.bytes)
    }
  }

  fileprivate func aggregate(_ aggregation: String) -> [UInt8] {
    let (selector, aggregation) = ([UInt8](), Array(aggregation.utf8))
    return request(.aggregate) { body in
      unsafe body.appendAggregate(selector: selector.span.bytes, aggregation: aggregation.span.bytes)
    }
  }

  fileprivate func update(_ selector: String, _ update: String) -> [UInt8] {
    let (selector, update) = (Array(selector.utf8), Array(update.utf8))
    return request(.changeMatching) { body in
      unsafe body.appendChangeMatching(selector: selector.span.bytes, update: update.span.bytes)
    }
  }
}
