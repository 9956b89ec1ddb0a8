/// What a key-value source holds under a key: a single value or a list. A call for one kind doesn't find an entry of
/// the other.
public enum StoredValue<T: Sendable>: Sendable {
  case single(T)
  case list([T])

  /// The single value; nil for a list.
  public var single: T? {
    if case .single(let value) = self { value } else { nil }
  }

  /// The list; nil for a single value.
  public var list: [T]? {
    if case .list(let values) = self { values } else { nil }
  }

  /// The single value, or the elements of the list.
  public var elements: [T] {
    switch self {
    case .single(let value): [value]
    case .list(let values): values
    }
  }
}

extension StoredValue: Equatable where T: Equatable {}
extension StoredValue: Hashable where T: Hashable {}

/// A key of a key-value source and the value or list under it.
public struct KeyValueEntry<T: Sendable>: Sendable {
  /// The key, of 1 to 4,096 bytes.
  public let key: String
  /// The single value or list under the key.
  public let value: StoredValue<T>
  /// The source's counter at the write that made the entry: never 0, and never used again in the source. Entries that
  /// were written in one step have the same. 0 if the source has no revisions.
  public let revision: UInt64
  /// The time until the entry expires, when it was read; nil for an entry that doesn't expire.
  public let expiresIn: Duration?

  /// - Parameters:
  ///   - revision: The revision of an entry that was read. A source that stores the entry doesn't look at it.
  ///   - expiresIn: The time until an entry that was read expires. `store` writes entries that don't expire.
  public init(key: String, value: StoredValue<T>, revision: UInt64 = 0, expiresIn: Duration? = nil) {
    self.key = key
    self.value = value
    self.revision = revision
    self.expiresIn = expiresIn
  }
}

extension KeyValueEntry: Equatable where T: Equatable {}
extension KeyValueEntry: Hashable where T: Hashable {}
