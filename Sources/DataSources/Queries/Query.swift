/// A request to a data source: a value that holds every parameter of the request and doesn't name a source.
///
/// Any `Sendable` type can be a query. Key-value sources understand it as soon as it is a `KeyQuery`:
///
/// ```swift
/// struct SearchQuery: Query {
///   let text: String
/// }
/// extension SearchQuery: KeyQuery {
///   var key: String { "search:" + text }
/// }
/// ```
public protocol Query: Sendable {
  /// What the query means to a key-value source. The default is right for most queries: a `KeyQuery` addresses its key,
  /// and any other query addresses nothing.
  var keyValueAddress: KeyValueAddress { get }
}

extension Query {
  // Another module may declare the conformance to KeyQuery: only a dynamic cast finds it.
  public var keyValueAddress: KeyValueAddress {
    if let query = self as? any KeyQuery { .key(query.key) } else { .nothing }
  }
}

/// A query that addresses one key of a key-value source.
///
/// Two queries with the same key are interchangeable. Keys are literal: no character has a special meaning, case
/// matters, and keys are equal if their UTF-8 bytes are. Key-value sources accept keys of 1 to 4,096 bytes.
public protocol KeyQuery: Query {
  /// The key, which must be the same in every process.
  var key: String { get }
}

extension KeyQuery {
  public var keyValueAddress: KeyValueAddress { .key(key) }
}

/// What a query means to a key-value source.
public enum KeyValueAddress: Hashable, Sendable {
  /// Nothing: the source doesn't support the query.
  case nothing
  /// One key.
  case key(String)
  /// Several keys in order. Each one corresponds to one element of a list.
  case keys([String], missing: MissingIds)
  /// Every entry; or this key, in operations on one value or list.
  case all(key: String)
  /// At most `limit` entries from a position on, in the order of their keys' bytes.
  case offset(Int, limit: Int)
  /// At most `limit` entries whose keys come after this key and begin with the prefix; nil starts at the first entry.
  case after(String?, limit: Int, prefix: String = "")
  /// Every entry whose key begins with this prefix.
  case prefix(String)
  /// The single values that a query about documents finds.
  case documents(SelectorQuery)
}

/// What `getAll` does about ids of an `IdsQuery` that have no value.
public enum MissingIds: Hashable, Sendable {
  /// The call fails with `notFound`.
  case fail
  /// The result leaves them out.
  case skip
}

/// One of the operations of a data source.
public enum DataSourceOperation: String, Hashable, Sendable, CaseIterable {
  case get, getAll, put, putAll, delete, deleteAll
}

extension Query {
  /// Returns the error of a source that doesn't support this query: `throw query.notSupported(.get, self)`.
  public func notSupported<D: DataSource>(_ operation: DataSourceOperation, _ source: D) -> DataSourceError {
    DataSourceError(.queryNotSupported, "\(D.self) doesn't support \(Self.self) in \(operation)")
  }
}
