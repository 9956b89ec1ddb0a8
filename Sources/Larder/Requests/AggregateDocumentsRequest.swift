import Documents
import Wire

/// A request for the groups of the documents that match a selector.
struct AggregateDocumentsRequest: Request {
  static let operation = Wire.Operation.aggregate
  static let form = ReplyForm.stream
  static let isRead = true
  static let requiredFeatures = Features.documents
  private let selector: [UInt8]
  private let aggregation: [UInt8]

  init(_ selector: Selector, _ aggregation: DocumentAggregation) {
    self.selector = selector.json.encoded()
    self.aggregation = aggregation.json.encoded()
  }

  var measure: RequestMeasure {
    RequestMeasure(bodySize: AggregateRequest.headerSize + selector.count + aggregation.count)
  }

  func encode(into output: inout ByteBuffer) {
    unsafe output.appendAggregate(selector: selector.span.bytes, aggregation: aggregation.span.bytes)
  }
}
