import DataSources
import Documents

/// Running requests over any source of values. A remote source has its server find the values; other sources read all
/// of theirs.
extension GetDataSource where T: Queryable {
  /// Returns the values that a request asks for.
  /// - Throws: As `Request.query`; `DataSourceError` as `getAll` with a `SelectorQuery` does.
  public func fetch(_ request: Request<T>) async throws -> [T] {
    try await getAll(SelectorQuery(try request.query))
  }

  /// Returns a field of the values that a request asks for.
  /// - Throws: As `fetch(_:)`.
  public func fetch<Value>(_ request: Request<T>, _ field: KeyPath<T, Value>) async throws -> [Value] {
    try await fetch(request).map { $0[keyPath: field] }
  }

  /// Returns the first value that a request asks for; nil if there is none.
  /// - Throws: As `fetch(_:)`.
  public func fetchOne(_ request: Request<T>) async throws -> T? {
    let query = try request.query
    do { return try await get(SelectorQuery(query)) } catch DataSourceError.notFound { return nil }
  }

  /// Returns what is computed from the values of a request.
  /// - Throws: As `fetch(_:)`; errors of the decoder.
  public func fetch<Value>(_ aggregation: Aggregation<T, Value>) async throws -> Value {
    let aggregate = try aggregation.aggregate
    let coding = DocumentCoding(of: T.self)
    let documents = try await fetch(aggregation.request).map { Document(try coding.bytes(of: $0)) }
    return try aggregation.value(documents.groups(by: [], computing: [aggregate]).first?.values.first ?? nil)
  }

  /// Returns the number of values that a request asks for.
  /// - Throws: As `fetch(_:)`.
  public func count(of request: Request<T>) async throws -> Int { try await fetch(request).count }

  /// Returns the value of an id; nil if there is none.
  /// - Throws: `DataSourceError` as `get` does.
  public func find(id: some StableKey) async throws -> T? {
    do { return try await get(id) } catch DataSourceError.notFound { return nil }
  }
}

extension KeyValueDataSource where T: Queryable {
  /// Changes the values that a request asks for, one after the other. Others can write in between.
  /// - Returns: The number of values.
  /// - Throws: As `fetch(_:)`; the errors of `body`, and of the source. What was changed before stays changed.
  @discardableResult
  public func update(_ request: Request<T>, _ body: (inout T) throws -> Void) async throws -> Int {
    let entries = try await entries(matching: try request.query)
    for entry in entries {
      guard case .single(var value) = entry.value else { continue }
      try body(&value)
      try await store([KeyValueEntry(key: entry.key, value: .single(value))])
    }
    return entries.count
  }

  /// Deletes the values that a request asks for. Others can write between finding and deleting them.
  /// - Returns: The number of values.
  /// - Throws: As `fetch(_:)`.
  @discardableResult
  public func delete(_ request: Request<T>) async throws -> Int { try await deleteEach(request) }

  /// Does what `delete` does in a source that can't find and delete values in one step.
  package func deleteEach(_ request: Request<T>) async throws -> Int {
    let keys = try await entries(matching: try request.query).map(\.key)
    if !keys.isEmpty { try await remove(keys) }
    return keys.count
  }
}
