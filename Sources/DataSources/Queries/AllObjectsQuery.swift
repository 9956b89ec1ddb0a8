/// A query for everything a source holds.
///
/// In key-value sources `getAll` gives every single value and every element of a list, in the order of the keys' bytes, and `delete`
/// empties the source. Where it stands for one value or list (`get`, `put`, `putAll`) it is the key `allObjects`.
public struct AllObjectsQuery: KeyQuery, Hashable {
  public init() {}

  public var key: String { "allObjects" }
  public var keyValueAddress: KeyValueAddress { .all(key: key) }
}

/// A query without any parameter, for sources that need none. Key-value sources don't support it.
public struct VoidQuery: Query, Hashable {
  public init() {}
}

@available(*, deprecated, renamed: "VoidQuery")
public typealias BlankQuery = VoidQuery
