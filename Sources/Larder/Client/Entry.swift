import Wire

/// What a store keeps under a key.
public struct Entry: Hashable, Sendable {
  public let key: String
  /// The value; empty single bytes if only keys were requested.
  public let value: EntryValue
  /// The store's counter at the write that made the entry. Never 0, and never reused in the store.
  public let revision: UInt64
  /// The time until the entry expires, to the millisecond, when the server replied; nil for an entry that does not
  /// expire.
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

/// One entry to write.
public struct Write: Hashable, Sendable {
  public var key: String
  public var value: EntryValue
  /// The condition under which the entry is written.
  public var condition: WriteCondition
  /// The time until the entry expires, to the millisecond and at least 1 ms; nil for an entry that does not expire.
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

/// The condition under which a write is carried out. If it does not hold, the call throws `conditionFailed`.
public enum WriteCondition: Hashable, Sendable {
  case always
  /// The key has no entry.
  case absent
  /// The key has an entry with this revision.
  case revision(UInt64)
}

// MARK: Decoding

extension EntryValue {
  /// Decodes the value of a record, or returns nil if it is a malformed list.
  init?(_ kind: ValueKind, _ bytes: RawSpan) {
    switch kind {
    case .single: self = .single(bytes.toArray())
    case .list:
      guard let elements = ListValue.decode(bytes) else { return nil }
      self = .list(elements)
    }
  }

  init?(_ kind: ValueKind, _ bytes: [UInt8]) {
    switch kind {
    case .single: self = .single(bytes)
    case .list: unsafe self.init(kind, bytes.span.bytes)
    }
  }
}

extension Entry {
  /// Decodes an entry record, or returns nil if it is malformed or says that there is no entry.
  init?(_ record: EntryRecord, in body: RawSpan, key: String? = nil, keysOnly: Bool = false) {
    guard let kind = record.kind else { return nil }
    let value: EntryValue? = keysOnly ? .single([]) : EntryValue(kind, body.extracting(record.value))
    guard let value else { return nil }
    self.init(
      key: key ?? body.extracting(record.key).toString(), value: value, revision: record.revision,
      expiresIn: Self.expiry(milliseconds: record.expiry))
  }

  /// - Parameter milliseconds: 0 for an entry that does not expire.
  static func expiry(milliseconds: UInt64) -> Duration? {
    milliseconds == 0 ? nil : .milliseconds(Int64(clamping: milliseconds))
  }
}
