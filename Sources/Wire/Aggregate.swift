/// The body of an aggregate request: `Protocol/wire.md` §6.8. The texts are ranges of the span that the request was
/// decoded from; they may be empty, and are not checked.
///
/// The reply is a reply stream with a record for each group, whose key is empty, whose revision is 0, and whose value is
/// a JSON object. A `FindResult` follows.
public struct AggregateRequest: Equatable, Sendable {
  static let time: UInt32 = 1
  static let explain: UInt32 = 2
  public static let headerSize = 8

  /// How long it may take, in milliseconds, at least 1; nil for as long as the server allows by default.
  public let time: UInt32?
  /// Whether the reply explains how the documents were found, in place of the groups.
  public let isExplained: Bool
  /// A JSON object; empty for all documents.
  public let selector: Range<Int>
  /// A JSON object.
  public let aggregation: Range<Int>

  /// Decodes the body of a request, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard
      let flags = body.integer(at: 0, as: UInt32.self), flags <= Self.time | Self.explain,
      let selectorSize = body.integer(at: 4, as: UInt32.self),
      let (time, start) = body.requestTime(at: Self.headerSize, isGiven: flags & Self.time != 0),
      start + Int(selectorSize) <= body.byteCount
    else { return nil }
    self.time = time
    isExplained = flags & Self.explain != 0
    let selectorEnd = start + Int(selectorSize)
    selector = start..<selectorEnd
    aggregation = selectorEnd..<body.byteCount
  }
}

extension ByteBuffer {
  /// Appends the body of an aggregate request.
  /// - Parameters:
  ///   - selector: A JSON object; empty for all documents.
  ///   - aggregation: A JSON object.
  ///   - time: How long it may take, in milliseconds, at least 1; nil for as long as the server allows by default.
  ///   - explain: Whether to explain how the documents were found, in place of the groups.
  public mutating func appendAggregate(
    selector: RawSpan, aggregation: RawSpan, time: UInt32? = nil, explain: Bool = false
  ) {
    append((time == nil ? 0 : AggregateRequest.time) | (explain ? AggregateRequest.explain : 0))
    append(UInt32(selector.byteCount))
    if let time { append(time) }
    append(selector)
    append(aggregation)
  }
}

extension RawSpan {
  /// Decodes how long a request on documents may take, in milliseconds.
  /// - Parameter isGiven: Whether it is there.
  /// - Returns: The time, and where what follows it begins; nil if it is malformed.
  func requestTime(at offset: Int, isGiven: Bool) -> (time: UInt32?, end: Int)? {
    guard isGiven else { return (nil, offset) }
    guard let time = integer(at: offset, as: UInt32.self), time > 0 else { return nil }
    return (time, offset + 4)
  }
}
