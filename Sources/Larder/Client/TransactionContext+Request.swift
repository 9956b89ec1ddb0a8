import DataSources
import Documents
import TypedQueries

/// Typed requests in a transaction. They see the context's own writes, and note what they find, as `find(_:)` does.
///
///     let names = try await people.perform { context in
///       let old = try await context.fetch(Person.all.where(\Person.age > 100).sort(\.name))
///       for person in old { try context.update(person) { $0.isRetired = true } }
///       return try old.map { try $0.decode().name }
///     }
///
/// Besides the errors of `find(_:)`, these calls throw what `ServerRequest.query` throws, before anything is sent, and the
/// errors of the type's coder. A type sees the members of a document, and `_id` and `_rev`.
extension TransactionContext {
  // MARK: Reading

  /// Returns the documents that a request asks for.
  public func fetch<T>(_ request: TypedQueries.Request<T>) async throws -> [Fetched<T>] {
    try await find(request.query).map { Fetched($0) }
  }

  /// Returns one field of the documents that a request asks for.
  public func fetch<T, Value: Decodable>(
    _ request: TypedQueries.Request<T>, _ field: KeyPath<T, Value>
  ) async throws -> [Value] {
    let (query, path) = try request.query(for: field)
    return try await find(query).map { try request.value(Value.self, at: path, of: $0) }
  }

  /// Returns the first document that a request asks for; nil if there is none.
  public func fetchOne<T>(_ request: TypedQueries.Request<T>) async throws -> Fetched<T>? {
    var query = try request.query
    query.limit = min(query.limit ?? 1, 1)
    return try await find(query).first.map { Fetched($0) }
  }

  /// Returns the number of documents that a request asks for. Notes each of them, so that their keys are sent.
  public func count<T>(of request: TypedQueries.Request<T>) async throws -> Int {
    var query = try request.query
    query.fields = ["_id"]
    return try await find(query).count
  }

  /// Returns the document of an id; nil if there is none.
  public func find<T: Queryable>(_ type: T.Type, id: some StableKey) async throws -> Fetched<T>? {
    try await document(id.stableKey).map { Fetched($0) }
  }

  // MARK: Writing

  /// Writes a value under its id, which must have no entry.
  /// - Throws: `conditionFailed` if it has one, which isn't a conflict.
  public func insert<T: Queryable & Identifiable>(
    _ value: T, expiresIn: Duration? = nil
  ) async throws where T.ID: StableKey {
    try await insert(value.id.stableKey, value, expiresIn: expiresIn)
  }

  /// Changes the value of a document that was fetched and writes it. If the context has written the document already,
  /// the change is made to what it has written.
  ///
  /// The whole document is replaced, so that members that the type does not encode are lost; `WriteBatch.merge` changes
  /// single ones. The entry no longer expires, unless a time until then is passed.
  /// - Parameter document: A document of this store, also one that was fetched before. Its revision is noted, so that
  ///   the transaction fails if others have written the document since.
  /// - Throws: Also the errors of a conflict; `notFound` if the context has deleted the document; `illegalArgument` if
  ///   the document is what another transaction has written, which has no revision; and what the closure throws.
  public func update<T>(
    _ document: Fetched<T>, expiresIn: Duration? = nil, _ body: (inout T) throws -> Void
  ) throws {
    try noteFetched(document.document, document.id)
    var value = try Fetched<T>(pendingDocument(document.id) ?? document.document).decode()
    try body(&value)
    try put(document.id, value, expiresIn: expiresIn)
  }

  /// Deletes a document that was fetched. Its revision is noted as in `update`.
  /// - Throws: As `update`, except that deleting it twice succeeds.
  public func delete<T>(_ document: Fetched<T>) throws(LarderError) {
    try noteFetched(document.document, document.id)
    delete(document.id)
  }

  /// Deletes the documents that a request asks for.
  /// - Returns: The number of documents.
  @discardableResult
  public func delete<T>(_ request: TypedQueries.Request<T>) async throws -> Int {
    var query = try request.query
    query.fields = ["_id"]
    let documents = try await find(query)
    for document in documents { if let id = document.id { delete(id) } }
    return documents.count
  }
}
