import Documents

/// A query for the single values that match a selector, as documents.
///
///     try await people.getAll(SelectorQuery(.field("age", .greater(12)), sort: [.descending("age")], limit: 20))
///
/// In a key-value source, a single value is a document if its JSON is an object; other values, and lists, match
/// nothing. `Data`, `[UInt8]` and `String` are JSON text themselves. A source that keeps JSON looks at the stored
/// bytes, and any other source at what the type's encoder makes of the value: that of ``CustomJSONCoding``, or else a
/// plain `JSONEncoder`. The selector sees the key as `_id` and, where the source has one, the revision as `_rev`.
///
/// `getAll` returns all matches, in the order of the query, and `get` the first one. The source reads all of its
/// entries for that; with a remote source, the server does, and with one over SQLite, the database. A query that can't be
/// evaluated, or that asks for fields instead of whole values, is an `illegalArgument`. A source of values without JSON
/// throws `queryNotSupported`. So does every source in all other operations: in particular, `delete` can't find and
/// remove values in one step.
public struct SelectorQuery: Query {
  /// What to find.
  public let query: DocumentQuery

  /// - Parameter query: A query without fields.
  public init(_ query: DocumentQuery) {
    self.query = query
  }

  /// - Parameters:
  ///   - selector: Which values match.
  ///   - sort: The order of the result; by default that of the keys' bytes.
  ///   - skip: The number of matches to leave out at the start.
  ///   - limit: The maximum number of values to return; nil for all.
  public init(_ selector: Selector, sort: [SortField] = [], skip: Int = 0, limit: Int? = nil) {
    self.init(DocumentQuery(selector, sort: sort, skip: skip, limit: limit))
  }

  public var keyValueAddress: KeyValueAddress { .documents(self) }
}

extension SelectorQuery: Hashable {
  public func hash(into hasher: inout Hasher) {
    // Equal selectors may have different texts, such as 1 and 1.0.
    hasher.combine(query.skip)
    hasher.combine(query.limit)
    hasher.combine(query.fields)
    hasher.combine(query.sort.map(\.path))
  }
}
