import FoundationEssentials

/// An id whose key is the same in every process and on every machine.
///
/// A string is its own key. An integer's key is its decimal form, a UUID's its usual text. An enum with a raw value of
/// one of these types only has to declare the conformance. Other types implement `stableKey`. `hashValue` can't serve
/// as a key: it differs in every process.
public protocol StableKey: Hashable, Sendable {
  /// The key. Different ids have different keys.
  var stableKey: String { get }
}

extension StableKey where Self: BinaryInteger {
  public var stableKey: String { String(self) }
}

extension StableKey where Self: RawRepresentable, RawValue: StableKey {
  public var stableKey: String { rawValue.stableKey }
}

extension String: StableKey {
  public var stableKey: String { self }
}

extension UUID: StableKey {
  public var stableKey: String { uuidString }
}

extension Int: StableKey {}
extension Int8: StableKey {}
extension Int16: StableKey {}
extension Int32: StableKey {}
extension Int64: StableKey {}
extension UInt: StableKey {}
extension UInt8: StableKey {}
extension UInt16: StableKey {}
extension UInt32: StableKey {}
extension UInt64: StableKey {}

/// A query by id. Its key is the id's: `IdQuery(1)` and `IdQuery("1")` address the same entry.
public struct IdQuery<T: StableKey>: KeyQuery, Hashable {
  public let id: T

  public init(_ id: T) {
    self.id = id
  }

  public var key: String { id.stableKey }
}

/// A query by several ids. It has no key of its own: it addresses the key of each id, and element i of a list belongs
/// to id i.
public struct IdsQuery<T: StableKey>: Query, Hashable {
  /// The ids, in the order of the result. An id may occur more than once.
  public let ids: [T]
  /// What `getAll` does about ids that have no value.
  public let missing: MissingIds

  public init(_ ids: [T], missing: MissingIds = .fail) {
    self.ids = ids
    self.missing = missing
  }

  public var keyValueAddress: KeyValueAddress { .keys(ids.map(\.stableKey), missing: missing) }
}

@available(*, deprecated, renamed: "IdQuery")
public typealias QueryById<T: StableKey> = IdQuery<T>
