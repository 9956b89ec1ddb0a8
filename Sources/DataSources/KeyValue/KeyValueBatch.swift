/// Operations that a key-value source executes in one step: all of them or none. See `KeyValueDataSource.apply`.
///
/// The conditions of all operations refer to the source as it is before the batch. The operations take effect in their
/// order.
public struct KeyValueBatch<T: Sendable>: Sendable {
  /// One operation of a batch.
  public enum Operation: Sendable {
    /// Writes the entry of a key. `expiresIn` is at least 1 ms; nil for an entry that doesn't expire.
    case put(String, StoredValue<T>, if: KeyValueCondition, expiresIn: Duration?)
    /// Removes the entry of a key, if there is one.
    case delete(String, if: KeyValueCondition)
    /// Changes nothing.
    case check(String, KeyValueCondition)
  }

  /// The operations, in their order.
  public private(set) var operations: [Operation] = []

  public init() {}

  /// Writes a single value.
  /// - Parameters:
  ///   - condition: What must be true before the batch.
  ///   - expiresIn: The time until the entry expires, at least 1 ms; nil for an entry that doesn't expire.
  public mutating func put<K: StableKey>(
    _ value: T, forId id: K, if condition: KeyValueCondition = .always, expiresIn: Duration? = nil
  ) {
    operations.append(.put(id.stableKey, .single(value), if: condition, expiresIn: expiresIn))
  }

  /// Writes a list, which may be empty. The parameters are those of `put`.
  public mutating func putAll<K: StableKey>(
    _ array: [T], forId id: K, if condition: KeyValueCondition = .always, expiresIn: Duration? = nil
  ) {
    operations.append(.put(id.stableKey, .list(array), if: condition, expiresIn: expiresIn))
  }

  /// Deletes the value or list of an id, if there is one.
  /// - Parameter revision: The revision that the entry must have before the batch; nil if it may have any, and may be
  ///   absent.
  public mutating func delete<K: StableKey>(_ id: K, ifRevision revision: UInt64? = nil) {
    operations.append(.delete(id.stableKey, if: revision.map { .revision($0) } ?? .always))
  }

  /// Requires that the entry of an id has a revision before the batch: that it is still as it was read.
  public mutating func check<K: StableKey>(_ id: K, hasRevision revision: UInt64) {
    operations.append(.check(id.stableKey, .revision(revision)))
  }

  /// Requires that an id has no entry before the batch.
  public mutating func checkAbsent<K: StableKey>(_ id: K) {
    operations.append(.check(id.stableKey, .absent))
  }
}

/// The condition of a write. If it doesn't hold, the call throws `DataSourceError.conflict` and writes nothing.
public enum KeyValueCondition: Hashable, Sendable {
  case always
  /// The key has no entry.
  case absent
  /// The key has an entry with this revision.
  case revision(UInt64)

  /// Checks the condition.
  /// - Parameter revision: The revision of the key's entry; nil if there is no entry.
  /// - Throws: `DataSourceError.conflict` if the condition doesn't hold.
  public func check(_ key: String, hasRevision revision: UInt64?) throws(DataSourceError) {
    let reason: String
    switch (self, revision) {
    case (.always, _), (.absent, nil): return
    case (.absent, _?): reason = "has an entry"
    case (.revision(let expected), nil): reason = "has no entry, but revision \(expected) was expected"
    case (.revision(let expected), let revision?):
      guard revision != expected else { return }
      reason = "has an entry of revision \(revision), not \(expected)"
    }
    throw DataSourceError(.conflict, "the key \(key.debugDescription) \(reason)")
  }
}

extension KeyValueBatch.Operation {
  public var key: String {
    switch self {
    case .put(let key, _, _, _), .delete(let key, _), .check(let key, _): key
    }
  }

  public var condition: KeyValueCondition {
    switch self {
    case .put(_, _, let condition, _), .delete(_, let condition), .check(_, let condition): condition
    }
  }
}

extension Duration {
  /// The whole milliseconds of a time to live, rounded up; at most 2⁵³, which is 285,000 years.
  package var milliseconds: UInt64 {
    let (seconds, attoseconds) = components
    guard seconds < 1 << 43 else { return 1 << 53 }
    return UInt64(clamping: seconds * 1_000 + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
}
