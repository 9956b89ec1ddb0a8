import Documents

/// Running requests over values in memory, as the documents that they are encoded as: with the results that a server
/// would have. Values that the order of a request leaves equal keep their order.
extension Sequence where Element: Queryable {
  /// Returns the values that a request asks for.
  /// - Throws: As `Request.query`; errors of the encoder.
  /// - Complexity: O(*n*) to encode *n* values, and O(*m* log *m*) comparisons for *m* that match.
  public func fetch(_ request: Request<Element>) throws -> [Element] {
    let coding = DocumentCoding(of: Element.self)
    return try find(try request.query) { try coding.bytes(of: $0) }
  }

  /// Returns a field of the values that a request asks for.
  /// - Throws: As `fetch(_:)`.
  public func fetch<Value>(_ request: Request<Element>, _ field: KeyPath<Element, Value>) throws -> [Value] {
    try fetch(request).map { $0[keyPath: field] }
  }

  /// Returns the first value that a request asks for; nil if there is none.
  /// - Throws: As `fetch(_:)`.
  public func fetchOne(_ request: Request<Element>) throws -> Element? {
    try fetch(request.count(ofMatching: .max) > 1 ? request.limit(1) : request).first
  }

  /// Returns what is computed from the values of a request.
  /// - Throws: As `fetch(_:)`; errors of the decoder.
  public func fetch<Value>(_ aggregation: Aggregation<Element, Value>) throws -> Value {
    let coding = DocumentCoding(of: Element.self)
    let documents = try fetch(aggregation.request).map { Document(try coding.bytes(of: $0)) }
    let groups = try documents.groups(by: [], computing: [try aggregation.aggregate])
    return try aggregation.value(groups.first?.values.first ?? nil)
  }

  /// Returns the number of values that a request asks for.
  /// - Throws: As `fetch(_:)`.
  public func count(of request: Request<Element>) throws -> Int { try fetch(request).count }

  /// Returns the first value with an id; nil if there is none.
  public func find(id: Element.ID) -> Element? where Element: Identifiable { first { $0.id == id } }
}
