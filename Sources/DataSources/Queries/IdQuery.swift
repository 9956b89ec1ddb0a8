/// A query for what has an id. Its key is the id's: `IdQuery(1)` and `IdQuery("1")` address the same entry.
public struct IdQuery<T: StableKey>: KeyQuery, Hashable {
  /// What it asks for.
  public let id: T

  public init(_ id: T) {
    self.id = id
  }

  public var key: String { id.stableKey }
}

/// A query for several ids. It has no key of its own: it addresses each id's, and element i of a list belongs to id i.
public struct IdsQuery<T: StableKey>: Query, Hashable {
  /// What it asks for, in this order; an id may be there more than once.
  public let ids: [T]
  /// What `getAll` makes of ids that have no value.
  public let missing: MissingIds

  public init(_ ids: [T], missing: MissingIds = .fail) {
    self.ids = ids
    self.missing = missing
  }

  public var keyValueAddress: KeyValueAddress { .keys(ids.map(\.stableKey), missing: missing) }
}

@available(*, deprecated, renamed: "IdQuery")
public typealias QueryById<T: StableKey> = IdQuery<T>
