/// What a query means to a key-value source.
public enum KeyValueAddress: Hashable, Sendable {
  /// Nothing: the source doesn't support the query.
  case nothing
  /// One key.
  case key(String)
  /// Several keys in order, each of which is one element of a list.
  case keys([String], missing: MissingIds)
  /// Everything there is; or, where one value or list is got or put, this key.
  case all(key: String)
  /// So many entries from a position on, in the order of their keys' bytes.
  case offset(Int, limit: Int)
  /// So many entries from the first one on whose key comes after this one; nil for the very first.
  case after(String?, limit: Int)
}

/// What `getAll` makes of ids of an `IdsQuery` that have no value.
public enum MissingIds: Hashable, Sendable {
  /// The call fails with `notFound`.
  case fail
  /// The result leaves them out.
  case skip
}
