/// The body of a watch request: `Protocol/wire.md` §6.5. The prefix is a range of the span that the request was decoded
/// from.
public struct WatchRequest: Equatable, Sendable {
  public static let keysOnly: UInt8 = 2
  /// An incarnation follows the header.
  public static let incarnation: UInt8 = 4
  static let headerSize = 16

  public let isKeysOnly: Bool
  /// The first revision to send changes of; 0 for changes from now on.
  public let from: UInt64
  /// The incarnation of the store that the client has watched, or 0 for any store; nil if the client asks for none.
  public let incarnation: UInt64?
  public let prefix: Range<Int>

  public init?(_ body: RawSpan) {
    guard
      let flags = body.integer(at: 0, as: UInt8.self), flags & ~(Self.keysOnly | Self.incarnation) == 0,
      body.integer(at: 1, as: UInt8.self) == 0,
      let prefixSize = body.integer(at: 2, as: UInt16.self), body.integer(at: 4, as: UInt32.self) == 0,
      let from = body.integer(at: 8, as: UInt64.self), Self.prefixOffset(flags) + Int(prefixSize) == body.byteCount
    else { return nil }
    isKeysOnly = flags & Self.keysOnly != 0
    self.from = from
    incarnation = flags & Self.incarnation == 0 ? nil : body.integer(at: Self.headerSize, as: UInt64.self)
    prefix = Self.prefixOffset(flags)..<body.byteCount
  }

  /// Returns where the prefix begins in a body with these flags.
  static func prefixOffset(_ flags: UInt8) -> Int { headerSize + (flags & incarnation == 0 ? 0 : 8) }
}

/// The kinds of a change record: `Protocol/wire.md` §6.5.
public enum ChangeKind: UInt8, Sendable {
  case single = 1
  case list = 2
  case deleted = 3
  case allDeleted = 4
  /// The server no longer keeps the changes up to the record's revision that the watch has not seen.
  case lost = 5
  /// Not a change: the record has the store's incarnation in place of a revision.
  case incarnation = 6
}

/// A change record of a watch: `Protocol/wire.md` §6.5. Key and value are ranges of the span that the record was
/// decoded from.
public struct ChangeRecord: Equatable, Sendable {
  /// The flag of a write that has changed nothing but the expiry.
  static let onlyExpiry: UInt8 = 2

  public let kind: ChangeKind
  public let revision: UInt64
  /// The milliseconds until the entry expires; 0 for an entry that does not expire.
  public let expiry: UInt64
  /// Whether the entry was written only to change its expiry, or to remove it.
  public let changesOnlyExpiry: Bool
  public let key: Range<Int>
  public let value: Range<Int>

  /// The size of the field before the first record of a frame: the revision up to which the watch has received
  /// everything.
  public static let throughSize = 8
  public static let headerSize = 16

  /// The offset after the record, where the next one begins.
  public var end: Int { value.upperBound }

  /// Decodes the record at `offset`, or returns nil if it is malformed.
  public init?(_ body: RawSpan, at offset: Int) {
    guard
      let word = body.integer(at: offset, as: UInt64.self),
      let revision = body.revision(at: offset + 8),
      let kind = ChangeKind(rawValue: UInt8(truncatingIfNeeded: word)), kind != .incarnation || revision > 0
    else { return nil }
    let flags = UInt8(truncatingIfNeeded: word >> 8)
    guard flags & ~(RecordFlags.expiry | Self.onlyExpiry) == 0 else { return nil }
    changesOnlyExpiry = flags & Self.onlyExpiry != 0
    if changesOnlyExpiry, kind != .single, kind != .list { return nil }
    var keyStart = offset + Self.headerSize
    var expiry: UInt64 = 0
    if flags & RecordFlags.expiry != 0 {
      guard let milliseconds = body.integer(at: keyStart, as: UInt64.self), milliseconds > 0 else { return nil }
      expiry = milliseconds
      keyStart += 8
    }
    let keyEnd = keyStart + Int(UInt16(truncatingIfNeeded: word >> 16))
    let valueEnd = keyEnd + Int(word >> 32)
    guard valueEnd <= body.byteCount else { return nil }
    self.kind = kind
    self.revision = revision
    self.expiry = expiry
    key = keyStart..<keyEnd
    value = keyEnd..<valueEnd
  }
}

extension ByteBuffer {
  /// Appends the body of a watch request.
  /// - Parameter incarnation: The incarnation of the store that the client has watched, or 0 for any store; nil if the
  ///   reply need not have one.
  public mutating func appendWatch(from: UInt64, incarnation: UInt64? = nil, prefix: RawSpan, keysOnly: Bool) {
    let flags = (keysOnly ? WatchRequest.keysOnly : 0) | (incarnation == nil ? 0 : WatchRequest.incarnation)
    append(UInt64(flags) | UInt64(UInt16(prefix.byteCount)) << 16)
    append(from)
    if let incarnation { append(incarnation) }
    append(prefix)
  }

  /// Appends a change record.
  /// - Parameters:
  ///   - expiry: The milliseconds until the entry expires; 0 for an entry that does not expire.
  ///   - changesOnlyExpiry: Whether the entry was written only to change its expiry, or to remove it.
  public mutating func appendChange(
    _ kind: ChangeKind, revision: UInt64, expiry: UInt64 = 0, changesOnlyExpiry: Bool = false,
    key: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer
  ) {
    let flags = (expiry == 0 ? 0 : RecordFlags.expiry) | (changesOnlyExpiry ? ChangeRecord.onlyExpiry : 0)
    append(
      UInt64(kind.rawValue) | UInt64(flags) << 8 | UInt64(UInt16(truncatingIfNeeded: key.count)) << 16
        | UInt64(UInt32(truncatingIfNeeded: value.count)) << 32)
    append(revision)
    if expiry != 0 { append(expiry) }
    unsafe append(key)
    unsafe append(value)
  }
}
