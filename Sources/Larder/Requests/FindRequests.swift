import Documents
import Wire

/// A request for the documents that a query finds, or for the number of documents that match its selector.
struct FindDocumentsRequest: Request {
  static let operation = Wire.Operation.find
  static let form = ReplyForm.stream
  static let isRead = true
  static let requiredFeatures = Features.documents
  private let isCountOnly: Bool
  private let limit: UInt32?
  private let skip: UInt64
  private let selector: [UInt8]
  private let sort: [UInt8]
  private let fields: [UInt8]
  private let bookmark: [UInt8]

  /// - Throws: `illegalArgument` if `skip` or `limit` of the query is negative.
  init(_ query: DocumentQuery) throws(LarderError) {
    guard query.skip >= 0, query.limit ?? 0 >= 0 else {
      throw LarderError(.illegalArgument, outcome: .rejected, "skip and limit of a query must not be negative")
    }
    isCountOnly = false
    // The maximum of the protocol is more than any store has.
    limit = query.limit.map { UInt32(clamping: $0) }
    skip = UInt64(query.skip)
    selector = query.selector.json.encoded()
    sort = query.sort.isEmpty ? [] : JSONValue.array(query.sort.map(\.json)).encoded()
    fields = query.fields.isEmpty ? [] : JSONValue.array(query.fields.map { .string($0.description) }).encoded()
    bookmark = query.bookmark.map { Array($0.utf8) } ?? []
  }

  init(counting selector: Selector) {
    isCountOnly = true
    limit = nil
    skip = 0
    self.selector = selector.json.encoded()
    sort = []
    fields = []
    bookmark = []
  }

  var measure: RequestMeasure {
    RequestMeasure(bodySize: FindRequest.headerSize + selector.count + sort.count + fields.count + bookmark.count)
  }

  func encode(into output: inout ByteBuffer) {
    unsafe output.appendFind(
      countOnly: isCountOnly, limit: limit, skip: skip, selector: selector.span.bytes, sort: sort.span.bytes,
      fields: fields.span.bytes, bookmark: bookmark.span.bytes)
  }
}
