/// What a store keeps under a key.
public struct Entry: Hashable, Sendable {
  public let key: String
  /// Empty single bytes in entries that were asked for with `keysOnly`.
  public let value: EntryValue
  /// The store's counter at the write that made the entry. Never 0, and never used again in that store.
  public let revision: UInt64
  /// How long the entry had left when the server answered, to the millisecond; nil when it does not expire.
  public let expiresIn: Duration?

  public init(key: String, value: EntryValue, revision: UInt64, expiresIn: Duration? = nil) {
    self.key = key
    self.value = value
    self.revision = revision
    self.expiresIn = expiresIn
  }

  /// The bytes of a single value; nil for a list.
  public var bytes: [UInt8]? { value.bytes }
}

/// The value of an entry: single bytes, or a list of elements.
public enum EntryValue: Hashable, Sendable {
  case single([UInt8])
  case list([[UInt8]])

  /// The bytes of a single value; nil for a list.
  public var bytes: [UInt8]? {
    if case .single(let bytes) = self { bytes } else { nil }
  }

  /// The elements of a list; nil for a single value.
  public var elements: [[UInt8]]? {
    if case .list(let elements) = self { elements } else { nil }
  }
}
