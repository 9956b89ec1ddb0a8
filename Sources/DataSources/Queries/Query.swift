/// What is asked of a data source: a value that holds every parameter of the request and names no source.
///
/// A query of one's own is any `Sendable` type. Key-value sources understand it as soon as it is a `KeyQuery`:
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
  /// What the query means to a key-value source. Nothing has to be done for it: a `KeyQuery` addresses its key, and any other
  /// query nothing.
  var keyValueAddress: KeyValueAddress { get }
}

extension Query {
  // A conformance to KeyQuery that another module declares is only found by asking.
  public var keyValueAddress: KeyValueAddress {
    if let query = self as? any KeyQuery { .key(query.key) } else { .nothing }
  }
}

/// A query that addresses one key of a key-value source.
///
/// Two queries of the same key are interchangeable. Keys are literal: no character has a special meaning, case counts, and
/// keys are equal when their UTF-8 bytes are. Key-value sources take keys of 1 to 4,096 bytes.
public protocol KeyQuery: Query {
  /// The key, the same in every process.
  var key: String { get }
}

extension KeyQuery {
  public var keyValueAddress: KeyValueAddress { .key(key) }
}
