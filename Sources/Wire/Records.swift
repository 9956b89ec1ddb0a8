/// Flags of entry and write records (`Protocol/wire.md` §4), and of the operations of an apply request (§6.11).
public enum RecordFlags {
  @inlinable public static var expiry: UInt8 { 1 }
  @inlinable public static var ifAbsent: UInt8 { 2 }
  @inlinable public static var ifRevision: UInt8 { 4 }
  @inlinable public static var create: UInt8 { 8 }
}

/// The kinds of a value: `Protocol/wire.md` §4.
public enum ValueKind: UInt8, Sendable {
  case single = 1
  case list = 2
}

/// An entry record of a reply: `Protocol/wire.md` §4. Key and value are ranges of the span that the record was decoded
/// from.
public struct EntryRecord: Equatable, Sendable {
  /// The kind of the value; nil if there is no entry.
  public let kind: ValueKind?
  public let revision: UInt64
  /// The milliseconds until the entry expires; 0 for an entry that does not expire.
  public let expiry: UInt64
  public let key: Range<Int>
  public let value: Range<Int>

  @inlinable public static var headerSize: Int { 16 }

  /// The offset after the record, where the next one begins.
  public var end: Int { value.upperBound }

  /// Decodes the record at `offset`, or returns nil if it is malformed.
  @inlinable
  public init?(_ body: RawSpan, at offset: Int) {
    guard
      let word = body.integer(at: offset, as: UInt32.self),
      let valueSize = body.integer(at: offset + 4, as: UInt32.self),
      let revision = body.revision(at: offset + 8)
    else { return nil }
    let kind = UInt8(truncatingIfNeeded: word)
    let flags = UInt8(truncatingIfNeeded: word >> 8)
    guard kind <= ValueKind.list.rawValue, flags & ~RecordFlags.expiry == 0 else { return nil }
    var keyStart = offset + Self.headerSize
    var expiry: UInt64 = 0
    if flags & RecordFlags.expiry != 0 {
      guard let milliseconds = body.integer(at: keyStart, as: UInt64.self), milliseconds > 0 else { return nil }
      expiry = milliseconds
      keyStart += 8
    }
    let keyEnd = keyStart + Int(word >> 16)
    let valueEnd = keyEnd + Int(valueSize)
    guard valueEnd <= body.byteCount else { return nil }
    self.kind = ValueKind(rawValue: kind)
    self.revision = revision
    self.expiry = expiry
    key = keyStart..<keyEnd
    value = keyEnd..<valueEnd
  }
}

/// A write record of a request: `Protocol/wire.md` §4. Key and value are ranges of the span that the record was decoded
/// from.
public struct WriteRecord: Equatable, Sendable {
  public let kind: ValueKind
  public let flags: UInt8
  /// The milliseconds after which the entry expires; 0 for an entry that does not expire.
  public let expiry: UInt64
  /// The revision that the current entry must have if `flags` contain `ifRevision`.
  public let revision: UInt64
  public let key: Range<Int>
  public let value: Range<Int>

  /// The offset after the record, where the next one begins.
  @inlinable public var end: Int { value.upperBound }

  /// A write without a condition, of which key and value are ranges of some span.
  public init(kind: ValueKind, expiry: UInt64 = 0, key: Range<Int>, value: Range<Int>) {
    self.kind = kind
    flags = expiry == 0 ? 0 : RecordFlags.expiry
    self.expiry = expiry
    revision = 0
    self.key = key
    self.value = value
  }

  /// Decodes the record at `offset`, or returns nil if it is malformed.
  @inlinable
  public init?(_ body: RawSpan, at offset: Int) {
    guard let word = body.integer(at: offset, as: UInt64.self) else { return nil }
    let flags = UInt8(truncatingIfNeeded: word >> 8)
    guard let kind = ValueKind(rawValue: UInt8(truncatingIfNeeded: word)), flags < 8 else { return nil }
    var keyStart = offset &+ 8
    var expiry: UInt64 = 0
    var revision: UInt64 = 0
    if flags != 0 {
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
  /// Appends an entry record.
  /// - Parameter expiry: The milliseconds until the entry expires; 0 for an entry that does not expire.
  @inlinable @inline(__always)
  public mutating func appendEntry(
    kind: ValueKind, revision: UInt64, expiry: UInt64 = 0, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    reserve(EntryRecord.headerSize &+ 8 &+ key.count &+ value.count)
    unsafe appendEntryHeader(kind: kind, revision: revision, expiry: expiry, key: key, valueSize: value.count)
    unsafe append(value)
  }

  /// Appends an entry record without its value, which the caller appends next.
  @inlinable @inline(__always)
  public mutating func appendEntryHeader(
    kind: ValueKind, revision: UInt64, expiry: UInt64 = 0, key: UnsafeRawBufferPointer, valueSize: Int
  ) {
    let flags = expiry == 0 ? 0 : RecordFlags.expiry
    append(
      UInt64(kind.rawValue) | UInt64(flags) << 8 | UInt64(UInt16(truncatingIfNeeded: key.count)) << 16
        | UInt64(UInt32(truncatingIfNeeded: valueSize)) << 32)
    append(revision)
    if expiry != 0 { append(expiry) }
    unsafe append(key)
  }

  /// Appends the record of a get-many reply for a key that has no entry.
  @inlinable
  public mutating func appendMissingEntry() {
    append(UInt64(0))
    append(UInt64(0))
  }

  /// Appends a write record.
  /// - Parameters:
  ///   - expiry: The milliseconds after which the entry expires; 0 for an entry that does not expire.
  ///   - revision: The revision that the current entry must have, or nil.
  @inlinable
  public mutating func appendWrite(
    kind: ValueKind, expiry: UInt64 = 0, ifAbsent: Bool = false, ifRevision revision: UInt64? = nil, key: RawSpan,
    value: RawSpan
  ) {
    precondition(key.byteCount <= Key.maxSize)
    var flags: UInt8 = expiry == 0 ? 0 : RecordFlags.expiry
    if ifAbsent { flags |= RecordFlags.ifAbsent }
    if revision != nil { flags |= RecordFlags.ifRevision }
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
