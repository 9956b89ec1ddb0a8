/// The body of a get-range request: `Protocol/wire.md` §6.12. The key is a range of the span that the request was
/// decoded from.
public struct RangeRequest: Equatable, Sendable {
  static let headerSize = 16

  /// The offset of the first byte to return.
  public let offset: UInt64
  /// The maximum number of bytes to return.
  public let count: UInt32
  /// The revision that the entry must have; nil for any.
  public let revision: UInt64?
  public let key: Range<Int>

  /// Decodes the body of a request, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard
      let flags = body.integer(at: 0, as: UInt32.self), flags & ~UInt32(RecordFlags.ifRevision) == 0,
      let count = body.integer(at: 4, as: UInt32.self), let offset = body.integer(at: 8, as: UInt64.self)
    else { return nil }
    var keyStart = Self.headerSize
    if flags == 0 {
      revision = nil
    } else {
      guard let expected = body.integer(at: keyStart, as: UInt64.self) else { return nil }
      revision = expected
      keyStart += 8
    }
    self.count = count
    self.offset = offset
    key = keyStart..<body.byteCount
  }
}

/// The reply to a get-range request: `Protocol/wire.md` §6.12.
public struct RangeReply: Equatable, Sendable {
  /// The size of the whole value in bytes.
  public let valueSize: UInt64
  /// A record whose value is the range.
  public let record: EntryRecord

  /// Decodes the body of a reply, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard let size = body.integer(at: 0, as: UInt64.self), let record = EntryRecord(body, at: 8),
      record.kind == .single, record.key.isEmpty, record.end == body.byteCount, record.value.count <= size
    else { return nil }
    valueSize = size
    self.record = record
  }
}

extension ByteBuffer {
  /// Appends the body of a get-range request.
  /// - Parameters:
  ///   - count: The maximum number of bytes to return.
  ///   - revision: The revision that the entry must have, or nil.
  public mutating func appendRange(offset: UInt64, count: UInt32, ifRevision revision: UInt64? = nil, key: RawSpan) {
    append(UInt32(revision == nil ? 0 : RecordFlags.ifRevision))
    append(count)
    append(offset)
    if let revision { append(revision) }
    append(key)
  }
}
