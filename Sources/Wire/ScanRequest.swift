/// The body of a page or all request: `Protocol/wire.md` §6.4. Prefix and cursor are ranges of the span that the
/// request was decoded from.
public struct ScanRequest: Equatable, Sendable {
  public static let reverse: UInt8 = 1
  public static let keysOnly: UInt8 = 2
  public static let cursor: UInt8 = 4

  public let flags: UInt8
  /// The maximum number of entries; `Int.max` for all.
  public let limit: Int
  public let offset: UInt64
  public let prefix: Range<Int>
  /// The key after which the scan begins; nil if there is none.
  public let cursor: Range<Int>?

  public var isReverse: Bool { flags & Self.reverse != 0 }
  public var isKeysOnly: Bool { flags & Self.keysOnly != 0 }

  /// A request for all entries with a prefix, which is a range of some span.
  public init(prefix: Range<Int>) {
    (flags, limit, offset, self.prefix, cursor) = (0, .max, 0, prefix, nil)
  }

  /// Decodes the body of a request, or returns nil if it is malformed.
  /// - Parameter operation: `page` or `all`.
  public init?(_ body: RawSpan, of operation: Operation) {
    guard
      let flags = body.integer(at: 0, as: UInt8.self), flags < 8, body.integer(at: 1, as: UInt8.self) == 0,
      let prefixSize = body.integer(at: 2, as: UInt16.self), let cursorSize = body.integer(at: 4, as: UInt16.self),
      body.integer(at: 6, as: UInt16.self) == 0,
      flags & Self.cursor != 0 || cursorSize == 0
    else { return nil }
    var prefixStart = 8
    if operation == .page {
      guard let limit = body.integer(at: 8, as: UInt32.self), let offset = body.integer(at: 12, as: UInt64.self) else {
        return nil
      }
      self.limit = Int(limit)
      self.offset = offset
      prefixStart = 20
    } else {
      limit = .max
      offset = 0
    }
    let prefixEnd = prefixStart + Int(prefixSize)
    let cursorEnd = prefixEnd + Int(cursorSize)
    guard cursorEnd == body.byteCount else { return nil }
    self.flags = flags
    prefix = prefixStart..<prefixEnd
    cursor = flags & Self.cursor != 0 ? prefixEnd..<cursorEnd : nil
  }
}

extension ByteBuffer {
  /// Appends the body of a page request, or of an all request if `page` is nil.
  public mutating func appendScan(
    page: (limit: UInt32, offset: UInt64)?, prefix: RawSpan, after cursor: RawSpan?, reverse: Bool, keysOnly: Bool
  ) {
    var flags: UInt8 = 0
    if reverse { flags |= ScanRequest.reverse }
    if keysOnly { flags |= ScanRequest.keysOnly }
    if cursor != nil { flags |= ScanRequest.cursor }
    append(flags)
    append(UInt8(0))
    append(UInt16(prefix.byteCount))
    append(UInt16(cursor?.byteCount ?? 0))
    append(UInt16(0))
    if let page {
      append(page.limit)
      append(page.offset)
    }
    append(prefix)
    if let cursor { append(cursor) }
  }
}
