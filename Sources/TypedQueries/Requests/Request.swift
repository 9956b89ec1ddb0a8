import Documents

/// What to fetch: a filter, and the order and the part of the result.
///
///     let request = Person.all.where(\Person.age >= 18).sort(\.name).limit(20)
///
/// A request is a value that holds no key paths: it can be sent, stored as JSON and printed. What can't be lowered is an
/// error where the request is used.
public struct Request<T: Queryable>: Sendable {
  private var filter: Filter<T>?
  private var sort: [Result<SortField, FilterError>] = []
  private var limit: Int?
  private var offset = 0

  /// Creates the request for all documents; `T.all` is the same.
  public init() {}

  // MARK: Filters

  /// Returns the request for the documents that match the filters so far and another one.
  public func `where`(_ filter: Filter<T>) -> Request {
    var request = self
    request.filter = self.filter.map { $0 && filter } ?? filter
    return request
  }

  /// Returns the request for the documents that match a raw predicate, too; see `Filter.init(raw:_:)`.
  public func `where`(raw text: String, _ arguments: any Encodable...) -> Request {
    self.where(Filter(raw: text, arguments: arguments))
  }

  /// Returns the request with a filter in place of the filters so far.
  public func replacingWhere(_ filter: Filter<T>) -> Request {
    var request = self
    request.filter = filter
    return request
  }

  // MARK: Order

  /// Returns the request sorted by a field, after the fields so far.
  ///
  /// The order is that of the encoded values, which `Comparable` needn't be: an enum with strings for raw values is
  /// ordered by these. Fields without a value come first in ascending order. Strings are ordered by their UTF-8.
  public func sort<Value: Comparable>(_ field: KeyPath<T, Value>, ascending: Bool = true) -> Request {
    sorted(by: field, ascending)
  }

  /// Returns the request sorted by an optional field, after the fields so far.
  public func sort<Value: Comparable>(_ field: KeyPath<T, Value?>, ascending: Bool = true) -> Request {
    sorted(by: field, ascending)
  }

  /// Returns the request sorted by the raw value of a field, after the fields so far.
  @_disfavoredOverload
  public func sort<Value: RawRepresentable>(_ field: KeyPath<T, Value>, ascending: Bool = true) -> Request
  where Value.RawValue: Comparable {
    sorted(by: field, ascending)
  }

  /// Returns the request sorted by the raw value of an optional field, after the fields so far.
  @_disfavoredOverload
  public func sort<Value: RawRepresentable>(_ field: KeyPath<T, Value?>, ascending: Bool = true) -> Request
  where Value.RawValue: Comparable {
    sorted(by: field, ascending)
  }

  private func sorted(by field: KeyPath<T, some Any>, _ ascending: Bool) -> Request {
    var request = self
    request.sort.append(
      Result { () throws(FilterError) in
        SortField(try FieldResolver.comparedPath(of: field), ascending ? .ascending : .descending)
      })
    return request
  }

  // MARK: Part

  /// Returns the request for up to a number of documents. With 0, there are none.
  public func limit(_ count: Int) -> Request {
    var request = self
    request.limit = count
    return request
  }

  /// Returns the request without the first documents. An offset past the end leaves none.
  public func offset(_ count: Int) -> Request {
    var request = self
    request.offset = count
    return request
  }

  // MARK: Lowering

  /// The query that the request is lowered to. A limit of 0 is one of no documents.
  /// - Throws: `FilterError` or `PredicateSyntaxError` if a part of the request can't be lowered, or if the limit or the
  ///   offset is negative.
  public var query: DocumentQuery {
    get throws {
      guard offset >= 0, limit ?? 0 >= 0 else {
        throw FilterError(.badRequest, "limit and offset of a request must not be negative")
      }
      return DocumentQuery(
        try filter?.selector ?? .all, sort: try sort.map { field throws(FilterError) in try field.get() },
        skip: offset, limit: limit)
    }
  }

  /// The selector of a request for all documents that match.
  /// - Throws: As `query`, and if the request has a limit or an offset.
  package var unlimitedSelector: Selector {
    get throws {
      guard isUnlimited else {
        throw FilterError(.badRequest, "a request for this call must not have a limit or an offset")
      }
      return try query.selector
    }
  }

  /// The selector of a request for all documents that match, in no order of its own.
  /// - Throws: As `query`, and if the request has an order, a limit or an offset.
  package var unorderedSelector: Selector {
    get throws {
      guard sort.isEmpty else { throw FilterError(.badRequest, "a request for this call must not be sorted") }
      return try unlimitedSelector
    }
  }

  /// Returns how many documents of a number of matching ones the request is for.
  /// - Precondition: Neither limit nor offset is negative.
  package func count(ofMatching count: Int) -> Int { Swift.min(Swift.max(0, count - offset), limit ?? .max) }

  /// Whether the request is for all documents that match.
  package var isUnlimited: Bool { limit == nil && offset == 0 }
}

// MARK: - Printing and coding

extension Request: CustomStringConvertible {
  /// The request with the JSON of its parts: `Person.all.where({"age":{"$gt":3}}).sort(name asc).limit(5)`.
  public var description: String {
    var text = "\(T.self).all"
    if let filter { text += ".where(\(filter))" }
    for field in sort {
      switch field {
      case .success(let field): text += ".sort(\(field))"
      case .failure(let error): text += ".sort(<\(error)>)"
      }
    }
    if let limit { text += ".limit(\(limit))" }
    if offset != 0 { text += ".offset(\(offset))" }
    return text
  }
}

extension Request: Codable {
  private enum CodingKeys: String, CodingKey {
    case filter = "where"
    case sort, limit, offset
  }

  /// Decodes a request from its JSON: `{"where": SELECTOR, "sort": [{"name": "asc"}], "limit": 20, "offset": 40}`. All
  /// members are optional.
  public init(from decoder: any Decoder) throws {
    let container = try decoder.container(keyedBy: CodingKeys.self)
    filter = try container.decodeIfPresent(Filter<T>.self, forKey: .filter)
    if let json = try container.decodeIfPresent(JSONValue.self, forKey: .sort) {
      sort = try SortField.fields(json, at: "$.sort").map { .success($0) }
    }
    limit = try container.decodeIfPresent(Int.self, forKey: .limit)
    offset = try container.decodeIfPresent(Int.self, forKey: .offset) ?? 0
  }

  /// Encodes the request as its JSON.
  /// - Throws: As `query`; errors of the encoder.
  public func encode(to encoder: any Encoder) throws {
    let query = try query
    var container = encoder.container(keyedBy: CodingKeys.self)
    try container.encodeIfPresent(filter, forKey: .filter)
    if !query.sort.isEmpty { try container.encode(JSONValue.array(query.sort.map(\.json)), forKey: .sort) }
    try container.encodeIfPresent(limit, forKey: .limit)
    if offset != 0 { try container.encode(offset, forKey: .offset) }
  }
}
