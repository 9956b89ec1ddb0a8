/// A query that holds an object. It is a key query when the object has a stable key.
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

@available(*, deprecated, renamed: "ObjectsQuery")
public typealias ArrayQuery<T: Sendable> = ObjectsQuery<T>
