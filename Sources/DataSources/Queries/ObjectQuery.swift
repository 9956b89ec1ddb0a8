/// A query for everything that a source holds.
///
/// In a key-value source, `getAll` returns every single value and every element of every list, in the order of the
/// keys' bytes, and `delete` empties the source. In operations on one value or list (`get`, `put`, `putAll`) the query
/// is the key `allObjects`.
public struct AllObjectsQuery: KeyQuery, Hashable {
  public init() {}

  public var key: String { "allObjects" }
  public var keyValueAddress: KeyValueAddress { .all(key: key) }
}

/// A query that holds an object. It is a key query if the object has a stable key.
public struct ObjectQuery<T: Sendable>: Query {
  public let value: T

  public init(_ value: T) {
    self.value = value
  }
}

extension ObjectQuery: KeyQuery where T: StableKey {
  public var key: String { value.stableKey }
}

extension ObjectQuery: Equatable where T: Equatable {}
extension ObjectQuery: Hashable where T: Hashable {}

/// A query that holds several objects. It has no key.
public struct ObjectsQuery<T: Sendable>: Query {
  public let values: [T]

  public init(_ values: [T]) {
    self.values = values
  }
}

extension ObjectsQuery: Equatable where T: Equatable {}
extension ObjectsQuery: Hashable where T: Hashable {}

/// A query without parameters, for sources that don't need any. Key-value sources don't support it.
public struct VoidQuery: Query, Hashable {
  public init() {}
}

@available(*, deprecated, renamed: "ObjectsQuery")
public typealias ArrayQuery<T: Sendable> = ObjectsQuery<T>

@available(*, deprecated, renamed: "VoidQuery")
public typealias BlankQuery = VoidQuery
