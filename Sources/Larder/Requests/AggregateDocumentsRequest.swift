import Documents
import Wire

/// A request for the groups of the documents that match a selector.
struct AggregateDocumentsRequest: ServerRequest {
  static let operation = Wire.Operation.aggregate
  static let form = ReplyForm.stream
  private let selector: [UInt8]
  private let aggregation: [UInt8]
  private let time: UInt32?
  private let isExplained: Bool

  /// - Parameter time: How long it may take, in milliseconds; nil for the server's default.
  init(_ selector: Selector, _ aggregation: DocumentAggregation, isExplained: Bool = false, time: UInt32?) {
    self.selector = selector.json.encoded()
    self.aggregation = aggregation.json.encoded()
    self.time = time
    self.isExplained = isExplained
  }

  var measure: RequestMeasure {
    RequestMeasure(
      bodySize: AggregateRequest.headerSize + 4 + selector.count + aggregation.count,
      features: (time == nil ? 0 : Features.times) | (isExplained ? Features.groupExplanations : 0))
  }

  func encode(into output: inout ByteBuffer) {
    unsafe output.appendAggregate(
      selector: selector.span.bytes, aggregation: aggregation.span.bytes, time: time, explain: isExplained)
  }
}
