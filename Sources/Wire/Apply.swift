/// An operation of an apply request: `Protocol/wire.md` §6.11. Key and value are ranges of the span that the record was
/// decoded from.
public struct ApplyRecord: Equatable, Sendable {
  public enum Kind: UInt8, Sendable, CaseIterable {
    case putSingle = 1
    case putList = 2
    case delete = 3
    case update = 4
    case check = 5

    /// The flags that records of the kind may have.
    @inlinable
    var allowedFlags: UInt8 {
      switch self {
      case .putSingle, .putList: RecordFlags.expiry | RecordFlags.ifAbsent | RecordFlags.ifRevision
      case .delete: RecordFlags.ifRevision
      case .update: RecordFlags.ifRevision | RecordFlags.create
      case .check: RecordFlags.ifAbsent | RecordFlags.ifRevision
      }
    }

    /// Whether records of the kind have a value.
    @inlinable
    var hasValue: Bool { self != .delete && self != .check }
  }

  public let kind: Kind
  public let flags: UInt8
  /// The milliseconds after which a written entry expires; 0 for an entry that does not expire.
  public let expiry: UInt64
  /// The revision that the current entry must have if `flags` contain `ifRevision`.
  public let revision: UInt64
  public let key: Range<Int>
  /// The value of a put, and the JSON of an update.
  public let value: Range<Int>

  /// The offset after the record, where the next one begins.
  @inlinable public var end: Int { value.upperBound }

  /// The kind of the value of a put; nil for another operation.
  @inlinable public var valueKind: ValueKind? { ValueKind(rawValue: kind.rawValue) }

  /// Whether the operation has a condition.
  @inlinable
  public var hasCondition: Bool { flags & (RecordFlags.ifAbsent | RecordFlags.ifRevision) != 0 }

  /// Decodes the record at `offset`, or returns nil if it is malformed.
  @inlinable
  public init?(_ body: RawSpan, at offset: Int) {
    guard let word = body.integer(at: offset, as: UInt64.self) else { return nil }
    let flags = UInt8(truncatingIfNeeded: word >> 8)
    guard let kind = Kind(rawValue: UInt8(truncatingIfNeeded: word)), flags & ~kind.allowedFlags == 0,
      kind.hasValue || word >> 32 == 0
    else { return nil }
    var keyStart = offset &+ 8
    var expiry: UInt64 = 0
    var revision: UInt64 = 0
    if flags & RecordFlags.expiry != 0 {
      guard let milliseconds = body.integer(at: keyStart, as: UInt64.self) else { return nil }
      expiry = milliseconds
      keyStart &+= 8
    }
    if flags & RecordFlags.ifRevision != 0 {
      guard let condition = body.integer(at: keyStart, as: UInt64.self) else { return nil }
      revision = condition
      keyStart &+= 8
    }
    let keyEnd = keyStart &+ Int(UInt16(truncatingIfNeeded: word >> 16))
    let valueEnd = keyEnd &+ Int(word >> 32)
    guard valueEnd <= body.byteCount else { return nil }
    self.kind = kind
    self.flags = flags
    self.expiry = expiry
    self.revision = revision
    key = unsafe Range(uncheckedBounds: (keyStart, keyEnd))
    value = unsafe Range(uncheckedBounds: (keyEnd, valueEnd))
  }
}

extension ByteBuffer {
  /// Appends an operation of an apply request.
  /// - Parameters:
  ///   - expiry: The milliseconds after which a written entry expires; 0 for an entry that does not expire.
  ///   - revision: The revision that the current entry must have, or nil.
  ///   - creates: Whether an update of an absent key begins with an empty document.
  ///   - value: The value of a put, and the JSON of an update; empty otherwise.
  public mutating func appendApply(
    _ kind: ApplyRecord.Kind, expiry: UInt64 = 0, ifAbsent: Bool = false, ifRevision revision: UInt64? = nil,
    creates: Bool = false, key: RawSpan, value: RawSpan
  ) {
    precondition(key.byteCount <= Key.maxSize)
    var flags: UInt8 = expiry == 0 ? 0 : RecordFlags.expiry
    if ifAbsent { flags |= RecordFlags.ifAbsent }
    if revision != nil { flags |= RecordFlags.ifRevision }
    if creates { flags |= RecordFlags.create }
    reserve(24 &+ key.byteCount &+ value.byteCount)
    append(
      UInt64(kind.rawValue) | UInt64(flags) << 8 | UInt64(UInt16(truncatingIfNeeded: key.byteCount)) << 16
        | UInt64(UInt32(truncatingIfNeeded: value.byteCount)) << 32)
    if expiry != 0 { append(expiry) }
    if let revision { append(revision) }
    append(key)
    append(value)
  }
}
