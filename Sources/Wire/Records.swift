/// Flags of entry and write records: `Protocol/wire.md` §4.
public enum RecordFlags {
  @inlinable public static var expiry: UInt8 { 1 }
  @inlinable public static var ifAbsent: UInt8 { 2 }
  @inlinable public static var ifRevision: UInt8 { 4 }
}

/// The kinds of a value: `Protocol/wire.md` §4.
public enum ValueKind: UInt8, Sendable {
  case single = 1
  case list = 2
}

/// An entry record of an answer: `Protocol/wire.md` §4. Key and value are places in the span that it was decoded from.
public struct EntryRecord: Equatable, Sendable {
  /// Nil when there is no such entry.
  public let kind: ValueKind?
  public let revision: UInt64
  /// Milliseconds until the entry ends; 0 when it does not expire.
  public let expiry: UInt64
  public let key: Range<Int>
  public let value: Range<Int>

  @inlinable public static var headerSize: Int { 16 }

  /// Where the next record begins.
  public var end: Int { value.upperBound }

  /// The record at `offset`, or nil when it is malformed.
  @inlinable
  public init?(_ body: RawSpan, at offset: Int) {
    guard
      let word = body.integer(at: offset, as: UInt32.self),
      let valueSize = body.integer(at: offset + 4, as: UInt32.self),
      let revision = body.integer(at: offset + 8, as: UInt64.self)
    else { return nil }
    let kind = UInt8(truncatingIfNeeded: word)
    let flags = UInt8(truncatingIfNeeded: word >> 8)
    guard kind <= ValueKind.list.rawValue, flags & ~RecordFlags.expiry == 0 else { return nil }
    var place = offset + Self.headerSize
    var expiry: UInt64 = 0
    if flags & RecordFlags.expiry != 0 {
      guard let left = body.integer(at: place, as: UInt64.self) else { return nil }
      expiry = left
      place += 8
    }
    let keyEnd = place + Int(word >> 16)
    let valueEnd = keyEnd + Int(valueSize)
    guard valueEnd <= body.byteCount else { return nil }
    self.kind = ValueKind(rawValue: kind)
    self.revision = revision
    self.expiry = expiry
    key = place..<keyEnd
    value = keyEnd..<valueEnd
  }
}

/// A write record of a request: `Protocol/wire.md` §4. Key and value are places in the span that it was decoded from.
public struct WriteRecord: Equatable, Sendable {
  public let kind: ValueKind
  public let flags: UInt8
  /// After how many milliseconds the entry ends; 0 for never.
  public let expiry: UInt64
  /// The revision that the present entry must have, when `flags` say so.
  public let revision: UInt64
  public let key: Range<Int>
  public let value: Range<Int>

  /// Where the next record begins.
  @inlinable public var end: Int { value.upperBound }

  /// The record at `offset`, or nil when it is malformed.
  @inlinable
  public init?(_ body: RawSpan, at offset: Int) {
    guard let word = body.integer(at: offset, as: UInt64.self) else { return nil }
    let flags = UInt8(truncatingIfNeeded: word >> 8)
    guard let kind = ValueKind(rawValue: UInt8(truncatingIfNeeded: word)), flags < 8 else { return nil }
    var place = offset &+ 8
    var expiry: UInt64 = 0
    var revision: UInt64 = 0
    if flags != 0 {
      if flags & RecordFlags.expiry != 0 {
        guard let after = body.integer(at: place, as: UInt64.self) else { return nil }
        expiry = after
        place &+= 8
      }
      if flags & RecordFlags.ifRevision != 0 {
        guard let wanted = body.integer(at: place, as: UInt64.self) else { return nil }
        revision = wanted
        place &+= 8
      }
    }
    let keyEnd = place &+ Int(UInt16(truncatingIfNeeded: word >> 16))
    let valueEnd = keyEnd &+ Int(word >> 32)
    guard valueEnd <= body.byteCount else { return nil }
    self.kind = kind
    self.flags = flags
    self.expiry = expiry
    self.revision = revision
    key = unsafe Range(uncheckedBounds: (place, keyEnd))
    value = unsafe Range(uncheckedBounds: (keyEnd, valueEnd))
  }
}

extension ByteBuffer {
  /// An entry record. An entry that ends has `expiry` milliseconds left; 0 stands for one that does not.
  @inlinable @inline(__always)
  public mutating func appendEntry(
    kind: ValueKind, revision: UInt64, expiry: UInt64 = 0, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    reserve(EntryRecord.headerSize &+ 8 &+ key.count &+ value.count)
    unsafe appendEntryHead(kind: kind, revision: revision, expiry: expiry, key: key, valueSize: value.count)
    unsafe append(value)
  }

  /// All of an entry record but the value, which must follow.
  @inlinable @inline(__always)
  public mutating func appendEntryHead(
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

  /// The record of get-many for a key that has no entry.
  @inlinable
  public mutating func appendMissingEntry() {
    append(UInt64(0))
    append(UInt64(0))
  }

  /// A write record.
  /// - Parameters:
  ///   - expiry: after how many milliseconds the entry ends; 0 for never.
  ///   - revision: the revision that the present entry must have, or nil.
  @inlinable
  public mutating func appendWrite(
    kind: ValueKind, expiry: UInt64 = 0, ifAbsent: Bool = false, ifRevision revision: UInt64? = nil, key: RawSpan,
    value: RawSpan
  ) {
    precondition(key.byteCount <= Key.largest)
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
