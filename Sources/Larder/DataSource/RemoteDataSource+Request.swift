import DataSources
import Documents
import TypedQueries

/// What the server does for typed requests beyond finding values.
extension RemoteDataSource where T: Queryable {
  /// Returns what is computed from the values of a request. The server computes it, unless the request has a limit or an
  /// offset.
  /// - Throws: What `ServerRequest.query` and the calls of the source throw.
  public func fetch<Value>(_ aggregation: Aggregation<T, Value>) async throws -> Value {
    let (query, aggregate) = (try aggregation.request.query, try aggregation.aggregate)
    guard aggregation.request.isUnlimited else {
      let documents = try await call { store throws(LarderError) in try await store.find(query).result().documents }
      return try aggregation.value(documents.groups(by: [], computing: [aggregate]).first?.values.first ?? nil)
    }
    let groups = try await call { store throws(LarderError) in
      try await store.groups(of: query.selector, by: [], computing: [aggregate])
    }
    return try aggregation.value(groups.first?.values.first ?? nil)
  }

  /// Returns the number of values that a request asks for, which the server counts.
  /// - Throws: What `ServerRequest.query` and the calls of the source throw.
  public func count(of request: TypedQueries.Request<T>) async throws -> Int {
    let selector = try request.query.selector
    let count = try await call { store throws(LarderError) in try await store.count(selector) }
    return request.count(ofMatching: Int(clamping: count))
  }

  /// Changes fields of all values that a request asks for, in one step.
  /// - Returns: The number of values that were changed.
  /// - Throws: `FilterError` if the request has a limit or an offset; what the calls of the source throw.
  @discardableResult
  public func update(_ request: TypedQueries.Request<T>, _ changes: FieldChange<T>...) async throws -> Int {
    let (selector, update) = (try request.unlimitedSelector, try DocumentUpdate(changes))
    return Int(
      clamping: try await call { store throws(LarderError) in try await store.update(where: selector, update) }.changed)
  }

  /// Deletes the values that a request asks for: in one step, unless it has a limit or an offset.
  /// - Returns: The number of values.
  /// - Throws: What `ServerRequest.query` and the calls of the source throw.
  @discardableResult
  public func delete(_ request: TypedQueries.Request<T>) async throws -> Int {
    guard request.isUnlimited else { return try await deleteEach(request) }
    let selector = try request.query.selector
    return Int(
      clamping: try await call { store throws(LarderError) in try await store.delete(where: selector) }.changed)
  }
}
