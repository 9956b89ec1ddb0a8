/// The body of a watch request: `Protocol/wire.md` §6.5. The prefix is a place in the span that it was decoded from.
public struct WatchRequest: Equatable, Sendable {
  public static let keysOnly: UInt8 = 2
  static let headerSize = 16

  public let isKeysOnly: Bool
  /// The first revision whose changes are wanted; 0 for those that are still to come.
  public let from: UInt64
  public let prefix: Range<Int>

  public init?(_ body: RawSpan) {
    guard
      let flags = body.integer(at: 0, as: UInt8.self), flags & ~Self.keysOnly == 0,
      body.integer(at: 1, as: UInt8.self) == 0,
      let prefixSize = body.integer(at: 2, as: UInt16.self), body.integer(at: 4, as: UInt32.self) == 0,
      let from = body.integer(at: 8, as: UInt64.self), Self.headerSize + Int(prefixSize) == body.byteCount
    else { return nil }
    isKeysOnly = flags & Self.keysOnly != 0
    self.from = from
    prefix = Self.headerSize..<body.byteCount
  }
}

/// What a change record tells of: `Protocol/wire.md` §6.5.
public enum ChangeKind: UInt8, Sendable {
  case single = 1
  case list = 2
  case deleted = 3
  case allDeleted = 4
  /// The watch has lost track: changes up to the record's revision were not sent.
  case lost = 5
}

/// A change record of a watch: `Protocol/wire.md` §6.5. Key and value are places in the span that it was decoded from.
public struct ChangeRecord: Equatable, Sendable {
  public let kind: ChangeKind
  public let revision: UInt64
  /// Milliseconds until the entry ends; 0 when it does not expire.
  public let expiry: UInt64
  public let key: Range<Int>
  public let value: Range<Int>

  /// Bytes ahead of the first record: the revision up to which a frame has brought everything.
  public static let throughSize = 8
  public static let headerSize = 16

  /// Where the next record begins.
  public var end: Int { value.upperBound }

  /// The record at `offset`, or nil when it is malformed.
  public init?(_ body: RawSpan, at offset: Int) {
    guard
      let word = body.integer(at: offset, as: UInt64.self),
      let revision = body.integer(at: offset + 8, as: UInt64.self),
      let kind = ChangeKind(rawValue: UInt8(truncatingIfNeeded: word))
    else { return nil }
    let flags = UInt8(truncatingIfNeeded: word >> 8)
    guard flags & ~RecordFlags.expiry == 0 else { return nil }
    var place = offset + Self.headerSize
    var expiry: UInt64 = 0
    if flags & RecordFlags.expiry != 0 {
      guard let left = body.integer(at: place, as: UInt64.self) else { return nil }
      expiry = left
      place += 8
    }
    let keyEnd = place + Int(UInt16(truncatingIfNeeded: word >> 16))
    let valueEnd = keyEnd + Int(word >> 32)
    guard valueEnd <= body.byteCount else { return nil }
    self.kind = kind
    self.revision = revision
    self.expiry = expiry
    key = place..<keyEnd
    value = keyEnd..<valueEnd
  }
}

extension ByteBuffer {
  /// The body of a watch request.
  public mutating func appendWatch(from: UInt64, prefix: RawSpan, keysOnly: Bool) {
    append(UInt64(keysOnly ? WatchRequest.keysOnly : 0) | UInt64(UInt16(prefix.byteCount)) << 16)
    append(from)
    append(prefix)
  }

  /// A change record. An entry that ends has `expiry` milliseconds left; 0 stands for one that does not.
  public mutating func appendChange(
    _ kind: ChangeKind, revision: UInt64, expiry: UInt64 = 0, key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    let flags = expiry == 0 ? 0 : RecordFlags.expiry
    append(
      UInt64(kind.rawValue) | UInt64(flags) << 8 | UInt64(UInt16(truncatingIfNeeded: key.count)) << 16
        | UInt64(UInt32(truncatingIfNeeded: value.count)) << 32)
    append(revision)
    if expiry != 0 { append(expiry) }
    unsafe append(key)
    unsafe append(value)
  }
}
