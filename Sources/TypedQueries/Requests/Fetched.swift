import Documents

/// A document that a request has found: its key and revision, and its value, which is decoded when it is asked for.
public struct Fetched<T: Queryable>: Sendable {
  /// The document as it is stored.
  public let document: Document
  /// The key of the entry.
  public let id: String

  /// - Precondition: The document has an id.
  package init(_ document: Document) {
    guard let id = document.id else { preconditionFailure("What is found has an id.") }
    (self.document, self.id) = (document, id)
  }

  /// The revision of the entry; nil for what a transaction has written itself.
  public var revision: UInt64? { document.revision }

  /// Returns the value. The type sees the members of the document, and `_id` and `_rev`.
  /// - Throws: The errors of the decoder.
  public func decode() throws -> T { try DocumentCoding(of: T.self).value(in: document.json()) }
}

extension Request {
  /// Returns the query for one field of the documents.
  /// - Throws: As `query`, and `FilterError` if the key path is no field.
  package func query<Value>(for field: KeyPath<T, Value>) throws -> (query: DocumentQuery, field: FieldPath) {
    let path = try FieldResolver.comparedPath(of: field)
    var query = try query
    query.fields = [path]
    return (query, path)
  }

  /// Returns the field of a document that was found with `query(for:)`.
  /// - Throws: The errors of the decoder, for a missing field too, unless its type is optional.
  package func value<Value: Decodable>(_ type: Value.Type, at path: FieldPath, of document: Document) throws -> Value {
    let json = path.names.reduce(try document.value() as JSONValue?) { $0?[$1] }
    return try DocumentCoding(of: T.self).value(of: json)
  }
}
