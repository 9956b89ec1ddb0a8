import Synchronization

/// Documents in memory, and queries over them.
///
///     let people = DocumentCollection()
///     try people.put(["name": "mike", "age": 12, "pet": ["species": "cat"]], id: "mike12")
///     for document in try people.find(["age": ["$gt": 10]]) { … }
///
/// A collection can be used from any task. A query sees the documents of one point in time. It evaluates every
/// document; the definitions of indexes are kept, but change neither the result nor the speed of a query.
public final class DocumentCollection: Sendable {
  private struct State {
    /// The documents by the bytes of their ids: two ids can look the same and differ.
    var documents: [[UInt8]: Document] = [:]
    var revision: UInt64 = 0
    var indexes = DocumentIndexes()
  }

  private let state = Mutex(State())

  /// Creates an empty collection.
  public init() {}

  // MARK: Documents

  /// Puts a document, in place of the one with the same id if there is one.
  /// - Parameter text: The text of a JSON object. Members `_id` and `_rev` in it are not used.
  /// - Returns: The revision of the document, which is greater than that of any document put before.
  /// - Throws: `JSONError` if the text isn't a JSON object; nothing is put then.
  /// - Complexity: O(*n*) in the size of the text.
  @discardableResult
  public func put(_ text: String, id: String) throws(JSONError) -> UInt64 {
    try put(Document(text), id: id)
  }

  /// Puts a document, in place of the one with the same id if there is one; see `put(_:id:)` for text.
  /// - Throws: `JSONError` if the value isn't an object, or is nested more than 512 levels deep.
  @discardableResult
  public func put(_ json: JSONValue, id: String) throws(JSONError) -> UInt64 {
    try put(Document(json.encoded()), id: id)
  }

  private func put(_ document: Document, id: String) throws(JSONError) -> UInt64 {
    let text = try document.json()
    return state.withLock { state in
      state.revision += 1
      state.documents[Array(id.utf8)] = Document(text, id: id, revision: state.revision)
      return state.revision
    }
  }

  /// Deletes a document.
  /// - Returns: Whether there was one.
  @discardableResult
  public func delete(id: String) -> Bool {
    state.withLock { $0.documents.removeValue(forKey: Array(id.utf8)) != nil }
  }

  // MARK: Queries

  /// Returns the documents that a query finds.
  /// - Throws: `SelectorError` if the bookmark isn't one of this query, or the selector can't be evaluated.
  /// - Complexity: O(*n*) in the size of all documents, and O(*m* log *m*) in the number of those that match.
  public func find(_ query: DocumentQuery) throws(SelectorError) -> DocumentResult {
    let documents = state.withLock { $0.documents }
    return try documents.values.find(query)
  }

  /// Returns the documents that match a selector, in the order of their ids.
  /// - Throws: `SelectorError` if the selector can't be evaluated.
  public func find(_ selector: Selector) throws(SelectorError) -> [Document] {
    try find(DocumentQuery(selector)).documents
  }

  /// Returns the documents that match a selector in JSON, or a part of them.
  /// - Parameters:
  ///   - selector: The selector, such as `["age": ["$gt": 12]]`.
  ///   - skip: The number of matching documents to leave out at the start, from 0.
  ///   - limit: The maximum number of documents; 0 for all.
  ///   - fields: The paths of the fields to return; nil for whole documents.
  ///   - sort: The fields to sort by, such as `[["name": "asc"], ["age": "desc"]]`; nil for the order of the ids.
  /// - Throws: `SelectorError` that names the place in the query and the reason.
  public func find(
    _ selector: JSONValue, skip: Int = 0, limit: Int = 0, fields: [String]? = nil, sort: [JSONValue]? = nil
  ) throws(SelectorError) -> [Document] {
    let query: JSONValue = [
      "selector": selector, "skip": .integer(Int64(skip)), "limit": .integer(Int64(limit)),
      "fields": .array((fields ?? []).map(JSONValue.string)), "sort": .array(sort ?? []),
    ]
    return try find(DocumentQuery(query)).documents
  }

  // MARK: Indexes

  /// Defines an index, or confirms that it is defined in the same way.
  /// - Parameters:
  ///   - fields: The paths of the fields, in order. `_id` and `_rev` can be queried without being among them.
  ///   - name: The name of the index; nil for one that depends on the fields only.
  /// - Returns: The name of the index.
  /// - Throws: `DocumentIndexError`, in particular if an index of that name has other fields.
  @discardableResult
  public func ensureIndexed(
    _ fields: [String], withName name: String? = nil
  ) throws(DocumentIndexError) -> String {
    let index = try DocumentIndex(fields, name: name)
    try state.withLock { (state) throws(DocumentIndexError) in try state.indexes.ensure(index) }
    return index.name
  }

  /// Returns the indexes, in the order of their names.
  public func listIndexes() -> [DocumentIndex] { state.withLock { $0.indexes.sorted } }

  /// Deletes the definition of an index.
  /// - Returns: Whether there was one of that name.
  @discardableResult
  public func deleteIndex(named name: String) -> Bool { state.withLock { $0.indexes.delete(name) } }
}

/// The indexes of a collection.
private struct DocumentIndexes {
  private var indexes: [String: DocumentIndex] = [:]

  /// Adds an index, unless it exists.
  mutating func ensure(_ index: DocumentIndex) throws(DocumentIndexError) {
    guard let existing = indexes[index.name], existing != index else {
      indexes[index.name] = index
      return
    }
    throw DocumentIndexError(.otherDefinition, "another index of this name exists: \(existing)")
  }

  /// Returns whether there was an index of the name.
  mutating func delete(_ name: String) -> Bool { indexes.removeValue(forKey: name) != nil }

  var sorted: [DocumentIndex] { indexes.values.sorted { $0.name < $1.name } }
}
