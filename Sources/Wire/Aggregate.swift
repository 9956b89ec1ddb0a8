/// The body of an aggregate request: `Protocol/wire.md` §6.8. The texts are ranges of the span that the request was
/// decoded from; they may be empty, and are not checked.
///
/// The reply is a reply stream with a record for each group, whose key is empty, whose revision is 0, and whose value is
/// a JSON object. A `FindResult` follows.
public struct AggregateRequest: Equatable, Sendable {
  public static let headerSize = 8

  /// A JSON object; empty for all documents.
  public let selector: Range<Int>
  /// A JSON object.
  public let aggregation: Range<Int>

  /// Decodes the body of a request, or returns nil if it is malformed.
  public init?(_ body: RawSpan) {
    guard
      body.integer(at: 0, as: UInt32.self) == 0, let selectorSize = body.integer(at: 4, as: UInt32.self),
      Self.headerSize + Int(selectorSize) <= body.byteCount
    else { return nil }
    let selectorEnd = Self.headerSize + Int(selectorSize)
    selector = Self.headerSize..<selectorEnd
    aggregation = selectorEnd..<body.byteCount
  }
}

extension ByteBuffer {
  /// Appends the body of an aggregate request.
  /// - Parameters:
  ///   - selector: A JSON object; empty for all documents.
  ///   - aggregation: A JSON object.
  public mutating func appendAggregate(selector: RawSpan, aggregation: RawSpan) {
    append(UInt32(0))
    append(UInt32(selector.byteCount))
    append(selector)
    append(aggregation)
  }
}
