/// One entry to be written.
public struct Write: Hashable, Sendable {
  public var key: String
  public var value: EntryValue
  public var condition: WriteCondition
  /// After how long the entry ends, to the millisecond and at least one; nil for never.
  public var expiresIn: Duration?

  public init(_ key: String, _ value: EntryValue, if condition: WriteCondition = .always, expiresIn: Duration? = nil) {
    self.key = key
    self.value = value
    self.condition = condition
    self.expiresIn = expiresIn
  }

  public init(_ key: String, _ bytes: [UInt8], if condition: WriteCondition = .always, expiresIn: Duration? = nil) {
    self.init(key, .single(bytes), if: condition, expiresIn: expiresIn)
  }
}

/// What must be so for a write to be carried out. One that does not hold is the error `conditionFailed`.
public enum WriteCondition: Hashable, Sendable {
  case always
  /// The key has no entry.
  case absent
  /// The key has an entry, and this is its revision.
  case revision(UInt64)
}
