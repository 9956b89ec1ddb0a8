import Documents
import Wire

/// A request to update or delete the documents that match a selector.
struct ChangeDocumentsRequest: ServerRequest {
  static let operation = Wire.Operation.changeMatching
  static let form = ReplyForm.body
  private let isDryRun: Bool
  private let selector: [UInt8]
  /// nil to delete the documents.
  private let update: [UInt8]?
  private let time: UInt32?

  /// - Parameters:
  ///   - update: The changes in each document; nil to delete them.
  ///   - time: How long it may take, in milliseconds; nil for the server's default.
  init(_ selector: Selector, _ update: DocumentUpdate?, isDryRun: Bool, time: UInt32?) {
    self.isDryRun = isDryRun
    self.selector = selector.json.encoded()
    self.update = update?.json.encoded()
    self.time = time
  }

  var mayTakeLong: Bool { true }

  var measure: RequestMeasure {
    RequestMeasure(
      bodySize: ChangeMatchingRequest.headerSize + 4 + selector.count + (update?.count ?? 0),
      features: time == nil ? 0 : Features.times)
  }

  func encode(into output: inout ByteBuffer) {
    if let update {
      unsafe output.appendChangeMatching(
        dryRun: isDryRun, selector: selector.span.bytes, update: update.span.bytes, time: time)
    } else {
      unsafe output.appendChangeMatching(dryRun: isDryRun, selector: selector.span.bytes, update: nil, time: time)
    }
  }
}
